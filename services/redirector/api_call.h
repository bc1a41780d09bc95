// SPDX-License-Identifier: MIT
// One request to the JSON API: what came in, what it may call, and the answers that more than one resource
// gives.
#pragma once

#include "services/redirector/answer.h"
#include "services/redirector/route.h"
#include <protobuf-c/protobuf-c.h>

struct api {
    ProtobufCService *writer; // dunlin.v1.Writer
    ProtobufCService *clicks; // dunlin.v1.Clicks
};

#define API_GO_ON 100

struct api_request {
    struct route route;
    enum web_method method;
    int refusal; // what HTTP's own rules say of it (413), 0 for nothing
    // The client holds the body back until it is asked for: the answer's status is API_GO_ON where it is to
    // be, or it is the final answer.
    bool awaits_body;
    // Owned; NULL where the request has none.
    char *refusal_detail;
    char *request_id; // never NULL
    char *authorization;
    char *content_type;
    char *if_none_match;
    char *query;
    char *body;
    size_t body_len;
};
void api_request_done(struct api_request *request);

// Is its key known and does it permit something? Otherwise `answer` says so.
bool api_admits(const struct api *api, struct answer *answer);
// The answer to a request that is refused here: but 401 and 403 come before everything else that is wrong
// with it.
void api_refuse(const struct api *api, struct answer *answer, int http_status, const struct problem *why);
// The same with request->refusal.
void api_refuse_by_http(const struct api *api, const struct api_request *request, struct answer *answer);

// The link's document with its ETag.
struct Dunlin__V1__Link;
#define API_ETAG 48
void api_format_etag(char out[API_ETAG], const struct Dunlin__V1__Link *link);
void api_put_link(struct answer *answer, const struct Dunlin__V1__Link *link);

// ---- the resources, each in a file of its own; a create judges request->refusal itself, since 415 comes
// before it

void api_create(const struct api *api, const struct api_request *request, struct answer *answer);
void api_get(const struct api *api, const struct api_request *request, struct answer *answer);
void api_clicks(const struct api *api, const struct api_request *request, struct answer *answer);
