// SPDX-License-Identifier: MIT
// For the tests of RPC: a keyrange service that does as its request says, a server around it and a client
// before it, all in this process and on loopback.
#pragma once

#include "common/log/log.h"
#include "common/rpc/rpc_client.h"
#include "common/rpc/rpc_server.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_US (20 * US_PER_S) // how long a test waits for what must come

// What a request's size asks for; anything else is answered with start = size, end = size + slot.
enum { FAKE_FAIL = 1000001, FAKE_HOLD, FAKE_FINGERPRINT };

// What the handlers saw, and the gate that FAKE_HOLD waits at. Guarded by the lock.
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fake_opened = PTHREAD_COND_INITIALIZER;
static bool fake_gate_open;
static struct rpc_context fake_seen;
static int64_t fake_left_us;
static atomic_uint fake_begun;
static atomic_bool fake_ready = true;

static void fake_gate(bool open) {
    (void)pthread_mutex_lock(&fake_lock);
    fake_gate_open = open;
    (void)pthread_cond_broadcast(&fake_opened);
    (void)pthread_mutex_unlock(&fake_lock);
}

static void fake_note(bool hold) {
    (void)pthread_mutex_lock(&fake_lock);
    fake_seen = *rpc_context();
    fake_left_us = rpc_time_left_us(-1);
    (void)atomic_fetch_add(&fake_begun, 1);
    while (hold && !fake_gate_open)
        (void)pthread_cond_wait(&fake_opened, &fake_lock);
    (void)pthread_mutex_unlock(&fake_lock);
}

static void fake_claim_block(Dunlin__V1__Keyrange_Service *service,
    const Dunlin__V1__ClaimBlockRequest *request, Dunlin__V1__Block_Closure closure, void *data) {
    (void)service;
    struct problem why = {0};
    fake_note(request->size == FAKE_HOLD);
    if (request->size == FAKE_FAIL) {
        (void)problem_set(&why, STATUS_ABORTED, "TOO_BUSY", "Not now.");
        (void)problem_violate(&why, "slot", "It must be even.");
        (void)problem_violate(&why, "size", "It must be small.");
        why.retry_after_s = 7;
        RPC_REFUSE(closure, &why, data);
        return;
    }
    Dunlin__V1__Block block = DUNLIN__V1__BLOCK__INIT;
    block.slot = request->slot;
    block.start = request->size == FAKE_FINGERPRINT ? request->key_fingerprint.len : request->size;
    block.end = block.start + request->slot;
    RPC_ANSWER(closure, &block, data);
}

static bool fake_is_ready(void *arg) {
    (void)arg;
    return atomic_load(&fake_ready);
}

static void fake_open(void *arg, unsigned index, struct rpc_worker *out) {
    (void)arg;
    (void)index;
    Dunlin__V1__Keyrange_Service *service = base_calloc(1, sizeof *service);
    dunlin__v1__keyrange__init(service, NULL);
    service->claim_block = fake_claim_block;
    *out = (struct rpc_worker){.services = {&service->base}, .service_count = 1, .state = service};
}

static void fake_close(void *arg, struct rpc_worker *worker) {
    (void)arg;
    free(worker->state);
}

static struct rpc_server *fake_start(uint16_t port, unsigned workers, unsigned queue_max) {
    char listen[64];
    struct problem why = {0};
    struct rpc_server *server = NULL;
    (void)snprintf(listen, sizeof listen, "tcp://127.0.0.1:%u", port);
    const struct rpc_server_options options = {.listen = listen,
        .workers = workers,
        .queue_max = queue_max,
        .timeout_us = 10 * US_PER_S,
        .ready = fake_is_ready,
        .worker_open = fake_open,
        .worker_close = fake_close};
    if (rpc_server_start(&options, &server, &why) != STATUS_OK)
        (void)fprintf(stderr, "%s\n", why.message);
    return server;
}

static inline struct rpc_client *fake_client_to(const char *target, const char *const *repeatable) {
    struct problem why = {0};
    struct rpc_client *client = NULL;
    const struct rpc_client_options options = {.peer = "keyrange",
        .target = target,
        .service = &dunlin__v1__keyrange__descriptor,
        .repeatable = repeatable,
        .timeout_us = 10 * US_PER_S};
    assert_int_equal(rpc_client_open(&options, &client, &why), STATUS_OK);
    return client;
}

static inline struct rpc_client *fake_client(uint16_t port, const char *const *repeatable) {
    char target[64];
    (void)snprintf(target, sizeof target, "tcp://127.0.0.1:%u", port);
    return fake_client_to(target, repeatable);
}

static inline void fake_keep(const Dunlin__V1__Block *block, void *data) {
    uint64_t *out = data;
    if (block != NULL) {
        out[0] = block->start;
        out[1] = block->end;
    }
}

// One call; block[0] and block[1] are start and end where it went well.
static inline enum status fake_claim(
    struct rpc_client *client, uint32_t slot, uint64_t size, uint64_t block[2]) {
    Dunlin__V1__ClaimBlockRequest request = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    request.slot = slot;
    request.size = size;
    dunlin__v1__keyrange__claim_block(rpc_client_service(client), &request, fake_keep, block);
    return rpc_outcome()->status;
}

// A call with a deadline of its own.
static inline enum status fake_claim_within(struct rpc_client *client, uint64_t size, int64_t timeout_us) {
    uint64_t block[2];
    struct rpc_context context = {.deadline_us = base_monotonic_us() + timeout_us};
    const struct rpc_context *before = rpc_context_swap(&context);
    enum status status = fake_claim(client, 1, size, block);
    (void)rpc_context_swap(before);
    return status;
}

static inline void fake_pause(void) {
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    (void)nanosleep(&pause, NULL);
}

// Asks again and again; false where it does not come true.
static inline bool fake_comes_true(bool (*holds)(void *arg), void *arg) {
    int64_t end_us = base_monotonic_us() + PATIENCE_US;
    while (!holds(arg)) {
        if (base_monotonic_us() > end_us)
            return false;
        fake_pause();
    }
    return true;
}

static inline bool fake_is_up(void *client) {
    return rpc_client_is_up(client);
}

static inline bool fake_is_down(void *client) {
    return !rpc_client_is_up(client);
}
