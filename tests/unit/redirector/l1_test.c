// SPDX-License-Identifier: MIT
#include "services/redirector/l1.h"

#include "tests/support/cmocka_all.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT ((size_t)256 * 1024)
#define SMALL L1_BYTES_MIN
#define START INT64_C(1000000000)

static struct l1 *make(size_t bytes) {
    struct l1_options options = {.bytes = bytes, .absent = 64, .key = {1, 2, 3}};
    return l1_create(&options);
}

static struct cached_link link_of(const char *code, char *url) {
    struct cached_link link = {
        .version = 7,
        .state = LINK_ACTIVE,
        .redirect_status = 302,
        .url = url,
        .url_len = url != NULL ? strlen(url) : 0,
    };
    (void)snprintf(link.code, sizeof link.code, "%s", code);
    return link;
}

static bool put(struct l1 *l1, const char *code, char *url, int64_t read_at) {
    struct cached_link link = link_of(code, url);
    struct l1_fetch fetch = l1_fetch(l1, code, read_at);
    return l1_put(l1, &fetch, &link, read_at + 300);
}

static bool put_absent(struct l1 *l1, const char *code, int64_t ttl_us, int64_t read_at) {
    struct l1_fetch fetch = l1_fetch(l1, code, read_at);
    return l1_put_absent(l1, &fetch, code, ttl_us, read_at + 300);
}

static enum l1_result get(struct l1 *l1, const char *code, int64_t now_us) {
    struct l1_hit hit;
    return l1_get(l1, code, now_us, &hit);
}

static void a_hit_gives_what_was_put(void **state) {
    (void)state;
    static const char longest[] = "abcdefghijklmnopqrstuvwxyz-_09";
    struct l1 *l1 = make(LIMIT);
    char url[] = "https://example.org/a?b=c";
    struct l1_hit hit = {0};
    struct cached_link link = link_of(longest, url);
    link.has_expiry = true;
    link.expires_at = 77;
    link.max_age = 60;
    link.forward_query = true;
    struct l1_fetch fetch = l1_fetch(l1, longest, START);
    assert_int_equal(l1_get(l1, longest, START, &hit), L1_MISS);
    assert_null(hit.link);
    assert_true(l1_put(l1, &fetch, &link, START + 4321));
    url[0] = 'X'; // it keeps a copy
    assert_int_equal(l1_get(l1, longest, START + 5000, &hit), L1_HIT);
    assert_int_equal(hit.read_at, START);
    assert_int_equal(hit.cost_us, 4321);
    assert_string_equal(hit.link->code, longest);
    assert_string_equal(hit.link->url, "https://example.org/a?b=c");
    assert_int_equal(hit.link->url_len, 25);
    assert_int_equal(hit.link->version, 7);
    assert_int_equal(hit.link->expires_at, 77);
    assert_int_equal(hit.link->max_age, 60);
    assert_true(hit.link->has_expiry && hit.link->forward_query && !hit.link->strict);
    assert_int_equal(get(l1, "abcd", START), L1_MISS);
    assert_int_equal(get(l1, "", START), L1_MISS);
    assert_true(put(l1, "gone", NULL, START)); // retired: no URL
    assert_int_equal(l1_get(l1, "gone", START, &hit), L1_HIT);
    assert_null(hit.link->url);
    assert_int_equal(l1_count(l1), 2);
    l1_free(l1);
    l1_free(NULL);
}

static void an_entry_is_fresh_for_5_s_from_its_read(void **state) {
    (void)state;
    struct l1 *l1 = make(LIMIT);
    char url[] = "https://example.org/";
    assert_true(put(l1, "code", url, START));
    for (int64_t at = START; at < START + L1_FRESH_US; at += US_PER_MS)
        assert_int_equal(get(l1, "code", at), L1_HIT); // and none of these renews it
    assert_int_equal(get(l1, "code", START + L1_FRESH_US - 1), L1_HIT);
    assert_int_equal(get(l1, "code", START + L1_FRESH_US), L1_STALE);
    assert_true(put(l1, "code", url, START + US_PER_S));
    assert_int_equal(get(l1, "code", START + L1_FRESH_US), L1_HIT);
    assert_int_equal(get(l1, "code", START + L1_FRESH_US + US_PER_S), L1_STALE);
    // An answer to an earlier read is told apart, and one that took too long.
    assert_false(put(l1, "code", url, START + US_PER_S - 1));
    struct cached_link link = link_of("late", url);
    struct l1_fetch fetch = l1_fetch(l1, "late", START);
    assert_false(l1_put(l1, &fetch, &link, START + L1_FRESH_US));
    assert_int_equal(get(l1, "late", START), L1_MISS);
    assert_true(l1_put(l1, &fetch, &link, START + L1_FRESH_US - 1));
    assert_int_equal(get(l1, "late", START + L1_FRESH_US - 1), L1_HIT);
    assert_int_equal(get(l1, "late", START + L1_FRESH_US), L1_STALE);
    l1_free(l1);
}

static void a_newer_link_takes_the_older_ones_place(void **state) {
    (void)state;
    struct l1 *l1 = make(LIMIT);
    char url[200];
    struct l1_hit hit;
    size_t empty = l1_bytes(l1);
    for (size_t len = 1; len < sizeof url; len++) {
        memset(url, 'a' + (int)(len % 26), len);
        url[len] = '\0';
        assert_true(put(l1, "code", url, START + (int64_t)len));
        assert_int_equal(l1_get(l1, "code", START + (int64_t)len, &hit), L1_HIT);
        assert_string_equal(hit.link->url, url);
        assert_int_equal(l1_count(l1), 1);
    }
    assert_true(put(l1, "code", NULL, START + 1000));
    assert_int_equal(l1_get(l1, "code", START + 1000, &hit), L1_HIT);
    assert_null(hit.link->url);
    l1_remove(l1, "code");
    assert_int_equal(l1_bytes(l1), empty);
    l1_free(l1);
}

static void strict_and_oversized_links_are_not_kept(void **state) {
    (void)state;
    struct l1 *l1 = make(SMALL);
    char url[] = "https://example.org/";
    struct cached_link link = link_of("code", url);
    assert_true(put(l1, "code", url, START));
    link.strict = true;
    struct l1_fetch fetch = l1_fetch(l1, "code", START + 1);
    assert_false(l1_put(l1, &fetch, &link, START + 2));
    assert_int_equal(get(l1, "code", START + 2), L1_MISS); // it has become strict

    assert_true(put(l1, "huge", url, START));
    link = link_of("huge", base_calloc(1, SMALL + 1));
    memset(link.url, 'u', SMALL);
    link.url_len = SMALL;
    fetch = l1_fetch(l1, "huge", START + 1);
    assert_false(l1_put(l1, &fetch, &link, START + 2));
    assert_int_equal(get(l1, "huge", START + 2), L1_MISS);
    link.url_len = SMALL - 1024; // what fits only without the index does not fit
    assert_false(l1_put(l1, &fetch, &link, START + 2));
    assert_true(l1_bytes(l1) <= SMALL);
    cached_link_done(&link);
    l1_free(l1);
}

static void an_invalidation_bars_the_fills_that_it_overtook(void **state) {
    (void)state;
    struct l1 *l1 = make(LIMIT);
    char url[] = "https://example.org/";
    struct cached_link link = link_of("code", url);
    assert_true(put(l1, "code", url, START));
    struct l1_fetch before = l1_fetch(l1, "code", START + 1);
    l1_remove(l1, "code");
    struct l1_fetch after = l1_fetch(l1, "code", START + 1);
    assert_int_equal(get(l1, "code", START + 1), L1_MISS);
    assert_false(l1_put(l1, &before, &link, START + 2));
    assert_false(l1_put_absent(l1, &before, "code", US_PER_S, START + 2));
    assert_int_equal(get(l1, "code", START + 2), L1_MISS);
    assert_true(l1_put(l1, &after, &link, START + 2));
    assert_int_equal(get(l1, "code", START + 2), L1_HIT);

    assert_true(put_absent(l1, "none", US_PER_S, START));
    before = l1_fetch(l1, "code", START + 3);
    l1_clear(l1);
    assert_int_equal(get(l1, "code", START + 3), L1_STALE);
    assert_int_equal(get(l1, "none", START + 3), L1_MISS);
    assert_false(l1_put(l1, &before, &link, START + 4));
    assert_int_equal(get(l1, "code", START + 4), L1_STALE);
    after = l1_fetch(l1, "code", START + 3);
    assert_true(l1_put(l1, &after, &link, START + 4));
    assert_int_equal(get(l1, "code", START + 4), L1_HIT);
    l1_free(l1);
}

static void an_invalidation_bars_few_others(void **state) {
    (void)state;
    struct l1 *l1 = make(LIMIT);
    struct l1_fetch fetches[1000];
    char code[CODES_TEXT];
    size_t barred = 0;
    for (size_t i = 0; i < ARRAY_LEN(fetches); i++) {
        (void)snprintf(code, sizeof code, "c%06zu", i);
        fetches[i] = l1_fetch(l1, code, START);
    }
    l1_remove(l1, "another");
    for (size_t i = 0; i < ARRAY_LEN(fetches); i++) {
        (void)snprintf(code, sizeof code, "c%06zu", i);
        barred += !l1_put_absent(l1, &fetches[i], code, US_PER_S, START);
    }
    assert_in_range(barred, 0, 10); // 1 is expected
    l1_free(l1);
}

static void absent_codes_stand_apart(void **state) {
    (void)state;
    struct l1 *l1 = make(LIMIT);
    char url[] = "https://example.org/";
    size_t empty = l1_bytes(l1);
    assert_true(put_absent(l1, "none", US_PER_S, START));
    assert_int_equal(get(l1, "none", START + US_PER_S - 1), L1_ABSENT);
    assert_int_equal(get(l1, "none", START + US_PER_S), L1_MISS);
    assert_true(put_absent(l1, "none", 60 * US_PER_S, START + 1)); // an alias, as Redis has it
    assert_int_equal(get(l1, "none", START + L1_FRESH_US), L1_ABSENT);
    assert_int_equal(get(l1, "none", START + 1 + L1_FRESH_US), L1_MISS);
    assert_int_equal(l1_bytes(l1), empty);
    // It is created, seen, gone again; and the answers to older reads change nothing.
    assert_true(put(l1, "none", url, START + 2));
    assert_int_equal(get(l1, "none", START + 3), L1_HIT);
    assert_false(put_absent(l1, "none", US_PER_S, START + 1));
    assert_true(put_absent(l1, "none", US_PER_S, START + 3));
    assert_int_equal(get(l1, "none", START + 3), L1_ABSENT);
    assert_false(put(l1, "none", url, START + 2));
    assert_int_equal(get(l1, "none", START + 3), L1_ABSENT);
    assert_int_equal(l1_bytes(l1), empty);
    l1_remove(l1, "none");
    assert_int_equal(get(l1, "none", START + 3), L1_MISS);
    l1_free(l1);
}

static double share_of_refreshes(int64_t cost_us, int64_t left_us) {
    struct l1_hit hit = {.read_at = START, .cost_us = cost_us};
    unsigned yes = 0, count = 100000;
    uint64_t random = 1;
    for (unsigned i = 0; i < count; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        yes += l1_wants_refresh(&hit, START + L1_FRESH_US - left_us, random);
    }
    return (double)yes / count;
}

static void refreshes_grow_likelier_towards_the_end(void **state) {
    (void)state;
    static const struct {
        int64_t cost_us, delta_us;
    } rows[] = {
        {0, 50000}, {200, 50000}, {50000, 50000}, {120000, 120000}, {500000, 500000}, {4000000, 500000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int64_t left_us = 0; left_us <= 2 * US_PER_S; left_us += 20 * US_PER_MS) {
            double wanted = exp(-(double)left_us / (double)rows[i].delta_us);
            assert_true(fabs(share_of_refreshes(rows[i].cost_us, left_us) - wanted) < 0.01);
        }
    }
    // A quick read's entry is left alone for the most part of its life, whatever the number drawn.
    struct l1_hit hit = {.read_at = START, .cost_us = 200};
    static const uint64_t extremes[] = {0, 1, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(extremes); i++) {
        assert_false(l1_wants_refresh(&hit, START + 3 * US_PER_S, extremes[i]));
        assert_true(l1_wants_refresh(&hit, START + L1_FRESH_US, extremes[i]));
    }
}

// What comes after this many of these codes has pushed them out, were it not for the policy.
static void pour(struct l1 *l1, const char *prefix, size_t count, bool use, int64_t read_at) {
    char code[CODES_TEXT], url[] = "https://example.org/some/path";
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(code, sizeof code, "%s%07zu", prefix, i);
        assert_true(put(l1, code, url, read_at));
        if (use)
            assert_int_equal(get(l1, code, read_at), L1_HIT);
    }
}

static void what_is_used_and_fresh_outlives_what_is_not(void **state) {
    (void)state;
    struct l1 *l1 = make(SMALL);
    char url[] = "https://example.org/some/path";
    assert_true(put(l1, "used", url, START));
    assert_true(put(l1, "idle", url, START));
    assert_int_equal(get(l1, "used", START), L1_HIT);
    pour(l1, "x", 300, false, START);
    size_t count = l1_count(l1);
    assert_in_range(count, 50, 300); // it is full
    assert_int_equal(get(l1, "used", START), L1_HIT);
    assert_int_equal(get(l1, "idle", START), L1_MISS);
    assert_int_equal(get(l1, "x0000000", START), L1_MISS);
    assert_int_equal(get(l1, "x0000299", START), L1_HIT);
    // Once it is stale its use saves it no more, when its turn has come again: among others that are in use.
    pour(l1, "y", 2 * count, true, START + L1_FRESH_US);
    assert_int_equal(get(l1, "used", START + L1_FRESH_US), L1_MISS);
    l1_free(l1);
}

static void what_was_cleared_goes_first(void **state) {
    (void)state;
    struct l1 *l1 = make(SMALL);
    char code[CODES_TEXT];
    pour(l1, "x", 300, true, START);
    size_t count = l1_count(l1);
    l1_clear(l1);
    pour(l1, "y", count, false, START);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(code, sizeof code, "y%07zu", i);
        assert_int_equal(get(l1, code, START), L1_HIT);
    }
    assert_int_equal(l1_count(l1), count);
    l1_free(l1);
}

static void a_scanner_pushes_out_nothing_and_takes_no_memory(void **state) {
    (void)state;
    struct l1 *l1 = make(SMALL);
    char code[CODES_TEXT], url[] = "https://example.org/some/path";
    pour(l1, "x", 100, false, START);
    size_t bytes = l1_bytes(l1);
    uint64_t random = 5;
    for (size_t i = 0; i < 1000000; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        (void)snprintf(code, sizeof code, "%016llx", (unsigned long long)random);
        assert_int_equal(get(l1, code, START), L1_MISS);
        assert_true(put_absent(l1, code, US_PER_S, START));
        assert_int_equal(get(l1, code, START), L1_ABSENT);
    }
    assert_int_equal(l1_bytes(l1), bytes);
    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(code, sizeof code, "x%07zu", i);
        assert_int_equal(get(l1, code, START), L1_HIT);
    }
    // Nor do a million links that do exist push out one in use.
    assert_true(put(l1, "used", url, START));
    for (size_t i = 0; i < 1000000; i++) {
        (void)snprintf(code, sizeof code, "z%07zu", i);
        assert_true(put(l1, code, url, START));
        assert_true(l1_bytes(l1) <= SMALL);
        if (i % 50 == 0)
            assert_int_equal(get(l1, "used", START), L1_HIT);
    }
    l1_free(l1);
}

int main(void) {
    crypto_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hit_gives_what_was_put),
        cmocka_unit_test(an_entry_is_fresh_for_5_s_from_its_read),
        cmocka_unit_test(a_newer_link_takes_the_older_ones_place),
        cmocka_unit_test(strict_and_oversized_links_are_not_kept),
        cmocka_unit_test(an_invalidation_bars_the_fills_that_it_overtook),
        cmocka_unit_test(an_invalidation_bars_few_others),
        cmocka_unit_test(absent_codes_stand_apart),
        cmocka_unit_test(refreshes_grow_likelier_towards_the_end),
        cmocka_unit_test(what_is_used_and_fresh_outlives_what_is_not),
        cmocka_unit_test(what_was_cleared_goes_first),
        cmocka_unit_test(a_scanner_pushes_out_nothing_and_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
