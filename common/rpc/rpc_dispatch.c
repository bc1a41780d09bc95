// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_dispatch.h"

#include <stdlib.h>
#include <string.h>

#define PING_MAX 1024

// A request on its way through the checks.
struct request {
    struct rpc_arena *arena;
    const Dunlin__V1__RpcRequest *envelope;
    ProtobufCService *service;
    const ProtobufCMethodDescriptor *method;
    unsigned index;
    struct rpc_method_stats *stats;
    struct rpc_context context;
};

// What the handler's closure is given.
struct reply {
    struct rpc_response *response;
    unsigned calls;
    bool answered;
};

static void init_methods(
    struct rpc_dispatch *dispatch, size_t at, const ProtobufCServiceDescriptor *service) {
    dispatch->methods[at] = base_calloc(service->n_methods + 1, sizeof *dispatch->methods[at]);
    for (unsigned i = 0; i < service->n_methods; i++)
        rpc_method_stats_init(&dispatch->methods[at][i], &rpc_server_metrics[RPC_SERVER_HANDLED],
            service->name, service->methods[i].name);
}

void rpc_dispatch_init(struct rpc_dispatch *dispatch, const struct rpc_worker *worker, int64_t timeout_us,
    bool (*serving)(void *arg), void *arg) {
    const struct metric_family *families = &rpc_server_metrics[RPC_SERVER_HANDLED];
    *dispatch =
        (struct rpc_dispatch){.worker = worker, .timeout_us = timeout_us, .serving = serving, .arg = arg};
    dispatch->malformed = metric_add(&rpc_server_metrics[RPC_SERVER_MALFORMED]);
    rpc_method_stats_init(&dispatch->unknown, families, "unknown", "unknown");
    rpc_method_stats_init(&dispatch->health, families, RPC_HEALTH_SERVICE, "Check");
    for (size_t i = 0; worker != NULL && i < worker->service_count; i++)
        init_methods(dispatch, i, worker->services[i]->descriptor);
}

void rpc_dispatch_done(struct rpc_dispatch *dispatch) {
    for (size_t i = 0; i < RPC_SERVICES_MAX; i++)
        free(dispatch->methods[i]);
}

static ProtobufCService *find_service(
    const struct rpc_worker *worker, const char *name, size_t len, size_t *at) {
    for (size_t i = 0; worker != NULL && i < worker->service_count; i++) {
        const char *candidate = worker->services[i]->descriptor->name;
        if (strlen(candidate) == len && memcmp(candidate, name, len) == 0) {
            *at = i;
            return worker->services[i];
        }
    }
    return NULL;
}

// protobuf-c would call a handler that a service left NULL. Services with an invoke() of their own have no
// such table.
static bool has_handler(const ProtobufCService *service, unsigned index) {
    if (service->invoke != protobuf_c_service_invoke_internal)
        return true;
    void (*handler)(void);
    memcpy(&handler, (const char *)service + sizeof *service + index * sizeof handler, sizeof handler);
    return handler != NULL;
}

// Finds the handler for "package.Service/Method"; false where there is none.
static bool find_handler(const struct rpc_dispatch *dispatch, struct request *request) {
    const char *name = request->envelope->method;
    const char *slash = strchr(name, '/');
    size_t at = 0;
    if (slash == NULL)
        return false;
    ProtobufCService *service = find_service(dispatch->worker, name, (size_t)(slash - name), &at);
    if (service == NULL)
        return false;
    const ProtobufCServiceDescriptor *descriptor = service->descriptor;
    const ProtobufCMethodDescriptor *method =
        protobuf_c_service_descriptor_get_method_by_name(descriptor, slash + 1);
    if (method == NULL)
        return false;
    unsigned index = (unsigned)(method - descriptor->methods);
    if (index >= descriptor->n_methods || !has_handler(service, index))
        return false;
    request->service = service;
    request->method = method;
    request->index = index;
    request->stats = &dispatch->methods[at][index];
    return true;
}

static enum status find_method(
    const struct rpc_dispatch *dispatch, struct request *request, struct problem *why) {
    if (find_handler(dispatch, request))
        return STATUS_OK;
    return problem_set(why, STATUS_UNIMPLEMENTED, "UNKNOWN_METHOD", "There is no method '%.120s' here.",
        request->envelope->method);
}

static int64_t deadline_of(
    const struct rpc_dispatch *dispatch, const Dunlin__V1__RpcRequest *envelope, int64_t received_us) {
    int64_t timeout_us = dispatch->timeout_us;
    if (envelope->has_timeout_ms && envelope->timeout_ms * US_PER_MS < timeout_us)
        timeout_us = envelope->timeout_ms * US_PER_MS;
    return received_us + timeout_us;
}

static void close_call(const ProtobufCMessage *message, void *data) {
    struct reply *reply = data;
    if (reply->calls++ > 0 || message == NULL)
        return;
    reply->answered = true;
    rpc_response_answer(reply->response, message);
}

static void invoke(
    const struct request *request, const ProtobufCMessage *input, struct rpc_response *response) {
    struct reply reply = {.response = response};
    rpc_succeed(); // a failure that an earlier request left on this thread is not this one's
    const struct rpc_context *previous = rpc_context_swap(&request->context);
    request->service->invoke(request->service, request->index, input, close_call, &reply);
    (void)rpc_context_swap(previous);
    if (reply.calls > 1) {
        struct problem why;
        (void)problem_set(
            &why, STATUS_INTERNAL, "", "The handler of %s answered twice.", request->method->name);
        rpc_response_refuse(response, &why);
    } else if (!reply.answered) {
        rpc_response_refuse(response, rpc_outcome()); // OK in there, or no closure at all: INTERNAL
    }
}

static enum status expect_in_time(const struct request *request, struct problem *why) {
    if (base_monotonic_us() < request->context.deadline_us)
        return STATUS_OK;
    return problem_set(
        why, STATUS_DEADLINE_EXCEEDED, "NOT_BEGUN", "The deadline passed before the work began.");
}

static enum status run(struct rpc_dispatch *dispatch, struct request *request, int64_t received_us,
    struct rpc_response *response, struct problem *why) {
    if (!rpc_metadata_read(request->envelope, &request->context, why))
        return why->status;
    if (strcmp(request->envelope->method, RPC_HEALTH_METHOD) == 0) {
        request->stats = &dispatch->health;
        rpc_health_answer(response, dispatch->serving(dispatch->arg));
        return STATUS_OK;
    }
    enum status status = find_method(dispatch, request, why);
    if (status != STATUS_OK)
        return status;
    request->context.deadline_us = deadline_of(dispatch, request->envelope, received_us);
    const ProtobufCMessage *input = rpc_unpack(request->method->input, request->envelope->body.data,
        request->envelope->body.len, request->arena, "MALFORMED_REQUEST", why);
    if (input == NULL)
        return why->status;
    status = expect_in_time(request, why);
    if (status != STATUS_OK)
        return status;
    invoke(request, input, response);
    return STATUS_OK;
}

void rpc_dispatch_run(struct rpc_dispatch *dispatch, struct rpc_arena *arena, const void *bytes, size_t len,
    int64_t received_us, struct rpc_response *response) {
    struct problem why = {0};
    struct request request = {.arena = arena, .stats = &dispatch->unknown};
    request.envelope = (const void *)rpc_unpack(
        &dunlin__v1__rpc_request__descriptor, bytes, len, arena, "MALFORMED_ENVELOPE", &why);
    enum status status = why.status;
    if (request.envelope == NULL)
        metric_inc(dispatch->malformed);
    else
        status = run(dispatch, &request, received_us, response, &why);
    if (status != STATUS_OK)
        rpc_response_refuse(response, &why);
    rpc_method_stats_count(
        request.stats, (enum status)response->message.code, base_monotonic_us() - received_us);
}

bool rpc_dispatch_is_ping(const void *bytes, size_t len) {
    // Field 1 comes first from every known encoder; a ping in another order is answered by a worker.
    static const char start[] = "\x0A\x16" RPC_HEALTH_METHOD;
    _Static_assert(sizeof RPC_HEALTH_METHOD - 1 == 0x16, "the second byte is the length of the name");
    return len <= PING_MAX && len >= sizeof start - 1 && memcmp(bytes, start, sizeof start - 1) == 0;
}
