// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_envelope.h"

#include "common/rpc/rpc_text.h"
#include "dunlin/v1/health.pb-c.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEALTH_ARENA 4096

ProtobufCMessage *rpc_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len,
    struct rpc_arena *arena, const char *reason, struct problem *why) {
    ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &arena->allocator, len, bytes);
    if (message == NULL && arena->exhausted) {
        (void)problem_set(why, STATUS_RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE",
            "A %s of %zu bytes takes more memory than the %zu bytes that a message may.",
            descriptor->short_name, len, arena->limit);
        return NULL;
    }
    if (message == NULL) {
        (void)problem_set(why, STATUS_INVALID_ARGUMENT, reason, "The %zu bytes are no %s message.", len,
            descriptor->short_name);
        return NULL;
    }
    return rpc_text_check(message, why) ? message : NULL;
}

static bool is_request_id(const char *text) {
    size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return len >= 1 && len <= RPC_REQUEST_ID_MAX && text[len] == '\0';
}

// Version 00: "00-", 32 hex digits, "-", 16, "-", 2; lower case; neither id is all zeros.
// https://www.w3.org/TR/trace-context/#traceparent-header
static bool is_traceparent(const char *text) {
    static const char shape[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    _Static_assert(sizeof shape == RPC_TRACEPARENT_LEN + 1, "the shape has the length of a traceparent");
    if (strlen(text) != RPC_TRACEPARENT_LEN)
        return false;
    for (size_t i = 0; i < RPC_TRACEPARENT_LEN; i++) {
        bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
        if (shape[i] == 'x' ? !hex : text[i] != shape[i])
            return false;
    }
    return strspn(text + 3, "0") < 32 && strspn(text + 36, "0") < 16;
}

static bool is_authorization(const char *text) {
    size_t len = 0;
    while (text[len] >= 0x20 && text[len] <= 0x7E)
        len++;
    return len >= 1 && len <= RPC_AUTHORIZATION_MAX && text[len] == '\0';
}

static void copy(char *out, size_t size, const char *text) {
    (void)snprintf(out, size, "%s", text == NULL ? "" : text);
}

bool rpc_metadata_read(const Dunlin__V1__RpcRequest *request, struct rpc_context *out, struct problem *why) {
    memset(why, 0, sizeof *why);
    if (request->authorization != NULL && !is_authorization(request->authorization))
        (void)problem_violate(
            why, "authorization", "It must be 1 to %d printable ASCII characters.", RPC_AUTHORIZATION_MAX);
    if (request->request_id != NULL && !is_request_id(request->request_id))
        (void)problem_violate(why, "request_id",
            "It must be 1 to %d characters of A-Z, a-z, 0-9, '.', '_', '-'.", RPC_REQUEST_ID_MAX);
    if (request->traceparent != NULL && !is_traceparent(request->traceparent))
        (void)problem_violate(why, "traceparent", "It must be a W3C traceparent of version 00.");
    if (why->status != STATUS_OK)
        return false;
    copy(out->authorization, sizeof out->authorization, request->authorization);
    copy(out->request_id, sizeof out->request_id, request->request_id);
    copy(out->traceparent, sizeof out->traceparent, request->traceparent);
    return true;
}

// protobuf-c has no const members; packing only reads.
static char *or_absent(const char *text) {
    return text[0] == '\0' ? NULL : (char *)(uintptr_t)text;
}

void rpc_metadata_write(const struct rpc_context *context, Dunlin__V1__RpcRequest *request) {
    request->authorization = or_absent(context->authorization);
    request->request_id = or_absent(context->request_id);
    request->traceparent = or_absent(context->traceparent);
}

void rpc_response_init(struct rpc_response *response) {
    dunlin__v1__rpc_response__init(&response->message);
    response->body = NULL;
}

void rpc_response_done(struct rpc_response *response) {
    free(response->body);
    response->body = NULL;
}

static void mend(struct problem *problem) {
    rpc_text_mend(problem->reason);
    rpc_text_mend(problem->message);
    for (size_t i = 0; i < problem->violation_count; i++) {
        rpc_text_mend(problem->violations[i].field);
        rpc_text_mend(problem->violations[i].rule);
    }
}

void rpc_response_refuse(struct rpc_response *response, const struct problem *why) {
    rpc_response_done(response);
    rpc_response_init(response);
    struct problem *problem = &response->problem;
    *problem = *why;
    if (problem->status == STATUS_OK)
        (void)problem_set(problem, STATUS_INTERNAL, "", "The call failed without saying why.");
    mend(problem);
    Dunlin__V1__RpcResponse *message = &response->message;
    message->code = (uint32_t)problem->status;
    message->message = problem->message;
    message->reason = or_absent(problem->reason);
    message->has_retry_after_s = problem->retry_after_s != 0;
    message->retry_after_s = problem->retry_after_s;
    for (size_t i = 0; i < problem->violation_count; i++) {
        dunlin__v1__field_violation__init(&response->violations[i]);
        response->violations[i].field = problem->violations[i].field;
        response->violations[i].rule = problem->violations[i].rule;
        response->list[i] = &response->violations[i];
    }
    message->n_violations = problem->violation_count;
    message->violations = response->list;
}

static void refuse_size(struct rpc_response *response, size_t size) {
    struct problem why;
    (void)problem_set(&why, STATUS_RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE",
        "The answer is over the limit: its body has %zu bytes, a whole message may have %zu.", size,
        RPC_MESSAGE_MAX);
    rpc_response_refuse(response, &why);
}

void rpc_response_answer(struct rpc_response *response, const ProtobufCMessage *message) {
    rpc_response_done(response);
    rpc_response_init(response);
    size_t size = protobuf_c_message_get_packed_size(message);
    response->body = size <= RPC_MESSAGE_MAX ? malloc(size + 1) : NULL;
    if (response->body == NULL) {
        refuse_size(response, size);
        return;
    }
    (void)protobuf_c_message_pack(message, response->body);
    response->message.code = STATUS_OK;
    response->message.has_body = true;
    response->message.body = (ProtobufCBinaryData){.len = size, .data = response->body};
    if (dunlin__v1__rpc_response__get_packed_size(&response->message) > RPC_MESSAGE_MAX)
        refuse_size(response, size);
}

void rpc_problem_read(const Dunlin__V1__RpcResponse *message, struct problem *out) {
    memset(out, 0, sizeof *out);
    out->status = status_from_wire(message->code);
    copy(out->reason, sizeof out->reason, message->reason);
    copy(out->message, sizeof out->message, message->message);
    out->retry_after_s = message->has_retry_after_s ? message->retry_after_s : 0;
    for (size_t i = 0; i < message->n_violations && i < PROBLEM_VIOLATIONS_MAX; i++) {
        struct problem_violation *violation = &out->violations[out->violation_count++];
        copy(violation->field, sizeof violation->field, message->violations[i]->field);
        copy(violation->rule, sizeof violation->rule, message->violations[i]->rule);
    }
    mend(out);
}

void rpc_health_answer(struct rpc_response *response, bool serving) {
    Dunlin__V1__HealthCheckResponse answer = DUNLIN__V1__HEALTH_CHECK_RESPONSE__INIT;
    answer.serving = serving ? DUNLIN__V1__HEALTH_CHECK_RESPONSE__SERVING__SERVING
                             : DUNLIN__V1__HEALTH_CHECK_RESPONSE__SERVING__NOT_SERVING;
    rpc_response_answer(response, &answer.base);
}

bool rpc_health_read(const void *bytes, size_t len, bool *serving) {
    struct rpc_arena arena;
    struct problem why;
    rpc_arena_init(&arena, HEALTH_ARENA);
    const Dunlin__V1__RpcResponse *envelope = (const void *)rpc_unpack(
        &dunlin__v1__rpc_response__descriptor, bytes, len, &arena, "MALFORMED_ANSWER", &why);
    const Dunlin__V1__HealthCheckResponse *answer = NULL;
    if (envelope != NULL && envelope->code == STATUS_OK)
        answer = (const void *)rpc_unpack(&dunlin__v1__health_check_response__descriptor, envelope->body.data,
            envelope->body.len, &arena, "MALFORMED_ANSWER", &why);
    bool understood = answer != NULL;
    if (understood)
        *serving = answer->serving == DUNLIN__V1__HEALTH_CHECK_RESPONSE__SERVING__SERVING;
    rpc_arena_done(&arena);
    return understood;
}
