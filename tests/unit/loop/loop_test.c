// SPDX-License-Identifier: MIT
#include "common/loop/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct bench {
    struct loop *loop;
    struct loop_timer *timer;
    struct loop_timer *limit;
    struct loop_watch *watch;
    struct loop_wake *wake;
    int fd;
    int fired;
    int woken;
    unsigned seen;
};

static void gave_up(void *arg) {
    (void)arg;
    fail_msg("the loop did not end in time");
}

static int setup(void **state) {
    struct bench *bench = base_calloc(1, sizeof *bench);
    bench->loop = loop_create();
    bench->limit = loop_timer_create(bench->loop, gave_up, bench);
    loop_timer_start(bench->limit, 5000);
    *state = bench;
    return 0;
}

static int teardown(void **state) {
    struct bench *bench = *state;
    loop_timer_free(bench->timer);
    loop_timer_free(bench->limit);
    loop_watch_free(bench->watch);
    loop_wake_free(bench->wake);
    loop_free(bench->loop);
    free(bench);
    return 0;
}

static void count_and_stop(void *arg) {
    struct bench *bench = arg;
    bench->fired++;
    loop_stop(bench->loop);
}

static void timer_fires_once_and_not_early(void **state) {
    struct bench *bench = *state;
    bench->timer = loop_timer_create(bench->loop, count_and_stop, bench);
    int64_t begin = base_monotonic_us();
    loop_timer_start(bench->timer, 30);
    loop_run(bench->loop);
    int64_t took = base_monotonic_us() - begin;
    assert_in_range(took, 29 * US_PER_MS, 2 * US_PER_S);
    struct loop_timer *after = loop_timer_create(bench->loop, count_and_stop, bench);
    loop_timer_start(after, 60);
    loop_run(bench->loop);
    assert_int_equal(bench->fired, 2);
    loop_timer_free(after);
}

static void timer_that_was_stopped_stays_silent(void **state) {
    struct bench *bench = *state;
    bench->timer = loop_timer_create(bench->loop, gave_up, bench);
    struct loop_timer *after = loop_timer_create(bench->loop, count_and_stop, bench);
    loop_timer_start(bench->timer, 0);
    loop_timer_stop(bench->timer);
    loop_timer_start(bench->timer, 5);
    loop_timer_stop(bench->timer);
    loop_timer_start(after, 20);
    loop_run(bench->loop);
    assert_int_equal(bench->fired, 1);
    loop_timer_free(after);
}

static void spin(void *arg) {
    struct bench *bench = arg;
    bench->fired++;
    loop_timer_start(bench->timer, 0);
}

static void on_readable(void *arg, unsigned events) {
    struct bench *bench = arg;
    bench->seen |= events;
    loop_stop(bench->loop);
}

// A 0-ms timer that starts itself again must let descriptors and other timers have their turn.
static void zero_timer_does_not_starve_others(void **state) {
    struct bench *bench = *state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    bench->watch = loop_watch_create(bench->loop, pair[0], on_readable, bench);
    loop_watch_set(bench->watch, LOOP_READ);
    bench->timer = loop_timer_create(bench->loop, spin, bench);
    loop_timer_start(bench->timer, 0);
    assert_int_equal(write(pair[1], "x", 1), 1);
    loop_run(bench->loop);
    assert_int_equal(bench->seen, LOOP_READ);

    loop_watch_set(bench->watch, 0);
    struct loop_timer *after = loop_timer_create(bench->loop, count_and_stop, bench);
    loop_timer_start(after, 10);
    loop_run(bench->loop);
    assert_true(bench->fired > 10);
    loop_timer_free(after);
    loop_watch_free(bench->watch);
    bench->watch = NULL;
    assert_int_equal(close(pair[0]), 0);
    assert_int_equal(close(pair[1]), 0);
}

static void drain_one(void *arg, unsigned events) {
    struct bench *bench = arg;
    char byte;
    bench->seen |= events;
    if ((events & LOOP_READ) != 0 && read(bench->fd, &byte, 1) == 1)
        bench->fired++;
    if (bench->fired == 3) {
        loop_watch_free(bench->watch);
        bench->watch = NULL;
        loop_stop(bench->loop);
    }
}

static void watch_is_level_triggered_and_reports_what_it_waits_for(void **state) {
    struct bench *bench = *state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    bench->fd = pair[0];
    bench->watch = loop_watch_create(bench->loop, pair[0], drain_one, bench);
    loop_watch_set(bench->watch, LOOP_READ | LOOP_WRITE);
    assert_int_equal(write(pair[1], "abc", 3), 3);
    loop_run(bench->loop);
    assert_int_equal(bench->fired, 3);
    assert_int_equal(bench->seen, LOOP_READ | LOOP_WRITE);
    assert_int_equal(close(pair[0]), 0);
    assert_int_equal(close(pair[1]), 0);
}

static void on_wake(void *arg) {
    struct bench *bench = arg;
    bench->woken++;
    loop_stop(bench->loop);
}

static void *send_wake(void *arg) {
    struct bench *bench = arg;
    loop_wake_send(bench->wake);
    return NULL;
}

static void wake_crosses_threads(void **state) {
    struct bench *bench = *state;
    bench->wake = loop_wake_create(bench->loop, on_wake, bench);
    loop_wake_send(bench->wake);
    loop_wake_send(bench->wake);
    loop_run(bench->loop);
    assert_int_equal(bench->woken, 1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, send_wake, bench), 0);
    loop_run(bench->loop);
    assert_int_equal(bench->woken, 2);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void free_takes_null(void **state) {
    (void)state;
    loop_timer_free(NULL);
    loop_watch_free(NULL);
    loop_wake_free(NULL);
    loop_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timer_fires_once_and_not_early, setup, teardown),
        cmocka_unit_test_setup_teardown(timer_that_was_stopped_stays_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(zero_timer_does_not_starve_others, setup, teardown),
        cmocka_unit_test_setup_teardown(
            watch_is_level_triggered_and_reports_what_it_waits_for, setup, teardown),
        cmocka_unit_test_setup_teardown(wake_crosses_threads, setup, teardown),
        cmocka_unit_test(free_takes_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
