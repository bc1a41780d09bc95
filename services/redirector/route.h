// SPDX-License-Identifier: MIT
// Which resource a path names and which methods it offers. Pure.
#pragma once

#include "common/codes/codes.h"
#include "common/web/web.h"

enum route_kind {
    ROUTE_HOME,       // "/"
    ROUTE_ROBOTS,     // "/robots.txt"
    ROUTE_FAVICON,    // "/favicon.ico"
    ROUTE_SERVER,     // "*"
    ROUTE_CODE,       // "/{code}", one trailing slash allowed
    ROUTE_NONE,       // nothing that could be a link
    ROUTE_API_LINKS,  // "/api/v1/links"
    ROUTE_API_LINK,   // "/api/v1/links/{code}"
    ROUTE_API_CLICKS, // "/api/v1/links/{code}/clicks"
    ROUTE_API_NONE,   // anything else under "/api"
};

struct route {
    enum route_kind kind;
    // Decoded once. "" on an API route whose segment can't be a code: 404, once the caller is known.
    char code[CODES_TEXT];
};

// `path` is raw: percent-encoded, without query.
void route_parse(const char *path, struct route *out);

bool route_is_api(enum route_kind kind);
bool route_offers(enum route_kind kind, enum web_method method);
// The value of Allow; "" for ROUTE_API_NONE, which offers nothing.
const char *route_allow(enum route_kind kind);
