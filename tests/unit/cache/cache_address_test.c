// SPDX-License-Identifier: MIT
#include "common/cache/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

static void check(const char *url, const char *host, int port, const char *password, int database) {
    struct cache_address address;
    if (!cache_address_parse(url, &address))
        fail_msg("refused: %s", url);
    assert_string_equal(address.host, host);
    assert_int_equal(address.port, port);
    if (password == NULL)
        assert_null(address.password);
    else
        assert_string_equal(address.password, password);
    assert_int_equal(address.database, database);
    cache_address_done(&address);
    assert_null(address.host);
}

static void test_parts(void **state) {
    (void)state;
    check("redis://127.0.0.1:6380", "127.0.0.1", 6380, NULL, 0);
    check("redis://cache", "cache", 6379, NULL, 0);
    check("redis://cache:1/", "cache", 1, NULL, 0);
    check("redis://cache:65535/15", "cache", 65535, NULL, 15);
    check("redis://:pass@cache:6379/2", "cache", 6379, "pass", 2);
    check("redis://[::1]:6380/1", "::1", 6380, NULL, 1);
    check("redis://:p@[fe80::1]", "fe80::1", 6379, "p", 0);
}

static void test_password_is_decoded(void **state) {
    (void)state;
    check("redis://:p%40s%2Fs%25@h:1", "h", 1, "p@s/s%", 0);
    check("redis://:a@b@h:1", "h", 1, "a@b", 0);
    check("redis://:a:b@h", "h", 6379, "a:b", 0);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const urls[] = {"", "redis:", "redis://", "rediss://h:1", "http://h:1", "h:1",
        "redis://:6379", "redis://h:", "redis://h:0", "redis://h:65536", "redis://h:99999999999",
        "redis://h:-1", "redis://h:+1", "redis://h:1x", "redis://h:1/x", "redis://h:1/-1", "redis://h:1/1/2",
        "redis://h:1/999999", "redis://h:1?a=b", "redis://h:1/0?a=b", "redis://h h:1",
        "redis://user:pass@h:1", "redis://user@h:1", "redis://:@h:1", "redis://:a%@h:1", "redis://:a%4@h:1",
        "redis://:a%zz@h:1", "redis://:a%00b@h:1", "redis://[::1", "redis://[::1]x:1", "redis://[]:1",
        "redis://h#1"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct cache_address address = {.port = -7};
        if (cache_address_parse(urls[i], &address))
            fail_msg("accepted: %s", urls[i]);
        assert_int_equal(address.port, -7); // untouched
    }
}

static void test_create_says_why(void **state) {
    (void)state;
    struct cache *cache = NULL;
    struct problem why = {0};
    assert_int_equal(cache_create("redis://:hush@h:x", US_PER_S, &cache, &why), STATUS_INVALID_ARGUMENT);
    assert_null(cache);
    assert_string_equal(why.reason, "INVALID_REDIS_URL");
    assert_string_equal(
        why.message, "The Redis URL is not of the form redis://[:password@]host[:port][/database].");
    cache_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_password_is_decoded),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_create_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
