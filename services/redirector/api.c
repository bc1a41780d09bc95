// SPDX-License-Identifier: MIT
#include "services/redirector/api.h"
#include "common/rpc/rpc.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// A key that can't even be one needs no RPC, and could not be sent in one.
static bool has_bearer(const char *authorization) {
    if (authorization == NULL || strncasecmp(authorization, "Bearer ", 7) != 0)
        return false;
    const char *key = authorization + 7 + strspn(authorization + 7, " ");
    size_t len = 0;
    while (key[len] > ' ' && key[len] < 0x7F)
        len++;
    return len > 0 && key[len] == '\0' && strlen(authorization) <= RPC_AUTHORIZATION_MAX;
}

static void dispatch(const struct api *api, const struct api_request *request, struct answer *answer) {
    if (request->route.kind == ROUTE_API_LINKS)
        api_create(api, request, answer);
    else if (request->refusal != 0)
        api_refuse_by_http(api, request, answer);
    else if (request->route.kind == ROUTE_API_CLICKS)
        api_clicks(api, request, answer);
    else
        api_get(api, request, answer);
}

void api_answer(const struct api *api, const struct api_request *request, struct answer *answer) {
    if (!has_bearer(request->authorization)) {
        struct problem why = {0};
        (void)problem_set(&why, STATUS_UNAUTHENTICATED, "API_KEY_MISSING",
            "Send your API key as \"Authorization: Bearer KEY\".");
        answer_outcome(answer, &why);
        return;
    }
    struct rpc_context context = {.deadline_us = base_monotonic_us() + API_TIMEOUT_US};
    (void)snprintf(context.authorization, sizeof context.authorization, "%s", request->authorization);
    (void)snprintf(context.request_id, sizeof context.request_id, "%s", request->request_id);
    const struct rpc_context *before = rpc_context_swap(&context);
    dispatch(api, request, answer);
    (void)rpc_context_swap(before);
}
