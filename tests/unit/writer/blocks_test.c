// SPDX-License-Identifier: MIT
#include "services/writer/blocks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/writer/blocks_bench.h"

static void next_sizes_follow_how_long_a_block_lasted(void **state) {
    (void)state;
    static const struct {
        uint64_t size;
        int64_t lasted_us;
        uint64_t size_min, next;
    } rows[] = {
        {1000, BLOCKS_LAST_US, 1, 1000},
        {1000, BLOCKS_LAST_US / 2, 1, 2000},
        {1000, BLOCKS_LAST_US / 8, 1, 8000},
        {1000, US_PER_S, 1, 8000},
        {1000, 1, 1, 8000},
        {1000, 0, 1, 8000},
        {1000, -5, 1, 8000},
        {1000, BLOCKS_LAST_US / 2 * 3, 1, 666},
        {1000, BLOCKS_LAST_US * 2, 1, 500},
        {1000, BLOCKS_LAST_US * 1000, 1, 500},
        {1000, INT64_MAX, 1, 500},
        {1000, BLOCKS_LAST_US * 1000, 900, 900},
        {1, BLOCKS_LAST_US * 1000, 1, 1},
        {1, 1, 1, 8},
        {BLOCKS_SIZE_MAX / 4, 1, 1, BLOCKS_SIZE_MAX},
        {BLOCKS_SIZE_MAX, 1, 1, BLOCKS_SIZE_MAX},
        {BLOCKS_SIZE_MAX, BLOCKS_LAST_US * 9, 1, BLOCKS_SIZE_MAX / 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(blocks_next_size(rows[i].size, rows[i].lasted_us, rows[i].size_min), rows[i].next);
}

static void values_come_in_order(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench.fake.next = 5000;
    bench_start(&bench, 100);
    for (uint64_t i = 0; i < 250; i++)
        takes_value(&bench, 5000 + i);
    assert_true(blocks_is_ready(bench.blocks));
    bench_done(&bench);
}

static void the_next_block_is_claimed_at_half(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench_start(&bench, 100);
    await_left(&bench, 100);
    for (uint64_t i = 0; i < 49; i++)
        takes_value(&bench, i);
    assert_int_equal(calls_of(&bench), 1);
    assert_int_equal(metric_value(bench.left), 51);
    takes_value(&bench, 49);
    await_left(&bench, 150);
    assert_int_equal(calls_of(&bench), 2);
    assert_int_equal(metric_value(bench.claimed), 2);
    for (uint64_t i = 50; i < 100; i++)
        takes_value(&bench, i);
    assert_int_equal(calls_of(&bench), 2);
    assert_int_equal(metric_value(bench.left), 100);
    bench_done(&bench);
}

static void a_block_that_ends_soon_is_followed_by_a_larger_one(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench_start(&bench, 100);
    for (uint64_t i = 0; i < 50; i++)
        takes_value(&bench, i);
    await_left(&bench, 150); // the second block is claimed before the first one's end tells anything
    for (uint64_t i = 50; i < 151; i++)
        takes_value(&bench, i);
    await_calls(&bench, 3);
    (void)pthread_mutex_lock(&bench.fake.lock);
    assert_int_equal(bench.fake.last_size, 800);
    (void)pthread_mutex_unlock(&bench.fake.lock);
    bench_done(&bench);
}

static void a_ceiling_that_is_not_ready_says_when(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench.fake.retry_after_s = 31;
    fail_with(&bench, "CEILING_NOT_READY");
    bench_start(&bench, 100);
    await_calls(&bench, 2);
    struct problem why = {0};
    uint64_t counter = 42;
    assert_int_equal(blocks_take(bench.blocks, 0, &counter, &why), STATUS_UNAVAILABLE);
    assert_int_equal(counter, 42);
    assert_string_equal(why.reason, "CEILING_NOT_READY");
    assert_in_range(why.retry_after_s, 28, 31);
    fail_with(&bench, NULL);
    await_left(&bench, 100);
    takes_value(&bench, 0);
    bench_done(&bench);
}

#define TAKERS 8
#define TAKES 5000

struct taker {
    struct blocks *blocks;
    pthread_t thread;
    unsigned failures;
    uint64_t values[TAKES];
};

static void *take_many(void *arg) {
    struct taker *taker = arg;
    for (size_t i = 0; i < TAKES; i++)
        if (blocks_take(taker->blocks, 0, &taker->values[i], NULL) != STATUS_OK)
            taker->failures++;
    return NULL;
}

static void no_value_is_given_twice(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench_start(&bench, 16);
    struct taker *takers = base_calloc(TAKERS, sizeof *takers);
    bool *given = base_calloc(TAKERS * TAKES, sizeof *given);
    for (size_t i = 0; i < TAKERS; i++) {
        takers[i].blocks = bench.blocks;
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_many, &takers[i]), 0);
    }
    for (size_t i = 0; i < TAKERS; i++)
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
    for (size_t i = 0; i < TAKERS; i++) {
        assert_int_equal(takers[i].failures, 0);
        for (size_t j = 0; j < TAKES; j++) {
            // Blocks are used up in turn, so that the values have no gaps either.
            uint64_t value = takers[i].values[j];
            assert_in_range(value, 0, TAKERS * TAKES - 1);
            assert_false(given[value]);
            given[value] = true;
            assert_true(j == 0 || takers[i].values[j - 1] < value);
        }
    }
    free(given);
    free(takers);
    bench_done(&bench);
}

static void what_is_held_outlives_the_keyrange_service(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench_start(&bench, 20);
    await_left(&bench, 20);
    fail_with(&bench, "AWAY");
    for (uint64_t i = 0; i < 20; i++)
        takes_value(&bench, i);
    await_calls(&bench, 2);
    int64_t took = 0;
    for (int i = 0; i < 20; i++)
        took += takes_none(&bench, 0);
    assert_true(took < QUICK_US);
    assert_false(blocks_is_ready(bench.blocks));

    fail_with(&bench, NULL);
    await_left(&bench, 160); // the first block ended soon
    assert_true(blocks_is_ready(bench.blocks));
    for (uint64_t i = 20; i < 180; i++)
        takes_value(&bench, i);
    assert_int_equal(bench.fake.mismatches, 0);
    bench_done(&bench);
}

static void without_a_keyrange_service_nobody_waits(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench.fake.failure = "AWAY";
    bench_start(&bench, 20);
    await_calls(&bench, 1);
    assert_false(blocks_is_ready(bench.blocks));
    assert_true(takes_none(&bench, 0) < QUICK_US);
    assert_int_equal(metric_value(bench.claimed), 0);
    int64_t since = base_monotonic_us();
    await_calls(&bench, 4);
    assert_true(base_monotonic_us() - since > 500 * US_PER_MS); // 100, 200, 400 ms between them
    bench_done(&bench);
}

static void an_empty_block_is_a_failure(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench.fake.empty_blocks = true;
    bench_start(&bench, 20);
    assert_true(takes_none(&bench, 0) < QUICK_US);
    assert_int_equal(metric_value(bench.claimed), 0);
    bench_done(&bench);
}

struct late_taker {
    struct blocks *blocks;
    enum status status;
    uint64_t counter;
};

static void *take_one(void *arg) {
    struct late_taker *taker = arg;
    taker->status = blocks_take(taker->blocks, 0, &taker->counter, NULL);
    return NULL;
}

static void a_claim_under_way_is_waited_for(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench.fake.held_call = 1;
    bench_start(&bench, 20);
    await_held(&bench);
    int64_t took = takes_none(&bench, base_monotonic_us() + 50 * US_PER_MS);
    assert_in_range(took, 49 * US_PER_MS, QUICK_US);
    assert_true(takes_none(&bench, base_monotonic_us() - 1) < QUICK_US);
    assert_in_range(takes_none(&bench, 0), 499 * US_PER_MS, 1500 * US_PER_MS);
    pthread_t thread;
    struct late_taker taker = {.blocks = bench.blocks, .status = STATUS_UNKNOWN, .counter = 42};
    assert_int_equal(pthread_create(&thread, NULL, take_one, &taker), 0);
    hold_call(&bench, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(taker.status, STATUS_OK);
    assert_int_equal(taker.counter, 0);
    bench_done(&bench);
}

static void a_drop_forgets_every_value(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench_start(&bench, 20);
    await_left(&bench, 20);
    for (uint64_t i = 0; i < 10; i++)
        takes_value(&bench, i);
    await_left(&bench, 30); // a spare block, too
    hold_call(&bench, 3);
    blocks_drop(bench.blocks);
    assert_false(blocks_is_ready(bench.blocks));
    assert_int_equal(metric_value(bench.left), 0);
    await_held(&bench);
    hold_call(&bench, 0);
    takes_value(&bench, 40);
    bench_done(&bench);
}

static void a_drop_during_the_first_claim_keeps_nothing_of_it(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench.fake.held_call = 1;
    bench_start(&bench, 20);
    await_held(&bench);
    blocks_drop(bench.blocks);
    hold_call(&bench, 0);
    takes_value(&bench, 20);
    assert_int_equal(metric_value(bench.claimed), 1);
    bench_done(&bench);
}

static void a_drop_during_a_prefetch_keeps_nothing_of_it(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench.fake.held_call = 2;
    bench_start(&bench, 20);
    for (uint64_t i = 0; i < 10; i++)
        takes_value(&bench, i);
    await_held(&bench);
    blocks_drop(bench.blocks);
    assert_false(blocks_is_ready(bench.blocks));
    hold_call(&bench, 0);
    takes_value(&bench, 40);
    bench_done(&bench);
}

static void another_key_is_reported(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench);
    bench.fake.failure = "KEY_MISMATCH";
    bench_start(&bench, 20);
    int64_t until = base_monotonic_us() + PATIENCE_US;
    (void)pthread_mutex_lock(&bench.fake.lock);
    while (bench.fake.mismatches == 0)
        await_change(&bench.fake, until);
    (void)pthread_mutex_unlock(&bench.fake.lock);
    assert_true(takes_none(&bench, 0) < QUICK_US);
    bench_done(&bench);
}

static void a_stop_does_not_wait_for_the_next_try(void **state) {
    (void)state;
    blocks_stop(NULL);
    struct bench bench;
    bench_init(&bench);
    bench.fake.failure = "AWAY";
    bench_start(&bench, 20);
    await_calls(&bench, 4); // the next try is 800 ms away
    int64_t since = base_monotonic_us();
    bench_done(&bench);
    assert_true(base_monotonic_us() - since < QUICK_US);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_sizes_follow_how_long_a_block_lasted),
        cmocka_unit_test(values_come_in_order),
        cmocka_unit_test(the_next_block_is_claimed_at_half),
        cmocka_unit_test(a_block_that_ends_soon_is_followed_by_a_larger_one),
        cmocka_unit_test(a_ceiling_that_is_not_ready_says_when),
        cmocka_unit_test(no_value_is_given_twice),
        cmocka_unit_test(what_is_held_outlives_the_keyrange_service),
        cmocka_unit_test(without_a_keyrange_service_nobody_waits),
        cmocka_unit_test(an_empty_block_is_a_failure),
        cmocka_unit_test(a_claim_under_way_is_waited_for),
        cmocka_unit_test(a_drop_forgets_every_value),
        cmocka_unit_test(a_drop_during_the_first_claim_keeps_nothing_of_it),
        cmocka_unit_test(a_drop_during_a_prefetch_keeps_nothing_of_it),
        cmocka_unit_test(another_key_is_reported),
        cmocka_unit_test(a_stop_does_not_wait_for_the_next_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
