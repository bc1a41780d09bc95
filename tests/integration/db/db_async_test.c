// SPDX-License-Identifier: MIT
#include "async_bench.h"

static void test_ten_thousand_each_get_their_own(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 2, CALLS, 15 * US_PER_S);
    struct call *calls = bench->calls;
    assert_int_equal(start_echo(bench, &calls[0], 1), STATUS_UNAVAILABLE); // not up yet
    run(bench, is_up);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(start_echo(bench, &calls[i], i), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_OK], CALLS);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(calls[i].calls, 1);
}

static bool all_greeted(struct bench *bench) {
    return bench->greetings == 4;
}

static void test_calls_spread(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 4, 100, 5 * US_PER_S);
    run(bench, all_greeted);
    run(bench, tick_is_over);
    // Four that take a while, at once: in turn they would take four times as long.
    struct call *calls = bench->calls;
    int64_t begun = base_monotonic_us();
    for (int i = 0; i < 4; i++)
        assert_int_equal(start(bench, &calls[i], SLEEP, "0.5"), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_OK], 4);
    assert_true(base_monotonic_us() - begun < 1400 * US_PER_MS);
}

static void test_the_queue_is_bounded(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 1, 10, 5 * US_PER_S);
    run(bench, is_up);
    struct call *calls = bench->calls;
    for (int i = 0; i < 10; i++)
        assert_int_equal(start_echo(bench, &calls[i], i), STATUS_OK);
    assert_int_equal(start_echo(bench, &calls[10], 10), STATUS_RESOURCE_EXHAUSTED);
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_OK], 10);
    assert_int_equal(calls[10].calls, 0);
    check_echo(bench);
}

static void test_an_error_is_its_own_calls_alone(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 1, 100, 5 * US_PER_S);
    run(bench, is_up);
    struct call *good = bench->calls;
    struct call *bad = bench->calls + 10;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(start_echo(bench, &good[i], i), STATUS_OK);
        assert_int_equal(
            start(bench, &bad[i], i % 2 == 0 ? "SELECT 1/0" : "SELECT no_such_function()", NULL), STATUS_OK);
    }
    run(bench, all_called);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(good[i].status, STATUS_OK);
        assert_true(bad[i].status == STATUS_INTERNAL || bad[i].status == STATUS_UNAVAILABLE);
    }
    // What failed to be prepared is prepared again each time.
    static const char sql[] = "SELECT no_such_function(1)";
    for (int i = 0; i < 3; i++) {
        assert_int_equal(start(bench, &bad[0], sql, NULL), STATUS_OK);
        run(bench, all_called);
        assert_int_equal(bad[0].status, STATUS_INTERNAL);
    }
    assert_int_equal(bench->greetings, 1);
}

static void test_one_late_answer_is_dropped(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 1, 100, 800 * US_PER_MS);
    run(bench, is_up);
    int64_t pid = ask_pid(bench);
    struct call *late = bench->calls;
    int64_t begun = base_monotonic_us();
    assert_int_equal(start(bench, late, SLEEP, "1.2"), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(late->status, STATUS_DEADLINE_EXCEEDED);
    assert_in_range((late->at_us - begun) / US_PER_MS, 799, 1190);
    // The next one waits behind it and gets its own answer, on the same connection.
    check_echo(bench);
    assert_int_equal(ask_pid(bench), pid);
    assert_int_equal(late->calls, 1);
}

static bool half_a_deadline_is_over(struct bench *bench) {
    return bench->ticks == 40;
}

static void test_two_late_calls_close_the_connection(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 1, 100, US_PER_S);
    run(bench, is_up);
    int64_t pid = ask_pid(bench);
    struct call *late = bench->calls;
    struct call *behind = bench->calls + 2;
    assert_int_equal(start(bench, &late[0], SLEEP, "5"), STATUS_OK);
    assert_int_equal(start_echo(bench, &late[1], 1), STATUS_OK);
    run(bench, half_a_deadline_is_over);
    assert_int_equal(start_echo(bench, behind, 2), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(late[0].status, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(late[1].status, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(behind->status, STATUS_UNAVAILABLE);
    assert_int_equal(late[0].calls + late[1].calls + behind->calls, 3);
    run(bench, is_up);
    assert_true(ask_pid(bench) != pid);
    check_echo(bench);
}

static bool greeted_twice(struct bench *bench) {
    return bench->greetings == 2;
}

static void test_a_head_that_stays_late_closes_the_connection(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 1, 100, 600 * US_PER_MS);
    run(bench, is_up);
    struct call *late = bench->calls;
    int64_t begun = base_monotonic_us();
    assert_int_equal(start(bench, late, SLEEP, "10"), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(late->status, STATUS_DEADLINE_EXCEEDED);
    assert_true(db_async_is_up(bench->db));
    run(bench, greeted_twice);
    assert_true(base_monotonic_us() - begun >= 1200 * US_PER_MS);
    assert_int_equal(late->calls, 1);
}

static void test_a_terminated_backend(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 1, 100, 5 * US_PER_S);
    run(bench, is_up);
    struct call *calls = bench->calls;
    assert_int_equal(start_echo(bench, &calls[0], 0), STATUS_OK);
    // By the time it ends, all the others are on their way.
    static const char sql[] = "SELECT pg_sleep(0.3), pg_terminate_backend(pg_backend_pid()), pg_sleep(5)";
    assert_int_equal(start(bench, &calls[1], sql, NULL), STATUS_OK);
    for (int i = 2; i < 20; i++)
        assert_int_equal(start_echo(bench, &calls[i], i), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(calls[0].status, STATUS_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(calls[i].calls, 1);
        if (i > 0)
            assert_int_equal(calls[i].status, STATUS_UNAVAILABLE);
    }
    run(bench, is_up);
    assert_int_equal(bench->greetings, 2);
    check_echo(bench);
}

static void call_again(void *arg, enum status status, const struct db_rows *rows) {
    struct call *call = arg;
    struct bench *bench = call->bench;
    on_done(arg, status, rows);
    if (bench->sent < 1000) {
        const char *const params[] = {"4"};
        assert_int_equal(db_async_call(bench->db, ECHO, 1, params, call_again, call), STATUS_OK);
        bench->sent++;
    }
}

static void test_a_callback_may_call(void **state) {
    struct bench *bench = *state;
    open_db(
        bench, conninfo(), 2, 1, 5 * US_PER_S); // each callback's call needs the room of the one that ended
    run(bench, is_up);
    struct call *call = bench->calls;
    *call = (struct call){.bench = bench, .answer = 8};
    const char *const params[] = {"4"};
    assert_int_equal(db_async_call(bench->db, ECHO, 1, params, call_again, call), STATUS_OK);
    bench->sent++;
    run(bench, all_called);
    assert_int_equal(call->calls, 1000);
    assert_int_equal(bench->by_status[STATUS_OK], 1000);
}

static void test_close_cancels_once(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 2, 100, 5 * US_PER_S);
    run(bench, is_up);
    struct call *calls = bench->calls;
    for (int i = 0; i < 10; i++)
        assert_int_equal(start_echo(bench, &calls[i], i), STATUS_OK);
    db_async_close(bench->db);
    bench->db = NULL;
    assert_int_equal(bench->called, 10);
    assert_int_equal(bench->by_status[STATUS_CANCELLED], 10);
}

static void test_a_refused_greeting_never_comes_up(void **state) {
    struct bench *bench = *state;
    bench->verdict = STATUS_FAILED_PRECONDITION;
    open_db(bench, conninfo(), 1, 100, 5 * US_PER_S);
    run(bench, greeted_twice);
    assert_false(db_async_is_up(bench->db));
    bench->verdict = STATUS_OK;
    run(bench, is_up);
    check_echo(bench);
}

static void check_never_up(struct bench *bench, int port) {
    char text[80];
    (void)snprintf(text, sizeof text, "postgresql://nobody@127.0.0.1:%d/none", port);
    open_db(bench, text, 2, 100, 50 * US_PER_MS);
    run(bench, second_is_over);
    assert_true(bench->worst_gap_us < 500 * US_PER_MS);
    assert_false(db_async_is_up(bench->db));
    assert_int_equal(start_echo(bench, bench->calls, 1), STATUS_UNAVAILABLE);
    int64_t begun = base_monotonic_us();
    db_async_close(bench->db);
    bench->db = NULL;
    assert_true(base_monotonic_us() - begun < 500 * US_PER_MS);
}

static void test_a_silent_server_never_blocks(void **state) {
    int port = 0;
    int listener = listen_anywhere(&port);
    check_never_up(*state, port);
    (void)close(listener);
}

static void test_nobody_listens(void **state) {
    int port = 0;
    (void)close(listen_anywhere(&port));
    check_never_up(*state, port);
}

static void test_metrics(void **state) {
    struct bench *bench = *state;
    open_db(bench, conninfo(), 1, 100, 5 * US_PER_S);
    run(bench, is_up);
    check_echo(bench);
    struct buf text;
    buf_init(&text, 1 << 20);
    metrics_render(&text);
    assert_true(buf_ok(&text));
    // What the tests before this one did is in here too; what is under way is not.
    assert_non_null(strstr(buf_text(&text), "\ndunlin_db_async_calls_total{status=\"OK\"} "));
    assert_non_null(strstr(buf_text(&text), "\ndunlin_db_async_in_flight 0\n"));
    assert_non_null(strstr(buf_text(&text), "\ndunlin_db_async_connections 1\n"));
    buf_done(&text);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_ten_thousand_each_get_their_own),
        TEST(test_calls_spread),
        TEST(test_the_queue_is_bounded),
        TEST(test_an_error_is_its_own_calls_alone),
        TEST(test_one_late_answer_is_dropped),
        TEST(test_two_late_calls_close_the_connection),
        TEST(test_a_head_that_stays_late_closes_the_connection),
        TEST(test_a_terminated_backend),
        TEST(test_a_callback_may_call),
        TEST(test_close_cancels_once),
        TEST(test_a_refused_greeting_never_comes_up),
        TEST(test_a_silent_server_never_blocks),
        TEST(test_nobody_listens),
        TEST(test_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
