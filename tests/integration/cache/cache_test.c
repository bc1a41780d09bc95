// SPDX-License-Identifier: MIT
#include "redis_bench.h"

#include <signal.h>

struct bench {
    int port;
    int raw;
    int database;
    struct cache *cache;
    struct cache *second; // to another address than the server's
    struct proxy proxy;
    struct buf value;
};

static struct cache *open_cache(int port, int database, int64_t timeout_us) {
    char url[BENCH_URL];
    bench_url(url, port, database);
    struct cache *cache = NULL;
    struct problem why;
    assert_int_equal(cache_create(url, timeout_us, &cache, &why), STATUS_OK);
    return cache;
}

static int setup(void **state) {
    (void)signal(SIGPIPE, SIG_IGN);
    struct bench *bench = base_calloc(1, sizeof *bench);
    struct cache_address address = bench_address();
    bench->port = address.port;
    cache_address_done(&address);
    bench->raw = raw_open(bench->port);
    bench->database = bench_claim(bench->raw);
    bench->cache = open_cache(bench->port, bench->database, 2 * US_PER_S);
    buf_init(&bench->value, 65536);
    *state = bench;
    return 0;
}

static int teardown(void **state) {
    struct bench *bench = *state;
    cache_free(bench->cache);
    cache_free(bench->second);
    proxy_stop(&bench->proxy);
    bench_give_back(bench->raw, bench->database);
    buf_done(&bench->value);
    free(bench);
    return 0;
}

static void expect_get(struct bench *bench, struct cache *cache, const char *key, const char *value) {
    buf_clear(&bench->value);
    assert_int_equal(cache_get(cache, key, &bench->value), STATUS_OK);
    assert_string_equal(buf_text(&bench->value), value);
}

static void test_values(void **state) {
    struct bench *bench = *state;
    assert_int_equal(cache_ping(bench->cache), STATUS_OK);
    assert_int_equal(cache_get(bench->cache, "k", &bench->value), STATUS_NOT_FOUND);
    assert_int_equal(bench->value.len, 0);
    assert_int_equal(cache_set(bench->cache, "k", "a\0b\r\n", 5, 60000), STATUS_OK);
    assert_int_equal(cache_get(bench->cache, "k", &bench->value), STATUS_OK);
    assert_int_equal(bench->value.len, 5);
    assert_memory_equal(bench->value.data, "a\0b\r\n", 5);
    raw_expect(bench->raw, "TTL k\r\n", ":60");
    assert_int_equal(cache_set(bench->cache, "k", "", 0, 60000), STATUS_OK);
    expect_get(bench, bench->cache, "k", "");
    assert_int_equal(cache_delete(bench->cache, "k"), STATUS_OK);
    assert_int_equal(cache_delete(bench->cache, "k"), STATUS_OK);
    assert_int_equal(cache_get(bench->cache, "k", &bench->value), STATUS_NOT_FOUND);
}

static void test_errors(void **state) {
    struct bench *bench = *state;
    raw_expect(bench->raw, "LPUSH list a\r\n", ":1");
    assert_int_equal(cache_get(bench->cache, "list", &bench->value), STATUS_UNAVAILABLE);
    assert_non_null(strstr(cache_error_text(bench->cache), "WRONGTYPE"));
    // The connection goes on.
    assert_int_equal(cache_set(bench->cache, "k", "v", 1, 60000), STATUS_OK);
    expect_get(bench, bench->cache, "k", "v");
}

static void test_a_value_over_the_bound(void **state) {
    struct bench *bench = *state;
    struct buf small;
    buf_init(&small, 4);
    assert_int_equal(cache_set(bench->cache, "k", "12345", 5, 60000), STATUS_OK);
    assert_int_equal(cache_get(bench->cache, "k", &small), STATUS_UNAVAILABLE);
    assert_string_equal(cache_error_text(bench->cache), "a value of 5 bytes is too large");
    buf_done(&small);
}

// redis/hiredis#306: an answer that came after the time-out was read by the next command.
static void test_115_a_late_reply_is_never_read_by_the_next_command(void **state) {
    struct bench *bench = *state;
    struct proxy *proxy = &bench->proxy;
    proxy_start(proxy, bench->port);
    struct cache *cache = bench->second = open_cache(proxy->port, bench->database, 100 * US_PER_MS);
    char key[16];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(cache_set(bench->cache, key, key, strlen(key), 600000), STATUS_OK);
    }
    expect_get(bench, cache, "k1", "k1");
    atomic_store(&proxy->hold_ms, 250);
    buf_clear(&bench->value);
    assert_int_equal(cache_get(cache, "k2", &bench->value), STATUS_UNAVAILABLE);
    assert_int_equal(bench->value.len, 0);
    // Refused at once until the pause is over; then a new connection.
    int64_t until = base_monotonic_us() + 10 * US_PER_S;
    enum status status = STATUS_UNAVAILABLE;
    while (status == STATUS_UNAVAILABLE && base_monotonic_us() < until) {
        buf_clear(&bench->value);
        status = cache_get(cache, "k3", &bench->value);
    }
    assert_int_equal(status, STATUS_OK);
    assert_string_equal(buf_text(&bench->value), "k3");
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i % 100);
        expect_get(bench, cache, key, key);
    }
}

// redis/hiredis#269, coturn/coturn#1870: a key was taken for a format or for several arguments.
static void test_117_a_key_is_one_argument(void **state) {
    struct bench *bench = *state;
    assert_int_equal(cache_set(bench->cache, "victim", "alive", 5, 600000), STATUS_OK);
    int monitor = raw_open(bench->port);
    raw_expect(monitor, "MONITOR\r\n", "+OK");
    for (size_t i = 0; i < ARRAY_LEN(hostile_keys); i++) {
        const char *key = hostile_keys[i].key;
        assert_int_equal(cache_set(bench->cache, key, key, strlen(key), 600000), STATUS_OK);
        expect_get(bench, bench->cache, key, key);
    }
    expect_get(bench, bench->cache, "victim", "alive");
    char count[16];
    (void)snprintf(count, sizeof count, ":%zu", ARRAY_LEN(hostile_keys) + 1);
    raw_expect(bench->raw, "DBSIZE\r\n", count);
    // Others may use the server too: only lines of this database count.
    char mark[16];
    char line[400];
    (void)snprintf(mark, sizeof mark, " [%d ", bench->database);
    for (size_t i = 0; i < 2 * ARRAY_LEN(hostile_keys);) {
        raw_line(monitor, line, sizeof line);
        if (strstr(line, mark) == NULL)
            continue;
        const char *shown = hostile_keys[i / 2].shown;
        char expected[300];
        (void)snprintf(expected, sizeof expected,
            i % 2 == 0 ? "] \"SET\" %s %s \"PX\" \"600000\"" : "] \"GET\" %s", shown, shown);
        assert_string_equal(strchr(line, ']'), expected);
        i++;
    }
    (void)close(monitor);
}

static void test_a_lost_connection_is_made_anew(void **state) {
    struct bench *bench = *state;
    struct proxy *proxy = &bench->proxy;
    proxy_start(proxy, bench->port);
    struct cache *cache = bench->second = open_cache(proxy->port, bench->database, 2 * US_PER_S);
    assert_int_equal(cache_set(cache, "k", "v", 1, 60000), STATUS_OK);
    atomic_store(&proxy->cut, true);
    int64_t until = base_monotonic_us() + 5 * US_PER_S;
    while (atomic_load(&proxy->cut) && base_monotonic_us() < until)
        (void)poll(NULL, 0, 5);
    expect_get(bench, cache, "k", "v"); // in the same call
}

static void test_a_silent_server_times_out(void **state) {
    struct bench *bench = *state;
    int port = 0;
    int listener = bench_listen(&port);
    struct cache *cache = bench->second = open_cache(port, 0, 100 * US_PER_MS);
    int64_t begun = base_monotonic_us();
    assert_int_equal(cache_ping(cache), STATUS_UNAVAILABLE);
    int64_t first = base_monotonic_us() - begun;
    assert_true(first >= 90 * US_PER_MS && first < US_PER_S);
    begun = base_monotonic_us();
    assert_int_equal(cache_ping(cache), STATUS_UNAVAILABLE); // paused: no attempt
    assert_true(base_monotonic_us() - begun < 40 * US_PER_MS);
    assert_true(strlen(cache_error_text(cache)) > 0);
    (void)close(listener);
}

static void test_nobody_listens(void **state) {
    struct bench *bench = *state;
    int port = 0;
    (void)close(bench_listen(&port));
    struct cache *cache = bench->second = open_cache(port, 0, US_PER_S);
    assert_int_equal(cache_ping(cache), STATUS_UNAVAILABLE);
    assert_non_null(strstr(cache_error_text(cache), "refused"));
}

static void test_a_wrong_password(void **state) {
    struct bench *bench = *state;
    char url[BENCH_URL];
    (void)snprintf(url, sizeof url, "redis://:hush@127.0.0.1:%d", bench->port);
    struct problem why;
    assert_int_equal(cache_create(url, US_PER_S, &bench->second, &why), STATUS_OK);
    assert_int_equal(cache_ping(bench->second), STATUS_UNAVAILABLE);
    assert_non_null(strstr(cache_error_text(bench->second), "AUTH"));
    assert_null(strstr(cache_error_text(bench->second), "hush"));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_values),
        TEST(test_errors),
        TEST(test_a_value_over_the_bound),
        TEST(test_115_a_late_reply_is_never_read_by_the_next_command),
        TEST(test_117_a_key_is_one_argument),
        TEST(test_a_lost_connection_is_made_anew),
        TEST(test_a_silent_server_times_out),
        TEST(test_nobody_listens),
        TEST(test_a_wrong_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
