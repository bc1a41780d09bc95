// SPDX-License-Identifier: MIT
#include "services/redirector/click_ring.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CLICKS 1000000
#define RING 1024
#define PATIENCE_US (50 * US_PER_S)

static void what_went_in_comes_out_in_order(void **state) {
    (void)state;
    struct click_ring *ring = click_ring_create(8);
    struct click out[8] = {0};
    assert_int_equal(click_ring_count(ring), 0);
    assert_int_equal(click_ring_take(ring, out, 8), 0);
    assert_true(click_ring_push(ring, 11, "abcd"));
    assert_true(click_ring_push(ring, 12, "abcdefghijklmnopqrstuvwxyz0123"));
    assert_true(click_ring_push(ring, 13, "Ab3xYz9"));
    assert_int_equal(click_ring_count(ring), 3);
    assert_int_equal(click_ring_take(ring, out, 2), 2);
    assert_int_equal(out[0].at_us, 11);
    assert_string_equal(out[0].code, "abcd");
    assert_int_equal(out[1].at_us, 12);
    assert_string_equal(out[1].code, "abcdefghijklmnopqrstuvwxyz0123");
    assert_int_equal(click_ring_count(ring), 1);
    assert_int_equal(click_ring_take(ring, out, 0), 0);
    assert_int_equal(click_ring_take(ring, out, 8), 1);
    assert_string_equal(out[0].code, "Ab3xYz9");
    assert_int_equal(click_ring_count(ring), 0);
    click_ring_free(ring);
    click_ring_free(NULL);
}

static void a_full_ring_drops_the_new_click(void **state) {
    (void)state;
    static const struct {
        size_t asked, size;
    } rows[] = {{0, 1}, {1, 1}, {2, 2}, {3, 4}, {1000, 1024}, {1024, 1024}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct click_ring *ring = click_ring_create(rows[i].asked);
        struct click out;
        for (size_t j = 0; j < rows[i].size; j++)
            assert_true(click_ring_push(ring, (int64_t)j, "kept"));
        assert_false(click_ring_push(ring, 99999, "lost"));
        assert_int_equal(click_ring_count(ring), rows[i].size);
        assert_int_equal(click_ring_take(ring, &out, 1), 1);
        assert_int_equal(out.at_us, 0);
        assert_true(click_ring_push(ring, (int64_t)rows[i].size, "kept"));
        assert_false(click_ring_push(ring, 99999, "lost"));
        for (size_t j = 1; j <= rows[i].size; j++) {
            assert_int_equal(click_ring_take(ring, &out, 1), 1);
            assert_int_equal(out.at_us, j);
            assert_string_equal(out.code, "kept");
        }
        assert_int_equal(click_ring_take(ring, &out, 1), 0);
        click_ring_free(ring);
    }
}

static void it_wraps_at_any_fill(void **state) {
    (void)state;
    struct click_ring *ring = click_ring_create(8);
    struct click out[8];
    int64_t next_in = 0;
    int64_t next_out = 0;
    for (size_t round = 0; round < 1000; round++) {
        size_t more = round * 5 % 8 + 1;
        for (size_t i = 0; i < more; i++)
            if (click_ring_push(ring, next_in, "abcd"))
                next_in++;
        size_t taken = click_ring_take(ring, out, round * 3 % 8 + 1);
        for (size_t i = 0; i < taken; i++)
            assert_int_equal(out[i].at_us, next_out++);
        assert_int_equal(click_ring_count(ring), next_in - next_out);
    }
    assert_true(next_out > 1000);
    click_ring_free(ring);
}

// ---- two threads, and a third one that looks

struct traffic {
    struct click_ring *ring;
    atomic_bool stop;
    size_t most; // that the onlooker saw
    int64_t pushed;
};

static void *produce(void *arg) {
    struct traffic *traffic = arg;
    int64_t until = base_monotonic_us() + PATIENCE_US;
    char code[CODES_TEXT];
    while (traffic->pushed < CLICKS) {
        (void)snprintf(code, sizeof code, "code-%lld", (long long)traffic->pushed);
        while (!click_ring_push(traffic->ring, traffic->pushed, code)) {
            if (base_monotonic_us() > until)
                return NULL;
            (void)sched_yield();
        }
        traffic->pushed++;
    }
    return NULL;
}

static void *look_on(void *arg) {
    struct traffic *traffic = arg;
    while (!atomic_load(&traffic->stop)) {
        size_t count = click_ring_count(traffic->ring);
        if (count > traffic->most)
            traffic->most = count;
    }
    return NULL;
}

// Returns how many came, in order; less than CLICKS where they did not.
static int64_t consume(struct click_ring *ring) {
    static struct click out[100];
    int64_t until = base_monotonic_us() + PATIENCE_US;
    int64_t next = 0;
    while (next < CLICKS) {
        size_t taken = click_ring_take(ring, out, ARRAY_LEN(out));
        for (size_t i = 0; i < taken; i++, next++) {
            char code[CODES_TEXT];
            (void)snprintf(code, sizeof code, "code-%lld", (long long)next);
            if (out[i].at_us != next || strcmp(out[i].code, code) != 0)
                return next;
        }
        if (taken > 0)
            continue;
        if (base_monotonic_us() > until)
            return next;
        (void)sched_yield();
    }
    return next;
}

static void a_million_clicks_keep_their_order_between_threads(void **state) {
    (void)state;
    struct traffic traffic = {.ring = click_ring_create(RING)};
    pthread_t producer;
    pthread_t onlooker;
    assert_int_equal(pthread_create(&producer, NULL, produce, &traffic), 0);
    assert_int_equal(pthread_create(&onlooker, NULL, look_on, &traffic), 0);
    int64_t came = consume(traffic.ring);
    assert_int_equal(pthread_join(producer, NULL), 0);
    atomic_store(&traffic.stop, true);
    assert_int_equal(pthread_join(onlooker, NULL), 0);
    assert_int_equal(came, CLICKS);
    assert_int_equal(traffic.pushed, CLICKS);
    assert_int_equal(click_ring_count(traffic.ring), 0);
    assert_in_range(traffic.most, 0, RING);
    click_ring_free(traffic.ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_went_in_comes_out_in_order),
        cmocka_unit_test(a_full_ring_drops_the_new_click),
        cmocka_unit_test(it_wraps_at_any_fill),
        cmocka_unit_test(a_million_clicks_keep_their_order_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
