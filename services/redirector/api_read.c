// SPDX-License-Identifier: MIT
#include "common/documents/documents.h"
#include "common/instant/instant.h"
#include "common/rpc/rpc.h"
#include "dunlin/v1/clicks.pb-c.h"
#include "dunlin/v1/writer.pb-c.h"
#include "services/redirector/api_call.h"
#include "services/redirector/query.h"

#include <stdio.h>
#include <string.h>

// ---- a link

struct get {
    const struct api_request *request;
    struct answer *answer;
};

// RFC 9110 section 13.1.2: weak comparison against a list, or "*".
static bool etag_matches(const char *if_none_match, const char *etag) {
    while (if_none_match != NULL && *if_none_match != '\0') {
        const char *tag = if_none_match + strspn(if_none_match, " \t,");
        if (*tag == '*')
            return true;
        if (strncmp(tag, "W/", 2) == 0)
            tag += 2;
        size_t len = strlen(etag);
        if (strncmp(tag, etag, len) == 0 && (tag[len] == '\0' || strchr(" \t,", tag[len]) != NULL))
            return true;
        if_none_match = tag + strcspn(tag, ",");
    }
    return false;
}

static void got(const Dunlin__V1__Link *link, void *arg) {
    struct get *get = arg;
    if (link == NULL)
        return;
    char etag[API_ETAG];
    api_format_etag(etag, link);
    // A 304 has the fields of the 200 that it stands for, the length too; the body isn't sent with it.
    if (etag_matches(get->request->if_none_match, etag))
        get->answer->status = 304;
    api_put_link(get->answer, link);
}

// Refuses where the query is not what the route takes; true where it was.
static bool takes_query(const struct api *api, const struct api_request *request, struct answer *answer,
    struct query_parameter *known, size_t count) {
    struct problem why = {0};
    if (query_parse(request->query, known, count, &why) == STATUS_OK)
        return true;
    api_refuse(api, answer, query_is_malformed(&why) ? 400 : 422, &why);
    return false;
}

// A segment that can't be a code names no link; but a bad query is told first.
static bool names_link(const struct api *api, const struct api_request *request, struct answer *answer) {
    if (request->route.code[0] != '\0')
        return true;
    struct problem why = {0};
    (void)problem_set(&why, STATUS_NOT_FOUND, "LINK_NOT_FOUND", "There is no such link of yours.");
    api_refuse(api, answer, 404, &why);
    return false;
}

void api_get(const struct api *api, const struct api_request *request, struct answer *answer) {
    if (!takes_query(api, request, answer, NULL, 0) || !names_link(api, request, answer))
        return;
    Dunlin__V1__GetLinkRequest call = DUNLIN__V1__GET_LINK_REQUEST__INIT;
    call.code = (char *)request->route.code;
    struct get get = {.request = request, .answer = answer};
    dunlin__v1__writer__get_link(api->writer, &call, got, &get);
    if (rpc_outcome()->status != STATUS_OK)
        answer_outcome(answer, rpc_outcome());
}

// ---- its clicks

static void counted(const Dunlin__V1__GetClicksResponse *response, void *arg) {
    struct answer *answer = arg;
    if (response == NULL)
        return;
    answer_header(answer, "Cache-Control", "private, no-store");
    answer_header(answer, "Content-Type", "application/json");
    struct json_writer json;
    json_begin(&json, &answer->body);
    documents_put_clicks(&json, response);
    buf_putc(&answer->body, '\n');
}

static protobuf_c_boolean read_day(
    const struct query_parameter *parameter, int32_t *out, struct problem *why) {
    if (!parameter->given)
        return false;
    if (!instant_parse_day(parameter->value, strlen(parameter->value), out))
        (void)problem_violate(why, parameter->name, "It must be a UTC day such as 2026-12-01.");
    return true;
}

void api_clicks(const struct api *api, const struct api_request *request, struct answer *answer) {
    struct query_parameter known[] = {{.name = "from"}, {.name = "to"}};
    if (!takes_query(api, request, answer, known, ARRAY_LEN(known)))
        return;
    Dunlin__V1__GetClicksRequest call = DUNLIN__V1__GET_CLICKS_REQUEST__INIT;
    struct problem why = {0};
    call.code = (char *)request->route.code;
    call.has_from_day = read_day(&known[0], &call.from_day, &why);
    call.has_to_day = read_day(&known[1], &call.to_day, &why);
    if (why.status != STATUS_OK) {
        api_refuse(api, answer, 422, &why);
        return;
    }
    if (!names_link(api, request, answer))
        return;
    dunlin__v1__clicks__get_clicks(api->clicks, &call, counted, answer);
    if (rpc_outcome()->status != STATUS_OK)
        answer_outcome(answer, rpc_outcome());
}
