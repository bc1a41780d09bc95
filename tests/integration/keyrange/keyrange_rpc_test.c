// SPDX-License-Identifier: MIT
// Claims, ceilings and advances as a worker answers them, on a real Postgres (DUNLIN_TEST_PG).
#include "dunlin/v1/keyrange.pb-c.h"
#include "services/keyrange/keyrange.h"
#include "services/keyrange/keyrange_rpc.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JUMP (UINT64_C(1) << 30)
#define HEADROOM ((UINT64_C(1) << 31) + (UINT64_C(1) << 27))

static uint8_t fingerprint[CODES_FINGERPRINT] = {1, 2, 3, 4, 5, 6, 7, 8};
static struct test_db *test;
static struct db *superuser;
static struct keyrange keyrange;
static struct rpc_worker worker;
static char memory_path[64];

static void open_worker(void) {
    struct problem why = {0};
    assert_int_equal(keyrange_init(&keyrange, &why), STATUS_OK);
    keyrange_rpc_open(&keyrange, 0, &worker);
}

static void close_worker(void) {
    keyrange_rpc_close(&keyrange, &worker);
    keyrange_done(&keyrange);
}

static int open_all(void **state) {
    (void)state;
    (void)snprintf(memory_path, sizeof memory_path, "/tmp/dunlin-keyrange-XXXXXX");
    int fd = mkstemp(memory_path);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)unlink(memory_path);
    test = test_db_create();
    superuser = test_db_open(test, "superuser");
    keyrange.config.pg_url = test_db_conninfo(test, "keyrange");
    keyrange.config.memory = memory_path;
    open_worker();
    return 0;
}

static int close_all(void **state) {
    (void)state;
    close_worker();
    (void)unlink(memory_path);
    db_free(superuser);
    test_db_drop(test);
    return 0;
}

// ---- calls

static Dunlin__V1__Known *word(Dunlin__V1__Known *out, uint32_t slot, uint64_t counter, uint64_t ceiling) {
    *out = (Dunlin__V1__Known)DUNLIN__V1__KNOWN__INIT;
    out->slot = slot;
    out->has_counter = out->has_ceiling = true;
    out->counter = counter;
    out->ceiling = ceiling;
    return out;
}

static void copy_block(const Dunlin__V1__Block *block, void *arg) {
    if (block != NULL)
        *(Dunlin__V1__Block *)arg = *block;
}

// The block's start; UINT64_MAX where it was refused.
static uint64_t claim(uint32_t slot, uint64_t size, Dunlin__V1__Known *known) {
    Dunlin__V1__ClaimBlockRequest request = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    request.slot = slot;
    request.size = size;
    request.key_fingerprint = (ProtobufCBinaryData){.len = sizeof fingerprint, .data = fingerprint};
    request.n_known = known != NULL;
    request.known = &known;
    Dunlin__V1__Block block = {.start = UINT64_MAX};
    rpc_succeed();
    dunlin__v1__keyrange__claim_block(worker.services[0], &request, copy_block, &block);
    assert_true(block.start == UINT64_MAX || (block.slot == slot && block.end == block.start + size));
    return block.start;
}

struct ceilings {
    bool ok;
    uint64_t counter[KEYRANGE_SLOTS];
    uint64_t ceiling[KEYRANGE_SLOTS];
    bool has_fingerprint;
    uint8_t fingerprint[CODES_FINGERPRINT];
    uint64_t jumps;
};

static void copy_ceilings(const Dunlin__V1__Ceilings *answer, void *arg) {
    struct ceilings *out = arg;
    if (answer == NULL)
        return;
    assert_int_equal(answer->n_ceilings, KEYRANGE_SLOTS);
    for (uint32_t slot = 0; slot < KEYRANGE_SLOTS; slot++) {
        assert_int_equal(answer->ceilings[slot]->slot, slot);
        out->counter[slot] = answer->ceilings[slot]->counter;
        out->ceiling[slot] = answer->ceilings[slot]->ceiling;
    }
    out->has_fingerprint = answer->has_key_fingerprint;
    if (answer->has_key_fingerprint)
        memcpy(out->fingerprint, answer->key_fingerprint.data, CODES_FINGERPRINT);
    out->jumps = answer->jumps;
    out->ok = true;
}

static struct ceilings get(Dunlin__V1__Known *known) {
    Dunlin__V1__GetCeilingsRequest request = DUNLIN__V1__GET_CEILINGS_REQUEST__INIT;
    request.has_key_fingerprint = known != NULL;
    request.key_fingerprint = (ProtobufCBinaryData){.len = sizeof fingerprint, .data = fingerprint};
    request.n_known = known != NULL;
    request.known = &known;
    struct ceilings ceilings = {0};
    rpc_succeed();
    dunlin__v1__keyrange__get_ceilings(worker.services[0], &request, copy_ceilings, &ceilings);
    return ceilings;
}

static void copy_counter(const Dunlin__V1__AdvanceCounterResponse *answer, void *arg) {
    if (answer != NULL)
        *(uint64_t *)arg = answer->counter;
}

static uint64_t advance(uint32_t slot, uint64_t to, bool force) {
    Dunlin__V1__AdvanceCounterRequest request = DUNLIN__V1__ADVANCE_COUNTER_REQUEST__INIT;
    request.slot = slot;
    request.to = to;
    request.has_force = force;
    request.force = force;
    uint64_t counter = UINT64_MAX;
    rpc_succeed();
    dunlin__v1__keyrange__advance_counter(worker.services[0], &request, copy_counter, &counter);
    return counter;
}

static void refused(enum status status, const char *reason) {
    assert_int_equal(rpc_outcome()->status, status);
    assert_string_equal(rpc_outcome()->reason, reason);
}

// ---- tests

static void a_new_installation(void **state) {
    (void)state;
    struct ceilings ceilings = get(NULL);
    assert_true(ceilings.ok);
    assert_false(ceilings.has_fingerprint);
    assert_int_equal(ceilings.ceiling[0], HEADROOM);
    assert_int_equal(ceilings.ceiling[1], 0);
    assert_int_equal(claim(0, 1000, NULL), 0);
    ceilings = get(NULL);
    assert_true(ceilings.has_fingerprint);
    assert_memory_equal(ceilings.fingerprint, fingerprint, sizeof fingerprint);
    assert_int_equal(ceilings.counter[0], 1000);
    assert_int_equal(ceilings.jumps, 0);
    assert_int_equal(metric_value(keyrange.ceilings[0]), HEADROOM);
}

static void a_slot_that_is_not_ready_says_when(void **state) {
    (void)state;
    assert_int_equal(claim(1, 10, NULL), UINT64_MAX);
    refused(STATUS_UNAVAILABLE, "CEILING_NOT_READY");
    assert_in_range(rpc_outcome()->retry_after_s, 30, 31);
    assert_int_equal(get(NULL).ceiling[1], HEADROOM + (1 << 24));
    assert_int_equal(claim(1, 10, NULL), UINT64_MAX);
    test_db_run(superuser, "UPDATE dunlin.key_ranges SET ceiling_seen_at = ceiling_seen_at - interval '31 s'"
                           " WHERE slot = 1");
    assert_int_equal(claim(1, 10, NULL), 0);
    assert_int_equal(metric_value(keyrange.not_ready), 2);
}

static void requests_are_checked(void **state) {
    (void)state;
    Dunlin__V1__Known known;
    assert_int_equal(claim(7, 1, NULL), UINT64_MAX);
    assert_int_equal(rpc_outcome()->status, STATUS_INVALID_ARGUMENT);
    assert_int_equal(claim(0, 1, word(&known, 7, 0, 0)), UINT64_MAX);
    assert_int_equal(rpc_outcome()->status, STATUS_INVALID_ARGUMENT);
    assert_int_equal(claim(0, 1, word(&known, 0, 0, UINT64_C(27732715023889))), UINT64_MAX);
    assert_int_equal(rpc_outcome()->status, STATUS_INVALID_ARGUMENT);
    assert_false(get(word(&known, 0, UINT64_MAX, 0)).ok);
    assert_int_equal(rpc_outcome()->status, STATUS_INVALID_ARGUMENT);
    assert_int_equal(advance(7, 1, true), UINT64_MAX);
    assert_int_equal(rpc_outcome()->status, STATUS_INVALID_ARGUMENT);
    assert_int_equal(advance(0, UINT64_MAX, true), UINT64_MAX);
    assert_int_equal(rpc_outcome()->status, STATUS_INVALID_ARGUMENT);
}

static void a_word_moves_the_counters(void **state) {
    (void)state;
    Dunlin__V1__Known known;
    uint64_t next = get(NULL).counter[0];
    uint64_t jumps = get(NULL).jumps;
    assert_int_equal(claim(0, 10, word(&known, 0, next, 0)), next);
    next += 10;
    assert_int_equal(claim(0, 10, word(&known, 0, next + 90, 0)), next + 90 + JUMP);
    next += 90 + JUMP + 10;
    assert_true(get(NULL).jumps > jumps);
    // A redirector's word.
    struct ceilings ceilings = get(word(&known, 0, next + 1, 0));
    assert_int_equal(ceilings.counter[0], next + 1 + JUMP);
    assert_true(ceilings.jumps > jumps + 1);
    assert_int_equal(metric_value(keyrange.jumped), 2);
}

static void a_word_that_goes_too_far_is_refused(void **state) {
    (void)state;
    Dunlin__V1__Known known;
    uint64_t next = get(NULL).counter[0];
    assert_int_equal(claim(0, 10, word(&known, 0, next + (UINT64_C(1) << 33), 0)), UINT64_MAX);
    refused(STATUS_FAILED_PRECONDITION, "COUNTERS_FAR_BEHIND");
    assert_false(get(word(&known, 0, next + (UINT64_C(1) << 33), 0)).ok);
    assert_int_equal(get(NULL).counter[0], next);
    assert_int_equal(metric_value(keyrange.far_behind), 2);
}

// All callers were restarted, and the database is an old copy.
static void the_file_remembers(void **state) {
    (void)state;
    struct ceilings before = get(NULL);
    uint64_t jumps = before.jumps;
    close_worker();
    test_db_run(superuser, "UPDATE dunlin.key_ranges SET next_start = 1000, ceiling = 2281702376,"
                           " ceiling_ready = 2281702376 WHERE slot = 0");
    open_worker();
    uint64_t start = claim(0, 10, NULL);
    if (start == UINT64_MAX) { // past what was ready
        refused(STATUS_UNAVAILABLE, "CEILING_NOT_READY");
        (void)claim(0, 10, NULL);
        test_db_run(superuser, "UPDATE dunlin.key_ranges SET ceiling_seen_at = ceiling_seen_at - interval "
                               "'31 s' WHERE slot = 0");
        start = claim(0, 10, NULL);
    }
    assert_int_equal(start, before.ceiling[0] + JUMP);
    assert_true(get(NULL).jumps > jumps);
}

static void by_hand(void **state) {
    (void)state;
    uint64_t next = get(NULL).counter[0];
    assert_int_equal(advance(0, next - 1, false), next);
    assert_int_equal(advance(0, next + 5, false), next + 5);
    assert_int_equal(advance(0, next + 6 + (UINT64_C(1) << 33), false), UINT64_MAX);
    refused(STATUS_FAILED_PRECONDITION, "COUNTER_TOO_FAR");
    assert_int_equal(advance(0, next + 6 + (UINT64_C(1) << 33), true), next + 6 + (UINT64_C(1) << 33));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_installation),
        cmocka_unit_test(a_slot_that_is_not_ready_says_when),
        cmocka_unit_test(requests_are_checked),
        cmocka_unit_test(a_word_moves_the_counters),
        cmocka_unit_test(a_word_that_goes_too_far_is_refused),
        cmocka_unit_test(the_file_remembers),
        cmocka_unit_test(by_hand),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
