// SPDX-License-Identifier: MIT
#include "services/redirector/route.h"
#include "services/redirector/escape.h"

#include <string.h>

#define API_LINKS "/api/v1/links"
#define BIT(method) (1U << (method))

static const struct {
    unsigned methods;
    const char *allow;
} offers[] = {
    [ROUTE_HOME] = {BIT(WEB_GET) | BIT(WEB_HEAD), "GET, HEAD"},
    [ROUTE_ROBOTS] = {BIT(WEB_GET) | BIT(WEB_HEAD), "GET, HEAD"},
    [ROUTE_FAVICON] = {BIT(WEB_GET) | BIT(WEB_HEAD), "GET, HEAD"},
    [ROUTE_SERVER] = {BIT(WEB_OPTIONS), "OPTIONS"},
    [ROUTE_CODE] = {BIT(WEB_GET) | BIT(WEB_HEAD), "GET, HEAD"},
    [ROUTE_NONE] = {BIT(WEB_GET) | BIT(WEB_HEAD), "GET, HEAD"},
    [ROUTE_API_LINKS] = {BIT(WEB_POST) | BIT(WEB_OPTIONS), "POST, OPTIONS"},
    [ROUTE_API_LINK] = {BIT(WEB_GET) | BIT(WEB_HEAD) | BIT(WEB_OPTIONS), "GET, HEAD, OPTIONS"},
    [ROUTE_API_CLICKS] = {BIT(WEB_GET) | BIT(WEB_HEAD) | BIT(WEB_OPTIONS), "GET, HEAD, OPTIONS"},
    [ROUTE_API_NONE] = {0, ""},
};

// Decodes one segment; false where the result can't be a code, malformed escapes included.
static bool decode_code(const char *segment, size_t len, char out[CODES_TEXT]) {
    size_t used = 0;
    for (size_t i = 0; i < len;) {
        int byte = escape_next(segment, len, &i);
        if (byte < 0 || used == CODES_TEXT - 1)
            return false;
        out[used++] = (char)byte;
    }
    out[used] = '\0';
    return codes_is_plausible(out, used);
}

static void set_code(struct route *out, const char *segment, size_t len) {
    char code[CODES_TEXT];
    if (decode_code(segment, len, code))
        memcpy(out->code, code, sizeof code);
}

static void parse_api(const char *path, struct route *out) {
    out->kind = ROUTE_API_NONE;
    size_t prefix = strlen(API_LINKS);
    if (strncmp(path, API_LINKS, prefix) != 0)
        return;
    const char *rest = path + prefix;
    if (*rest == '\0') {
        out->kind = ROUTE_API_LINKS;
        return;
    }
    size_t len = *rest == '/' ? strcspn(rest + 1, "/") : 0;
    if (len == 0)
        return;
    const char *after = rest + 1 + len;
    if (*after == '\0')
        out->kind = ROUTE_API_LINK;
    else if (strcmp(after, "/clicks") == 0)
        out->kind = ROUTE_API_CLICKS;
    else
        return;
    set_code(out, rest + 1, len);
}

void route_parse(const char *path, struct route *out) {
    *out = (struct route){.kind = ROUTE_NONE};
    if (strncmp(path, "/api", 4) == 0 && (path[4] == '\0' || path[4] == '/')) {
        parse_api(path, out);
    } else if (strcmp(path, "/") == 0) {
        out->kind = ROUTE_HOME;
    } else if (strcmp(path, "*") == 0) {
        out->kind = ROUTE_SERVER;
    } else if (strcmp(path, "/robots.txt") == 0) {
        out->kind = ROUTE_ROBOTS;
    } else if (strcmp(path, "/favicon.ico") == 0) {
        out->kind = ROUTE_FAVICON;
    } else if (path[0] == '/') {
        size_t len = strcspn(path + 1, "/");
        const char *after = path + 1 + len;
        if (*after == '\0' || strcmp(after, "/") == 0)
            set_code(out, path + 1, len);
        if (out->code[0] != '\0')
            out->kind = ROUTE_CODE;
    }
}

bool route_is_api(enum route_kind kind) {
    return kind >= ROUTE_API_LINKS;
}

bool route_offers(enum route_kind kind, enum web_method method) {
    return (offers[kind].methods & BIT(method)) != 0;
}

const char *route_allow(enum route_kind kind) {
    return offers[kind].allow;
}
