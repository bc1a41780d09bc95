// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_client.h"

#include "common/rpc/rpc_pool.h"
#include "common/rpc/rpc_stats.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ATTEMPTS_MAX 4
#define BACKOFF_US (10 * US_PER_MS)

struct method {
    char *full_name; // "dunlin.v1.Writer/CreateLink"
    bool repeatable;
    struct rpc_method_stats stats;
};

// One service on the client's sockets.
struct stub {
    ProtobufCService base; // first: what callers hold
    struct rpc_client *client;
    struct method *methods;
    struct stub *next;
};

struct rpc_client {
    char *peer;
    int64_t timeout_us;
    struct rpc_pool *pool;
    struct stub *first; // of the options
    struct stub *_Atomic others;
    struct metric *retries;
};

// A call from its first attempt to its outcome.
struct call {
    struct rpc_client *client;
    const struct method *method;
    const ProtobufCMessageDescriptor *output;
    Dunlin__V1__RpcRequest request;
    int64_t deadline_us;
    struct rpc_avoid avoid;
    bool again; // the last attempt failed in a way that another one may mend
    struct rpc_arena arena;
    const ProtobufCMessage *answer;
    struct problem problem;
};

static enum status fail(struct call *call, enum status status, const char *reason, const char *message) {
    (void)problem_set(&call->problem, status, reason, message, call->client->peer);
    call->problem.retry_after_s = status == STATUS_UNAVAILABLE ? 1 : 0;
    return status;
}

static enum status fail_deadline(struct call *call) {
    return fail(call, STATUS_DEADLINE_EXCEEDED, "DEADLINE", "The %s service did not answer in time.");
}

// The server says that it did not begin, so another address may.
static bool is_passed_over(const struct problem *problem) {
    return strcmp(problem->reason, "DRAINING") == 0 || strcmp(problem->reason, "QUEUE_FULL") == 0;
}

static enum status read_answer(struct call *call, const struct rpc_answer *bytes) {
    static const char reason[] = "MALFORMED_ANSWER";
    struct problem why;
    const Dunlin__V1__RpcResponse *envelope = (const void *)rpc_unpack(
        &dunlin__v1__rpc_response__descriptor, bytes->bytes, bytes->len, &call->arena, reason, &why);
    if (envelope != NULL && envelope->code != STATUS_OK) {
        rpc_problem_read(envelope, &call->problem);
        call->avoid.never = is_passed_over(&call->problem);
        call->again = call->avoid.never;
        return call->problem.status;
    }
    if (envelope != NULL)
        call->answer =
            rpc_unpack(call->output, envelope->body.data, envelope->body.len, &call->arena, reason, &why);
    if (call->answer == NULL)
        return fail(call, STATUS_INTERNAL, reason, "The %s service gave an answer that can't be read.");
    return STATUS_OK;
}

static uint32_t ms_left(int64_t deadline_us) {
    int64_t left_us = deadline_us - base_monotonic_us();
    int64_t left_ms = left_us <= 0 ? 0 : (left_us + US_PER_MS - 1) / US_PER_MS;
    return left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms;
}

static enum status judge(struct call *call, enum rpc_sent sent, const struct rpc_answer *answer) {
    switch (sent) {
    case RPC_SENT_ANSWERED:
        return read_answer(call, answer);
    case RPC_SENT_LATE:
        return fail_deadline(call);
    case RPC_SENT_LOST:
        call->again = call->method->repeatable;
        return fail(call, STATUS_UNAVAILABLE, "CONNECTION_LOST",
            "The %s service went away; the call may have been done.");
    case RPC_SENT_NOTHING:
        break;
    }
    call->again = true;
    return fail(call, STATUS_UNAVAILABLE, "PEER_UNREACHABLE", "The %s service can't be reached.");
}

// NULL member: no address is up, or none but the one that passed the call over, whose word then stands.
static enum status attempt(struct call *call) {
    struct rpc_pool *pool = call->client->pool;
    bool passed_over = call->again && call->avoid.never;
    call->again = false;
    struct rpc_member *member = rpc_pool_borrow(pool, &call->avoid, call->deadline_us);
    if (member == NULL && passed_over)
        return call->problem.status;
    if (member == NULL && base_monotonic_us() >= call->deadline_us)
        return fail_deadline(call);
    if (member == NULL)
        return fail(call, STATUS_UNAVAILABLE, "PEER_UNREACHABLE", "The %s service can't be reached.");
    struct rpc_answer answer = {0};
    call->avoid = (struct rpc_avoid){.id = member->id};
    call->request.has_timeout_ms = true;
    call->request.timeout_ms = ms_left(call->deadline_us);
    enum rpc_sent sent = rpc_peer_call(member->peer, &call->request, call->deadline_us, &answer);
    rpc_pool_give_back(pool, member);
    enum status status = judge(call, sent, &answer);
    rpc_answer_done(&answer);
    return status;
}

// Between half and the whole of a growing wait; false where the deadline comes first.
static bool back_off(struct call *call, unsigned attempts) {
    int64_t most_us = BACKOFF_US << attempts;
    int64_t wait_us = most_us / 2 + (int64_t)(rpc_pool_random(call->client->pool) % (uint64_t)(most_us / 2));
    if (base_monotonic_us() + wait_us >= call->deadline_us)
        return false;
    const struct timespec wait = {.tv_sec = wait_us / US_PER_S, .tv_nsec = wait_us % US_PER_S * 1000};
    (void)nanosleep(&wait, NULL);
    return true;
}

static enum status run(struct call *call) {
    for (unsigned attempts = 0;; attempts++) {
        enum status status = attempt(call);
        if (!call->again || attempts + 1 == ATTEMPTS_MAX || !back_off(call, attempts))
            return status;
        metric_inc(call->client->retries);
    }
}

static enum status refuse_size(struct call *call, size_t size) {
    return problem_set(&call->problem, STATUS_RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE",
        "The request is over the limit: it has %zu bytes, a message may have %zu.", size, RPC_MESSAGE_MAX);
}

// The sender checks: past the limit, the peer would close the connection under everyone's calls.
static enum status pack_and_run(struct call *call, const ProtobufCMessage *input) {
    if (base_monotonic_us() >= call->deadline_us)
        return fail_deadline(call);
    size_t size = protobuf_c_message_get_packed_size(input);
    if (size > RPC_MESSAGE_MAX)
        return refuse_size(call, size);
    uint8_t *body = malloc(size + 1);
    if (body == NULL)
        return refuse_size(call, size);
    (void)protobuf_c_message_pack(input, body);
    call->request.has_body = true;
    call->request.body = (ProtobufCBinaryData){.len = size, .data = body};
    call->request.has_timeout_ms = true;
    call->request.timeout_ms = UINT32_MAX; // its longest form, for the check
    size = dunlin__v1__rpc_request__get_packed_size(&call->request);
    enum status status = size > RPC_MESSAGE_MAX ? refuse_size(call, size) : run(call);
    free(body);
    return status;
}

static void invoke(ProtobufCService *service, unsigned index, const ProtobufCMessage *input,
    ProtobufCClosure closure, void *closure_data) {
    struct stub *stub = (struct stub *)service;
    REQUIRE(index < service->descriptor->n_methods);
    int64_t begun_us = base_monotonic_us();
    struct call call = {.client = stub->client,
        .method = &stub->methods[index],
        .output = service->descriptor->methods[index].output,
        .deadline_us = begun_us + rpc_time_left_us(stub->client->timeout_us)};
    dunlin__v1__rpc_request__init(&call.request);
    call.request.method = stub->methods[index].full_name;
    rpc_metadata_write(rpc_context(), &call.request);
    rpc_arena_init(&call.arena, RPC_ARENA_MAX);
    enum status status = pack_and_run(&call, input);
    rpc_method_stats_count(&stub->methods[index].stats, status, base_monotonic_us() - begun_us);
    if (status == STATUS_OK)
        rpc_succeed();
    else
        rpc_fail(&call.problem);
    closure(status == STATUS_OK ? call.answer : NULL, closure_data);
    rpc_arena_done(&call.arena);
}

static bool is_listed(const char *name, const char *const *names) {
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void init_method(struct method *method, const ProtobufCServiceDescriptor *service, const char *name,
    const char *const *repeatable) {
    size_t size = strlen(service->name) + 1 + strlen(name) + 1;
    method->full_name = base_calloc(size, 1);
    (void)snprintf(method->full_name, size, "%s/%s", service->name, name);
    method->repeatable = is_listed(name, repeatable);
    rpc_method_stats_init(&method->stats, &rpc_client_metrics[RPC_CLIENT_HANDLED], service->name, name);
}

static struct stub *create_stub(
    struct rpc_client *client, const ProtobufCServiceDescriptor *service, const char *const *repeatable) {
    struct stub *stub = base_calloc(1, sizeof *stub);
    stub->base = (ProtobufCService){.descriptor = service, .invoke = invoke};
    stub->client = client;
    stub->methods = base_calloc(service->n_methods + 1, sizeof *stub->methods);
    for (unsigned i = 0; i < service->n_methods; i++)
        init_method(&stub->methods[i], service, service->methods[i].name, repeatable);
    return stub;
}

static void free_stub(struct stub *stub) {
    for (unsigned i = 0; i < stub->base.descriptor->n_methods; i++)
        free(stub->methods[i].full_name);
    free(stub->methods);
    free(stub);
}

enum status rpc_client_open(
    const struct rpc_client_options *options, struct rpc_client **out, struct problem *why) {
    struct rpc_targets targets;
    enum status status = rpc_resolve_parse(options->target, &targets, why);
    if (status != STATUS_OK)
        return status;
    REQUIRE(options->timeout_us > 0);
    struct rpc_client *client = base_calloc(1, sizeof *client);
    client->peer = base_strdup(options->peer);
    client->timeout_us = options->timeout_us;
    client->retries = metric_add(&rpc_client_metrics[RPC_CLIENT_RETRIES], options->peer);
    client->first = create_stub(client, options->service, options->repeatable);
    client->pool = rpc_pool_open(options->peer, &targets);
    *out = client;
    return STATUS_OK;
}

void rpc_client_close(struct rpc_client *client) {
    if (client == NULL)
        return;
    rpc_pool_close(client->pool);
    for (struct stub *stub = client->others, *next; stub != NULL; stub = next) {
        next = stub->next;
        free_stub(stub);
    }
    free_stub(client->first);
    free(client->peer);
    free(client);
}

ProtobufCService *rpc_client_service(struct rpc_client *client) {
    return &client->first->base;
}

ProtobufCService *rpc_client_add_service(
    struct rpc_client *client, const ProtobufCServiceDescriptor *service, const char *const *repeatable) {
    struct stub *stub = create_stub(client, service, repeatable);
    stub->next = atomic_load(&client->others);
    while (!atomic_compare_exchange_weak(&client->others, &stub->next, stub))
        continue;
    return &stub->base;
}

bool rpc_client_is_up(const struct rpc_client *client) {
    return rpc_pool_is_up(client->pool);
}
