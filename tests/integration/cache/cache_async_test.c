// SPDX-License-Identifier: MIT
#include "common/cache/cache_async.h"
#include "redis_bench.h"

#include <signal.h>

#define GETS 10000

struct bench;

struct get {
    struct bench *bench;
    int number; // of the key, "k17"; the value is the same text
    int calls;
};

struct bench {
    int port;
    int raw;
    int database;
    struct proxy proxy;
    struct loop *loop;
    struct loop_timer *limit;
    struct loop_timer *tick;
    struct cache_async *cache;
    bool (*until)(struct bench *bench); // asked every 5 ms; true ends run()
    int64_t last_tick_us;
    int64_t worst_gap_us;
    bool in_call;
    int called;
    int by_status[STATUS_COUNT];
    int wrong;
    int sent;
    // Not on a test's stack: a test that fails leaves them under way.
    struct get gets[GETS];
};

static void gave_up(void *arg) {
    (void)arg;
    fail_msg("not done within 20 s");
}

static void on_tick(void *arg) {
    struct bench *bench = arg;
    int64_t now = base_monotonic_us();
    if (now - bench->last_tick_us > bench->worst_gap_us)
        bench->worst_gap_us = now - bench->last_tick_us;
    bench->last_tick_us = now;
    if (bench->until(bench))
        loop_stop(bench->loop);
    else
        loop_timer_start(bench->tick, 5);
}

static void run(struct bench *bench, bool (*until)(struct bench *bench)) {
    bench->until = until;
    bench->last_tick_us = base_monotonic_us();
    bench->worst_gap_us = 0;
    loop_timer_start(bench->limit, 20000);
    loop_timer_start(bench->tick, 1);
    loop_run(bench->loop);
    loop_timer_stop(bench->limit);
}

static bool is_up(struct bench *bench) {
    return cache_async_is_up(bench->cache);
}

static bool is_down(struct bench *bench) {
    return !cache_async_is_up(bench->cache);
}

static bool all_called(struct bench *bench) {
    return bench->called == bench->sent;
}

static void open_cache(struct bench *bench, int port, unsigned commands_max, int64_t timeout_us) {
    char url[BENCH_URL];
    bench_url(url, port, bench->database);
    struct problem why;
    assert_int_equal(
        cache_async_open(bench->loop, url, commands_max, timeout_us, &bench->cache, &why), STATUS_OK);
}

static int setup(void **state) {
    (void)signal(SIGPIPE, SIG_IGN);
    struct bench *bench = base_calloc(1, sizeof *bench);
    struct cache_address address = bench_address();
    bench->port = address.port;
    cache_address_done(&address);
    bench->raw = raw_open(bench->port);
    bench->database = bench_claim(bench->raw);
    bench->loop = loop_create();
    bench->limit = loop_timer_create(bench->loop, gave_up, bench);
    bench->tick = loop_timer_create(bench->loop, on_tick, bench);
    *state = bench;
    return 0;
}

static int teardown(void **state) {
    struct bench *bench = *state;
    cache_async_close(bench->cache);
    loop_timer_free(bench->limit);
    loop_timer_free(bench->tick);
    loop_free(bench->loop);
    proxy_stop(&bench->proxy);
    bench_give_back(bench->raw, bench->database);
    free(bench);
    return 0;
}

static void on_value(void *arg, enum status status, const char *value, size_t len) {
    struct get *get = arg;
    struct bench *bench = get->bench;
    assert_false(bench->in_call);
    get->calls++;
    bench->called++;
    bench->by_status[status]++;
    char expected[16];
    int expected_len = snprintf(expected, sizeof expected, "k%d", get->number);
    if (status == STATUS_OK && (len != (size_t)expected_len || memcmp(value, expected, len) != 0))
        bench->wrong++;
}

static enum status start_get(struct bench *bench, struct get *get, int number) {
    *get = (struct get){.bench = bench, .number = number};
    char key[16];
    (void)snprintf(key, sizeof key, "k%d", number);
    bench->in_call = true;
    enum status status = cache_async_get(bench->cache, key, on_value, get);
    bench->in_call = false;
    if (status == STATUS_OK)
        bench->sent++;
    return status;
}

static void fill_keys(struct bench *bench) {
    char command[64];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(command, sizeof command, "SET k%d k%d\r\n", i, i);
        raw_expect(bench->raw, command, "+OK");
    }
}

// All 10,000 gets at once; each must be called once, with its own value.
static void get_them_all(struct bench *bench) {
    struct get *gets = bench->gets;
    bench->called = 0;
    bench->sent = 0;
    memset(bench->by_status, 0, sizeof bench->by_status);
    for (int i = 0; i < GETS; i++)
        assert_int_equal(start_get(bench, &gets[i], i % 100), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_OK], GETS);
    assert_int_equal(bench->wrong, 0);
    for (int i = 0; i < GETS; i++)
        assert_int_equal(gets[i].calls, 1);
}

static void test_get_and_fill(void **state) {
    struct bench *bench = *state;
    open_cache(bench, bench->port, 100, 2 * US_PER_S);
    struct get *get = bench->gets;
    assert_int_equal(start_get(bench, get, 1), STATUS_UNAVAILABLE); // not up yet
    run(bench, is_up);
    assert_int_equal(start_get(bench, get, 1), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_NOT_FOUND], 1);
    cache_async_fill(bench->cache, "k1", "k1", 2, 60000);
    cache_async_fill(bench->cache, "k1", "other", 5, 60000); // the key is taken
    assert_int_equal(start_get(bench, get, 1), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_OK], 1);
    assert_int_equal(bench->wrong, 0);
    raw_expect(bench->raw, "TTL k1\r\n", ":60");
}

static void test_ten_thousand_each_get_their_own(void **state) {
    struct bench *bench = *state;
    open_cache(bench, bench->port, GETS, 10 * US_PER_S);
    fill_keys(bench);
    run(bench, is_up);
    get_them_all(bench);
}

static void test_commands_are_bounded(void **state) {
    struct bench *bench = *state;
    open_cache(bench, bench->port, 3, 2 * US_PER_S);
    fill_keys(bench);
    run(bench, is_up);
    struct get *gets = bench->gets;
    for (int i = 0; i < 3; i++)
        assert_int_equal(start_get(bench, &gets[i], i), STATUS_OK);
    assert_int_equal(start_get(bench, &gets[3], 3), STATUS_RESOURCE_EXHAUSTED);
    cache_async_fill(bench->cache, "never", "v", 1, 60000); // dropped
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_OK], 3);
    assert_int_equal(start_get(bench, &gets[3], 3), STATUS_OK);
    run(bench, all_called);
    raw_expect(bench->raw, "EXISTS never\r\n", ":0");
}

// redis/hiredis#306: an answer that came after the time-out was read by the next command.
static void test_115_a_late_reply_is_never_read_by_the_next_command(void **state) {
    struct bench *bench = *state;
    struct proxy *proxy = &bench->proxy;
    proxy_start(proxy, bench->port);
    open_cache(bench, proxy->port, GETS, US_PER_S);
    fill_keys(bench);
    run(bench, is_up);
    struct get *gets = bench->gets;
    atomic_store(&proxy->hold_ms, 1500);
    for (int i = 0; i < 10; i++)
        assert_int_equal(start_get(bench, &gets[i], i), STATUS_OK);
    int64_t begun = base_monotonic_us();
    run(bench, all_called);
    int64_t spent = base_monotonic_us() - begun;
    assert_true(spent >= 990 * US_PER_MS && spent < 1400 * US_PER_MS);
    assert_int_equal(bench->by_status[STATUS_UNAVAILABLE], 10);
    assert_int_equal(start_get(bench, &gets[0], 0), STATUS_UNAVAILABLE); // at once
    run(bench, is_up);
    get_them_all(bench);
    proxy_stop(proxy);
    run(bench, is_down);
}

struct hostile {
    struct bench *bench;
    const char *key;
};

static void on_hostile(void *arg, enum status status, const char *value, size_t len) {
    struct hostile *hostile = arg;
    hostile->bench->called++;
    hostile->bench->by_status[status]++;
    assert_int_equal(len, strlen(hostile->key));
    if (len > 0)
        assert_memory_equal(value, hostile->key, len);
}

// redis/hiredis#269, coturn/coturn#1870: a key was taken for a format or for several arguments.
static void test_117_a_key_is_one_argument(void **state) {
    struct bench *bench = *state;
    open_cache(bench, bench->port, 100, 2 * US_PER_S);
    raw_expect(bench->raw, "SET victim alive\r\n", "+OK");
    run(bench, is_up);
    struct hostile hostile[ARRAY_LEN(hostile_keys)];
    for (size_t i = 0; i < ARRAY_LEN(hostile_keys); i++) {
        const char *key = hostile_keys[i].key;
        hostile[i] = (struct hostile){bench, key};
        cache_async_fill(bench->cache, key, key, strlen(key), 60000);
        assert_int_equal(cache_async_get(bench->cache, key, on_hostile, &hostile[i]), STATUS_OK);
        bench->sent++;
    }
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_OK], ARRAY_LEN(hostile_keys));
    raw_expect(bench->raw, "EXISTS victim\r\n", ":1");
    char count[16];
    (void)snprintf(count, sizeof count, ":%zu", ARRAY_LEN(hostile_keys) + 1);
    raw_expect(bench->raw, "DBSIZE\r\n", count);
}

static void test_a_lost_connection_ends_its_calls_once(void **state) {
    struct bench *bench = *state;
    struct proxy *proxy = &bench->proxy;
    proxy_start(proxy, bench->port);
    open_cache(bench, proxy->port, GETS, 5 * US_PER_S);
    fill_keys(bench);
    run(bench, is_up);
    struct get *gets = bench->gets;
    atomic_store(&proxy->cut, true);
    for (int i = 0; i < 100; i++)
        assert_int_equal(start_get(bench, &gets[i], i), STATUS_OK);
    run(bench, all_called);
    assert_int_equal(bench->by_status[STATUS_UNAVAILABLE], 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(gets[i].calls, 1);
    run(bench, is_up);
    get_them_all(bench);
}

static void test_close_ends_its_calls_once(void **state) {
    struct bench *bench = *state;
    open_cache(bench, bench->port, 100, 2 * US_PER_S);
    run(bench, is_up);
    struct get *gets = bench->gets;
    for (int i = 0; i < 10; i++)
        assert_int_equal(start_get(bench, &gets[i], i), STATUS_OK);
    cache_async_close(bench->cache);
    bench->cache = NULL;
    assert_int_equal(bench->called, 10);
    assert_int_equal(bench->by_status[STATUS_UNAVAILABLE], 10);
}

static bool second_is_over(struct bench *bench) {
    return ++bench->called == 200;
}

static void test_a_silent_server_never_blocks(void **state) {
    struct bench *bench = *state;
    int port = 0;
    int listener = bench_listen(&port);
    open_cache(bench, port, 100, 50 * US_PER_MS);
    run(bench, second_is_over);
    assert_true(bench->worst_gap_us < 500 * US_PER_MS);
    assert_false(cache_async_is_up(bench->cache));
    struct get *get = bench->gets;
    assert_int_equal(start_get(bench, get, 1), STATUS_UNAVAILABLE);
    (void)close(listener);
}

static void test_a_wrong_password_never_comes_up(void **state) {
    struct bench *bench = *state;
    char url[BENCH_URL];
    (void)snprintf(url, sizeof url, "redis://:hush@127.0.0.1:%d", bench->port);
    struct problem why;
    assert_int_equal(cache_async_open(bench->loop, url, 10, US_PER_S, &bench->cache, &why), STATUS_OK);
    run(bench, second_is_over);
    assert_false(cache_async_is_up(bench->cache));
}

static void test_a_bad_url(void **state) {
    struct bench *bench = *state;
    struct problem why;
    assert_int_equal(cache_async_open(bench->loop, "http://h", 10, US_PER_S, &bench->cache, &why),
        STATUS_INVALID_ARGUMENT);
    assert_null(bench->cache);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_get_and_fill),
        TEST(test_ten_thousand_each_get_their_own),
        TEST(test_commands_are_bounded),
        TEST(test_115_a_late_reply_is_never_read_by_the_next_command),
        TEST(test_117_a_key_is_one_argument),
        TEST(test_a_lost_connection_ends_its_calls_once),
        TEST(test_close_ends_its_calls_once),
        TEST(test_a_silent_server_never_blocks),
        TEST(test_a_wrong_password_never_comes_up),
        TEST(test_a_bad_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
