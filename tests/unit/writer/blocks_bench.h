// SPDX-License-Identifier: MIT
// Blocks on a keyrange service in this process that can be held, can fail, and remembers what it was asked.
// Include after cmocka.h.
#pragma once

#include "common/rpc/rpc.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include "services/writer/blocks.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define SLOT 3
#define PATIENCE_US (5 * US_PER_S)
#define QUICK_US (400 * US_PER_MS) // less than a take's longest wait

// ---- a keyrange service in this process

struct fake {
    Dunlin__V1__Keyrange_Service base; // first
    pthread_mutex_t lock;              // guards what follows
    pthread_cond_t changed;
    uint64_t next;
    unsigned calls;
    unsigned held_call; // the number of the call that waits until it is set to 0; 0: none
    bool is_held;
    const char *failure; // the reason with which calls fail; NULL: they don't
    uint32_t retry_after_s;
    bool empty_blocks;
    uint64_t last_size;
    uint64_t known_end; // of the last block
    bool asked_well;    // each request so far had our slot, fingerprint, a deadline and told what is known
    unsigned mismatches;
};

static void await_change(struct fake *fake, int64_t until_us) {
    struct timespec at = {.tv_sec = until_us / US_PER_S, .tv_nsec = until_us % US_PER_S * 1000};
    assert_true(base_monotonic_us() < until_us);
    (void)pthread_cond_timedwait(&fake->changed, &fake->lock, &at);
}

// The caller's word: the end of its last block, and nothing before the first one.
static bool tells_what_is_known(const struct fake *fake, const Dunlin__V1__ClaimBlockRequest *request) {
    if (fake->known_end == 0)
        return request->n_known == 0;
    return request->n_known == 1 && request->known[0]->slot == SLOT && request->known[0]->has_counter &&
           request->known[0]->counter == fake->known_end;
}

static bool is_well_asked(const Dunlin__V1__ClaimBlockRequest *request) {
    static const uint8_t fingerprint[CODES_FINGERPRINT] = {1, 2, 3, 4, 5, 6, 7, 8};
    int64_t left = rpc_time_left_us(0);
    return request->slot == SLOT && request->key_fingerprint.len == CODES_FINGERPRINT &&
           memcmp(request->key_fingerprint.data, fingerprint, CODES_FINGERPRINT) == 0 && left > 0 &&
           left <= 2 * US_PER_S;
}

static void claim_block(Dunlin__V1__Keyrange_Service *service, const Dunlin__V1__ClaimBlockRequest *request,
    Dunlin__V1__Block_Closure closure, void *data) {
    struct fake *fake = (struct fake *)service;
    Dunlin__V1__Block block = DUNLIN__V1__BLOCK__INIT;
    struct problem why = {0};
    (void)pthread_mutex_lock(&fake->lock);
    fake->asked_well = fake->asked_well && is_well_asked(request) && tells_what_is_known(fake, request);
    fake->last_size = request->size;
    unsigned call = ++fake->calls;
    (void)pthread_cond_broadcast(&fake->changed);
    while (fake->held_call == call) {
        fake->is_held = true;
        (void)pthread_cond_broadcast(&fake->changed);
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    }
    fake->is_held = false;
    if (fake->failure != NULL) {
        (void)problem_set(&why, STATUS_FAILED_PRECONDITION, fake->failure, "planned");
        why.retry_after_s = fake->retry_after_s;
    } else {
        block.slot = request->slot;
        block.start = fake->next;
        if (!fake->empty_blocks)
            fake->next += request->size;
        block.end = fake->next;
        fake->known_end = fake->empty_blocks ? fake->known_end : block.end;
    }
    (void)pthread_mutex_unlock(&fake->lock);
    if (why.status != STATUS_OK)
        RPC_REFUSE(closure, &why, data);
    else
        RPC_ANSWER(closure, &block, data);
}

static void mismatched(void *arg) {
    struct fake *fake = arg;
    (void)pthread_mutex_lock(&fake->lock);
    fake->mismatches++;
    (void)pthread_cond_broadcast(&fake->changed);
    (void)pthread_mutex_unlock(&fake->lock);
}

// ---- both ends

struct bench {
    struct fake fake;
    struct metric *claimed;
    struct metric *left;
    struct blocks *blocks;
};

static void bench_init(struct bench *bench) {
    static const struct metric_family claimed = {
        "test_blocks_total", METRIC_COUNTER, "blocks", NULL, "Blocks.", "None."};
    static const struct metric_family left = {
        "test_values_left", METRIC_GAUGE, "values", NULL, "Values.", "None."};
    *bench = (struct bench){.claimed = metric_add(&claimed), .left = metric_add(&left)};
    struct fake *fake = &bench->fake;
    fake->base = (Dunlin__V1__Keyrange_Service){
        .base = {&dunlin__v1__keyrange__descriptor, protobuf_c_service_invoke_internal, NULL},
        .claim_block = claim_block,
    };
    fake->asked_well = true;
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&fake->lock, NULL);
    (void)pthread_cond_init(&fake->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

static void bench_start(struct bench *bench, uint64_t size_min) {
    const struct blocks_options options = {
        .keyrange = &bench->fake.base.base,
        .slot = SLOT,
        .fingerprint = {1, 2, 3, 4, 5, 6, 7, 8},
        .size_min = size_min,
        .mismatched = mismatched,
        .arg = &bench->fake,
        .claimed = bench->claimed,
        .left = bench->left,
    };
    bench->blocks = blocks_start(&options);
}

static void bench_done(struct bench *bench) {
    blocks_stop(bench->blocks);
    assert_true(bench->fake.asked_well);
    (void)pthread_cond_destroy(&bench->fake.changed);
    (void)pthread_mutex_destroy(&bench->fake.lock);
}

static void hold_call(struct bench *bench, unsigned call) {
    (void)pthread_mutex_lock(&bench->fake.lock);
    bench->fake.held_call = call;
    (void)pthread_cond_broadcast(&bench->fake.changed);
    (void)pthread_mutex_unlock(&bench->fake.lock);
}

static void fail_with(struct bench *bench, const char *reason) {
    (void)pthread_mutex_lock(&bench->fake.lock);
    bench->fake.failure = reason;
    (void)pthread_mutex_unlock(&bench->fake.lock);
}

static void await_calls(struct bench *bench, unsigned calls) {
    int64_t until = base_monotonic_us() + PATIENCE_US;
    (void)pthread_mutex_lock(&bench->fake.lock);
    while (bench->fake.calls < calls)
        await_change(&bench->fake, until);
    (void)pthread_mutex_unlock(&bench->fake.lock);
}

static void await_held(struct bench *bench) {
    int64_t until = base_monotonic_us() + PATIENCE_US;
    (void)pthread_mutex_lock(&bench->fake.lock);
    while (!bench->fake.is_held)
        await_change(&bench->fake, until);
    (void)pthread_mutex_unlock(&bench->fake.lock);
}

static unsigned calls_of(struct bench *bench) {
    (void)pthread_mutex_lock(&bench->fake.lock);
    unsigned calls = bench->fake.calls;
    (void)pthread_mutex_unlock(&bench->fake.lock);
    return calls;
}

static void await_left(struct bench *bench, int64_t left) {
    const struct timespec pause = {.tv_nsec = 1000000};
    int64_t until = base_monotonic_us() + PATIENCE_US;
    while (metric_value(bench->left) != left) {
        assert_true(base_monotonic_us() < until);
        (void)nanosleep(&pause, NULL);
    }
}

static void takes_value(struct bench *bench, uint64_t value) {
    struct problem why = {0};
    uint64_t counter = UINT64_MAX;
    assert_int_equal(blocks_take(bench->blocks, 0, &counter, &why), STATUS_OK);
    assert_int_equal(counter, value);
    assert_int_equal(why.status, STATUS_OK);
}

// Returns how long it took.
static int64_t takes_none(struct bench *bench, int64_t deadline_us) {
    struct problem why = {0};
    uint64_t counter = 42;
    int64_t since = base_monotonic_us();
    assert_int_equal(blocks_take(bench->blocks, deadline_us, &counter, &why), STATUS_UNAVAILABLE);
    int64_t took = base_monotonic_us() - since;
    assert_int_equal(counter, 42);
    assert_int_equal(why.status, STATUS_UNAVAILABLE);
    assert_string_equal(why.reason, "KEYRANGE_UNAVAILABLE");
    assert_int_equal(why.retry_after_s, 1);
    return took;
}
