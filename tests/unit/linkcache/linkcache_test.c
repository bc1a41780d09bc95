// SPDX-License-Identifier: MIT
#include "common/instant/instant.h"
#include "common/linkcache/linkcache.h"
#include "common/target/target.h"
#include "dunlin/v1/cache.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW INT64_C(1796116800000000)
#define HOUR (INT64_C(3600) * US_PER_S)

static char url[] = "https://dest.example/s?q=a+b&r=1%2B1&t=a%20b#%zz";

static struct cached_link sample(void) {
    return (struct cached_link){
        .code = "IVi5Z9J",
        .version = 7,
        .state = LINK_ACTIVE,
        .has_expiry = true,
        .expires_at = NOW + HOUR,
        .redirect_status = 308,
        .max_age = 60,
        .permanent = true,
        .forward_query = true,
        .verified_at = NOW,
        .url = url,
        .url_len = sizeof url - 1,
    };
}

static struct buf long_url(size_t len) {
    struct buf text;
    buf_init(&text, len);
    buf_puts(&text, "https://dest.example/");
    while (text.len < len)
        buf_putc(&text, 'x');
    return text;
}

static struct buf pack(const struct cached_link *link) {
    struct buf value;
    buf_init(&value, 16384);
    linkcache_pack(link, &value);
    assert_true(buf_ok(&value));
    return value;
}

static bool unpack(const struct buf *value, const char *code, struct cached_link *out) {
    return linkcache_unpack(code, value->data, value->len, out);
}

static struct cached_link round_trip(const struct cached_link *link) {
    struct buf value = pack(link);
    struct cached_link back = {0};
    assert_true(unpack(&value, link->code, &back));
    buf_done(&value);
    return back;
}

static void what_went_in_comes_out(void **state) {
    (void)state;
    struct cached_link link = sample();
    struct cached_link back = round_trip(&link);
    assert_string_equal(back.code, "IVi5Z9J");
    assert_int_equal(back.version, 7);
    assert_int_equal(back.state, LINK_ACTIVE);
    assert_true(back.has_expiry);
    assert_int_equal(back.expires_at, NOW + HOUR);
    assert_int_equal(back.redirect_status, 308);
    assert_int_equal(back.max_age, 60);
    assert_true(back.permanent);
    assert_false(back.strict);
    assert_true(back.forward_query);
    assert_int_equal(back.verified_at, NOW);
    assert_int_equal(back.url_len, sizeof url - 1);
    assert_string_equal(back.url, url);
    cached_link_done(&back);
    assert_null(back.url);
    cached_link_done(&back);
}

static void every_status_state_and_the_longest_url_come_out(void **state) {
    (void)state;
    static const int statuses[] = {301, 302, 307, 308};
    struct buf longest = long_url(TARGET_MAX);
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct cached_link link = sample();
        link.redirect_status = statuses[i];
        link.state = (enum link_state)(i + 1);
        link.has_expiry = false;
        link.version = INT64_MAX;
        link.url = longest.data;
        link.url_len = TARGET_MAX;
        memcpy(link.code, "abcdefghijklmnopqrstuvwxyz-_09", CODES_TEXT);
        struct cached_link back = round_trip(&link);
        assert_int_equal(back.redirect_status, statuses[i]);
        assert_int_equal(back.state, i + 1);
        assert_false(back.has_expiry);
        assert_int_equal(back.version, INT64_MAX);
        assert_int_equal(back.url_len, i < 2 ? TARGET_MAX : 0);
        cached_link_done(&back);
    }
    buf_done(&longest);
}

static void retired_and_strict_links_travel_without_a_url(void **state) {
    (void)state;
    struct cached_link link = sample();
    link.state = LINK_DELETED;
    struct cached_link back = round_trip(&link);
    assert_null(back.url);
    link.url = NULL;
    link.state = LINK_EXPIRED;
    back = round_trip(&link);
    assert_null(back.url);
    link = sample();
    link.strict = true;
    struct buf value = pack(&link);
    assert_null(memmem(value.data, value.len, "dest.example", 12));
    buf_done(&value);
    back = round_trip(&link);
    assert_true(back.strict);
    assert_null(back.url);
}

static void a_value_of_another_code_is_refused(void **state) {
    (void)state;
    static const char *const codes[] = {"", "IVi5Z9", "IVi5Z9j", "ivi5z9j", "IVi5Z9JJ"};
    struct cached_link link = sample();
    struct buf value = pack(&link);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct cached_link out = {.version = 42};
        assert_false(unpack(&value, codes[i], &out));
        assert_int_equal(out.version, 42);
    }
    buf_done(&value);
}

static Dunlin__V1__CachedLink message_of(const char *text, size_t len) {
    Dunlin__V1__CachedLink message = DUNLIN__V1__CACHED_LINK__INIT;
    static char code[] = "IVi5Z9J";
    message.code = code;
    message.version = 1;
    message.state = LINK_ACTIVE;
    message.redirect_status = 302;
    message.verified_at_us = NOW;
    message.has_url = text != NULL;
    message.url.data = (uint8_t *)text;
    message.url.len = len;
    return message;
}

static bool is_accepted(const Dunlin__V1__CachedLink *message) {
    size_t len = dunlin__v1__cached_link__get_packed_size(message);
    uint8_t *bytes = base_calloc(1, len);
    struct cached_link out = {.version = 42};
    assert_int_equal(dunlin__v1__cached_link__pack(message, bytes), len);
    bool accepted = linkcache_unpack("IVi5Z9J", bytes, len, &out);
    assert_int_equal(out.version == 42, !accepted);
    if (accepted)
        cached_link_done(&out);
    free(bytes);
    return accepted;
}

static void a_planted_url_is_refused(void **state) {
    (void)state;
    static const char *const planted[] = {"https://dest.example/\r\nSet-Cookie: a=b",
        "https://dest.example/\r", "https://dest.example/\n", "https://dest.example/\xe2\x80\xa8",
        "https://dest.example/\xc2\x85", "https://dest.example/ x", "https://dest.example/\t",
        "javascript:alert(1)", "data:text/html,x", "dest.example", ""};
    for (size_t i = 0; i < ARRAY_LEN(planted); i++) {
        Dunlin__V1__CachedLink message = message_of(planted[i], strlen(planted[i]));
        assert_false(is_accepted(&message));
        message.state = LINK_DELETED;
        assert_false(is_accepted(&message));
        message.state = LINK_ACTIVE;
        message.flags = 2;
        assert_false(is_accepted(&message));
    }
    Dunlin__V1__CachedLink message = message_of("https://dest.example/\0x", 23);
    assert_false(is_accepted(&message));
    message = message_of(url, sizeof url - 1);
    assert_true(is_accepted(&message));
    struct buf longer = long_url(TARGET_MAX + 1);
    message = message_of(longer.data, TARGET_MAX);
    assert_true(is_accepted(&message));
    message = message_of(longer.data, TARGET_MAX + 1);
    assert_false(is_accepted(&message));
    buf_done(&longer);
}

static void a_missing_url_is_refused_where_it_is_needed(void **state) {
    (void)state;
    Dunlin__V1__CachedLink message = message_of(NULL, 0);
    assert_false(is_accepted(&message));
    message.flags = 2; // strict
    assert_true(is_accepted(&message));
    message.flags = 0;
    for (uint32_t other = LINK_DISABLED; other <= LINK_EXPIRED; other++) {
        message.state = other;
        assert_true(is_accepted(&message));
    }
}

static void numbers_out_of_range_are_refused(void **state) {
    (void)state;
    static const uint32_t statuses[] = {0, 200, 300, 303, 304, 305, 306, 309, 404, 302 + 65536, UINT32_MAX};
    static const uint32_t states[] = {0, 5, 257, UINT32_MAX};
    static const int64_t instants[] = {-1, INT64_MIN, INSTANT_MAX + 1, INT64_MAX};
    const Dunlin__V1__CachedLink good = message_of(url, sizeof url - 1);
    Dunlin__V1__CachedLink message;
    assert_true(is_accepted(&good));
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        message = good;
        message.redirect_status = statuses[i];
        assert_false(is_accepted(&message));
    }
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        message = good;
        message.state = states[i];
        assert_false(is_accepted(&message));
    }
    for (size_t i = 0; i < ARRAY_LEN(instants); i++) {
        message = good;
        message.verified_at_us = instants[i];
        assert_false(is_accepted(&message));
        message = good;
        message.has_expires_at_us = true;
        message.expires_at_us = instants[i];
        assert_false(is_accepted(&message));
    }
    message = good;
    message.version = 0;
    assert_false(is_accepted(&message));
    message.version = UINT64_MAX;
    assert_false(is_accepted(&message));
    message = good;
    message.max_age = 31536000;
    assert_true(is_accepted(&message));
    message.max_age++;
    assert_false(is_accepted(&message));
}

// A copy of exactly `len` bytes, so that sanitizers see a read past the end.
static bool unpack_copy(const char *bytes, size_t len, struct cached_link *out) {
    char *copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    bool accepted = linkcache_unpack("IVi5Z9J", copy, len, out);
    free(copy);
    return accepted;
}

static void cut_and_damaged_values_are_survived(void **state) {
    (void)state;
    struct cached_link link = sample();
    struct buf value = pack(&link);
    for (size_t len = 0; len < value.len; len++) {
        struct cached_link out = {.version = 42};
        assert_false(unpack_copy(value.data, len, &out));
        assert_int_equal(out.version, 42);
    }
    uint8_t *bytes = (uint8_t *)value.data;
    for (size_t bit = 0; bit < value.len * 8; bit++) {
        struct cached_link out = {0};
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        if (unpack_copy(value.data, value.len, &out)) {
            assert_string_equal(out.code, "IVi5Z9J");
            assert_true(out.url == NULL || target_is_sendable(out.url, out.url_len));
            cached_link_done(&out);
        }
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    buf_done(&value);
}

static void other_bytes_are_refused(void **state) {
    (void)state;
    struct cached_link out = {.version = 42};
    assert_false(unpack_copy("", 0, &out));
    assert_false(unpack_copy("\0", 1, &out));
    assert_false(unpack_copy("hello, world", 12, &out));
    assert_false(unpack_copy("\x0a\xff\xff\xff\xff\x0f", 6, &out)); // a length of 2^32 - 1
    char *much = base_calloc(1 << 20, 1);
    memset(much, 0x78, 1 << 20);
    assert_false(unpack_copy(much, 1 << 20, &out));
    free(much);
    assert_int_equal(out.version, 42);
}

static void unknown_fields_are_ignored(void **state) {
    (void)state;
    struct cached_link link = sample();
    struct cached_link out = {0};
    struct buf value = pack(&link);
    buf_append(&value, "\xf8\x07\x01", 3); // field 127, a number
    assert_true(unpack(&value, link.code, &out));
    assert_string_equal(out.url, url);
    cached_link_done(&out);
    buf_done(&value);
}

static void keys_carry_the_jumps_and_the_code(void **state) {
    (void)state;
    char key[LINKCACHE_KEY];
    linkcache_key(key, 0, "IVi5Z9J");
    assert_string_equal(key, "l:0:IVi5Z9J");
    linkcache_key(key, INT64_MAX, "abcdefghijklmnopqrstuvwxyz-_09");
    assert_string_equal(key, "l:9223372036854775807:abcdefghijklmnopqrstuvwxyz-_09");
}

static void retirement_is_decided_at_the_time(void **state) {
    (void)state;
    struct cached_link link = sample();
    assert_false(cached_link_is_retired(&link, NOW));
    assert_false(cached_link_is_retired(&link, link.expires_at - 1));
    assert_true(cached_link_is_retired(&link, link.expires_at));
    link.has_expiry = false;
    assert_false(cached_link_is_retired(&link, INT64_MAX));
    link.state = LINK_DISABLED;
    assert_false(cached_link_is_retired(&link, NOW));
    link.state = LINK_DELETED;
    assert_true(cached_link_is_retired(&link, NOW));
    link.state = LINK_EXPIRED;
    assert_true(cached_link_is_retired(&link, NOW));
}

static void entries_end_with_their_link(void **state) {
    (void)state;
    const int64_t day = 86400000;
    struct cached_link link = sample();
    assert_int_equal(linkcache_ttl_ms(&link, NOW), 3600000);
    link.expires_at = NOW + 1;
    assert_int_equal(linkcache_ttl_ms(&link, NOW), 1);
    link.expires_at = NOW + 1999;
    assert_int_equal(linkcache_ttl_ms(&link, NOW), 1);
    link.expires_at = NOW + 24 * HOUR - 1000;
    assert_int_equal(linkcache_ttl_ms(&link, NOW), day - 1);
    link.expires_at = INSTANT_MAX;
    assert_int_equal(linkcache_ttl_ms(&link, NOW), day);
    link.expires_at = NOW;
    assert_int_equal(linkcache_ttl_ms(&link, NOW), day);
    link.expires_at = NOW + HOUR;
    link.state = LINK_DELETED;
    assert_int_equal(linkcache_ttl_ms(&link, NOW), day);
    link = sample();
    link.has_expiry = false;
    assert_int_equal(linkcache_ttl_ms(&link, NOW), day);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_went_in_comes_out),
        cmocka_unit_test(every_status_state_and_the_longest_url_come_out),
        cmocka_unit_test(retired_and_strict_links_travel_without_a_url),
        cmocka_unit_test(a_value_of_another_code_is_refused),
        cmocka_unit_test(a_planted_url_is_refused),
        cmocka_unit_test(a_missing_url_is_refused_where_it_is_needed),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(cut_and_damaged_values_are_survived),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(unknown_fields_are_ignored),
        cmocka_unit_test(keys_carry_the_jumps_and_the_code),
        cmocka_unit_test(retirement_is_decided_at_the_time),
        cmocka_unit_test(entries_end_with_their_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
