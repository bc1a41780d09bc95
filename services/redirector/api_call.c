// SPDX-License-Identifier: MIT
#include "services/redirector/api_call.h"
#include "common/documents/documents.h"
#include "common/rpc/rpc.h"
#include "dunlin/v1/writer.pb-c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void api_request_done(struct api_request *request) {
    free(request->refusal_detail);
    free(request->request_id);
    free(request->authorization);
    free(request->content_type);
    free(request->if_none_match);
    free(request->query);
    free(request->body);
    *request = (struct api_request){0};
}

static void whose(const Dunlin__V1__WhoAmIResponse *response, void *arg) {
    (void)response;
    (void)arg;
}

bool api_admits(const struct api *api, struct answer *answer) {
    const Dunlin__V1__WhoAmIRequest request = DUNLIN__V1__WHO_AM_IREQUEST__INIT;
    dunlin__v1__writer__who_am_i(api->writer, &request, whose, NULL);
    const struct problem *outcome = rpc_outcome();
    if (outcome->status != STATUS_UNAUTHENTICATED && outcome->status != STATUS_PERMISSION_DENIED)
        return true;
    answer_outcome(answer, outcome);
    return false;
}

void api_refuse(const struct api *api, struct answer *answer, int http_status, const struct problem *why) {
    if (api_admits(api, answer))
        answer_problem(answer, http_status, why);
}

void api_refuse_by_http(const struct api *api, const struct api_request *request, struct answer *answer) {
    struct problem why = {0};
    (void)problem_set(&why, STATUS_INVALID_ARGUMENT, "", "%s",
        request->refusal_detail != NULL ? request->refusal_detail : "");
    api_refuse(api, answer, request->refusal, &why);
}

void api_format_etag(char out[API_ETAG], const Dunlin__V1__Link *link) {
    bool expired = link->state == DUNLIN__V1__LINK_STATE__LINK_STATE_EXPIRED;
    (void)snprintf(out, API_ETAG, "\"%" PRIu64 "%s\"", link->version, expired ? "-expired" : "");
}

void api_put_link(struct answer *answer, const Dunlin__V1__Link *link) {
    char etag[API_ETAG];
    api_format_etag(etag, link);
    answer_header_copy(answer, "ETag", etag);
    answer_header(answer, "Cache-Control", "private, no-cache");
    answer_header(answer, "Content-Type", "application/json");
    struct json_writer json;
    json_begin(&json, &answer->body);
    documents_put_link(&json, link);
    buf_putc(&answer->body, '\n');
}
