// SPDX-License-Identifier: MIT
// For the tests of db_async: a loop with a limit, and calls that check their own answers.
#pragma once

#include "common/db/db_async.h"
#include "pg_bench.h"

#define ECHO "SELECT $1::bigint * 2"
#define PID "SELECT pg_backend_pid()"
#define SLEEP "SELECT pg_sleep($1::float8)::text, $1"

#define CALLS 10000

struct bench;

struct call {
    struct bench *bench;
    int64_t answer; // that is right; -1: any
    int calls;
    enum status status;
    int64_t at_us;
};

struct bench {
    struct loop *loop;
    struct loop_timer *limit;
    struct loop_timer *tick;
    struct db_async *db;
    bool (*until)(struct bench *bench); // asked every 5 ms; true ends run()
    int64_t last_tick_us;
    int64_t worst_gap_us;
    int ticks;
    bool in_call;
    int greetings;
    enum status verdict; // of the greeting
    int sent;
    int called;
    int by_status[STATUS_COUNT];
    int64_t last; // the number that the last answer held
    // Not on a test's stack: a test that fails leaves them under way.
    struct call spare;
    struct call calls[CALLS];
};

static inline void gave_up(void *arg) {
    (void)arg;
    fail_msg("not done within 20 s");
}

static inline void on_tick(void *arg) {
    struct bench *bench = arg;
    int64_t now = base_monotonic_us();
    if (now - bench->last_tick_us > bench->worst_gap_us)
        bench->worst_gap_us = now - bench->last_tick_us;
    bench->last_tick_us = now;
    bench->ticks++;
    if (bench->until(bench))
        loop_stop(bench->loop);
    else
        loop_timer_start(bench->tick, 5);
}

static inline void run(struct bench *bench, bool (*until)(struct bench *bench)) {
    bench->until = until;
    bench->last_tick_us = base_monotonic_us();
    bench->worst_gap_us = 0;
    bench->ticks = 0;
    loop_timer_start(bench->limit, 20000);
    loop_timer_start(bench->tick, 1);
    loop_run(bench->loop);
    loop_timer_stop(bench->limit);
}

static inline bool is_up(struct bench *bench) {
    return db_async_is_up(bench->db);
}

static inline bool all_called(struct bench *bench) {
    return bench->called == bench->sent;
}

static inline bool tick_is_over(struct bench *bench) {
    return bench->ticks > 1;
}

static inline bool second_is_over(struct bench *bench) {
    return bench->ticks == 200;
}

static inline enum status greeting(void *arg, const struct db_rows *rows) {
    struct bench *bench = arg;
    assert_int_equal(db_rows_count(rows), 1);
    assert_string_equal(db_text(rows, 0, 0), "hello");
    bench->greetings++;
    return bench->verdict;
}

static inline void open_db(
    struct bench *bench, const char *text, unsigned connections, unsigned queue_max, int64_t deadline_us) {
    const struct db_async_options options = {.loop = bench->loop,
        .conninfo = text,
        .application = "dunlin-test",
        .connections = connections,
        .queue_max = queue_max,
        .deadline_us = deadline_us,
        .greeting_sql = "SELECT 'hello'",
        .greeting = greeting,
        .arg = bench};
    bench->db = db_async_open(&options);
}

static inline int setup(void **state) {
    struct bench *bench = base_calloc(1, sizeof *bench);
    bench->loop = loop_create();
    bench->limit = loop_timer_create(bench->loop, gave_up, bench);
    bench->tick = loop_timer_create(bench->loop, on_tick, bench);
    *state = bench;
    return 0;
}

static inline int teardown(void **state) {
    struct bench *bench = *state;
    db_async_close(bench->db);
    loop_timer_free(bench->limit);
    loop_timer_free(bench->tick);
    loop_free(bench->loop);
    free(bench);
    return 0;
}

static inline void on_done(void *arg, enum status status, const struct db_rows *rows) {
    struct call *call = arg;
    struct bench *bench = call->bench;
    assert_false(bench->in_call);
    assert_true((status == STATUS_OK) == (rows != NULL));
    call->calls++;
    call->status = status;
    call->at_us = base_monotonic_us();
    bench->called++;
    bench->by_status[status]++;
    if (status != STATUS_OK)
        return;
    assert_int_equal(db_rows_count(rows), 1);
    bench->last = db_int64(rows, 0, 0);
    if (call->answer != -1)
        assert_int_equal(bench->last, call->answer);
}

static inline enum status start(struct bench *bench, struct call *call, const char *sql, const char *param) {
    *call = (struct call){.bench = bench, .answer = -1};
    const char *const params[] = {param};
    bench->in_call = true;
    enum status status = db_async_call(bench->db, sql, param != NULL ? 1 : 0, params, on_done, call);
    bench->in_call = false;
    if (status == STATUS_OK)
        bench->sent++;
    return status;
}

static inline enum status start_echo(struct bench *bench, struct call *call, int64_t number) {
    char text[DB_INT64_TEXT];
    enum status status = start(bench, call, ECHO, db_param_int64(text, number));
    call->answer = number * 2;
    return status;
}

static inline void check_echo(struct bench *bench) {
    struct call *call = &bench->spare;
    assert_int_equal(start_echo(bench, call, 21), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(call->status, STATUS_OK);
    assert_int_equal(bench->last, 42);
}

static inline int64_t ask_pid(struct bench *bench) {
    struct call *call = &bench->spare;
    assert_int_equal(start(bench, call, PID, NULL), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(call->status, STATUS_OK);
    return bench->last;
}
