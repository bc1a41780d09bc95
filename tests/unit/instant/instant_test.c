// SPDX-License-Identifier: MIT
#include "common/instant/instant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void expect_instant(const char *text, int64_t expected) {
    int64_t instant = -1;
    if (!instant_parse(text, strlen(text), &instant))
        fail_msg("%s was refused", text);
    if (instant != expected)
        fail_msg("%s is %lld", text, (long long)instant);
}

static void expect_refused(const char *text, size_t len) {
    int64_t instant = 42;
    if (instant_parse(text, len, &instant))
        fail_msg("%s was accepted", text);
    assert_int_equal(instant, 42);
}

static void texts_are_instants(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t instant;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1969-12-31T23:59:59.999999Z", -1},
        {"1970-01-01t00:00:00z", 0},
        {"1970-01-01t01:00:00+01:00", 0},
        {"1969-12-31T23:59:00-00:01", 0},
        {"2026-12-01T09:20:00Z", INT64_C(1796116800000000)},
        {"2000-02-29T12:00:00Z", INT64_C(951825600000000)},
        {"2038-01-19T03:14:07Z", INT64_C(2147483647000000)},
        {"2038-01-19T03:14:08Z", INT64_C(2147483648000000)},
        {"2106-02-07T06:28:16Z", INT64_C(4294967296000000)},
        {"9999-12-31T23:59:59Z", INT64_C(253402300799000000)},
        {"9999-12-31T23:59:59.9999999Z", INSTANT_MAX},
        {"9999-12-31T23:59:59+23:59", INT64_C(253402300799000000) - 86340 * US_PER_S},
        {"0000-01-01T00:00:00Z", INT64_C(-62167219200000000)},
        {"0000-02-29T00:00:00Z", INT64_C(-62162121600000000)},
        {"0000-01-01T23:59:00+23:59", INT64_C(-62167219200000000)},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect_instant(rows[i].text, rows[i].instant);
}

static void fractions_are_cut_to_the_microsecond(void **state) {
    (void)state;
    expect_instant("1970-01-01T00:00:00.5Z", 500000);
    expect_instant("1970-01-01T00:00:00.05Z", 50000);
    expect_instant("1970-01-01T00:00:00.000001Z", 1);
    expect_instant("1970-01-01T00:00:00.0000019Z", 1);
    expect_instant("1970-01-01T00:00:00.0000000000000000000000000000000000000001Z", 0);
    expect_instant("1970-01-01T00:00:00.123456789123456789+00:00", 123456);
    expect_instant("1969-12-31T23:59:59.5Z", -500000);
}

// One instant, however it is written and wherever the process runs.
static void offsets_and_time_zones_do_not_move_it(void **state) {
    (void)state;
    static const char *const zones[] = {"UTC", "Asia/Kathmandu", "America/New_York", "Europe/Berlin"};
    static const char *const texts[] = {"2027-05-01T09:20:00Z", "2027-05-01T12:20:00+03:00",
        "2027-05-01T05:05:00-04:15", "2027-05-01T09:20:00-00:00", "2027-05-01T09:20:00+00:00",
        "2027-05-02T09:19:00+23:59", "2027-04-30T09:21:00-23:59"};
    for (size_t zone = 0; zone < ARRAY_LEN(zones); zone++) {
        assert_int_equal(setenv("TZ", zones[zone], 1), 0);
        tzset();
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
            expect_instant(texts[i], INT64_C(1809163200000000));
        // The hour that clocks skip in Berlin.
        expect_instant("2027-03-28T02:30:00+01:00", INT64_C(1806197400000000));
        expect_instant("2027-03-28T02:30:00+02:00", INT64_C(1806193800000000));
        char text[INSTANT_TEXT];
        instant_format(INT64_C(1809163200000000), text);
        assert_string_equal(text, "2027-05-01T09:20:00Z");
    }
    assert_int_equal(unsetenv("TZ"), 0);
    tzset();
}

static void other_texts_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "2027-03-28",
        "2027-03-28T02:30:00",
        "2027-03-28T02:30:00 Europe/Berlin",
        "2027-03-28T02:30:00[Europe/Berlin]",
        "2027-03-28T02:30:00+01:00[Europe/Berlin]",
        "2027-03-28 02:30:00Z",
        "2027-03-28T02:30Z",
        "2027-03-28T02:30:00.Z",
        "2027-03-28T02:30:00,5Z",
        "2027-03-28T02:30:00+01",
        "2027-03-28T02:30:00+0100",
        "2027-03-28T02:30:00+1:00",
        "2027-03-28T02:30:00+24:00",
        "2027-03-28T02:30:00+01:60",
        "2027-03-28T02:30:00\342\210\22201:00", // U+2212
        "2027-03-28T02:30:00Z ",
        " 2027-03-28T02:30:00Z",
        "2027-03-28T02:30:00ZZ",
        "2027-03-28T02:30:00Z+01:00",
        "2027-3-28T02:30:00Z",
        "2027-03-28T2:30:00Z",
        "+2027-03-28T02:30:00Z",
        "-001-03-28T02:30:00Z",
        "27-03-28T02:30:00Z",
        "20270328T023000Z",
        "2027-W12-7T02:30:00Z",
        "2027-087T02:30:00Z",
        "2027-00-28T02:30:00Z",
        "2027-13-28T02:30:00Z",
        "2027-03-00T02:30:00Z",
        "2027-03-32T02:30:00Z",
        "2027-04-31T02:30:00Z",
        "2027-02-29T02:30:00Z",
        "1900-02-29T02:30:00Z",
        "2027-03-28T24:00:00Z",
        "2027-03-28T02:60:00Z",
        "2030-06-30T23:59:60Z",
        "2030-06-30T16:59:60-07:00",
        "2030-01-01T00:00:60Z",
        "2030-01-01T00:00:61Z",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00+00:01",
        "10000-01-01T00:00:00Z",
        "292278994-08-17T07:12:55Z",
        "1796116800",
        "tomorrow",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        expect_refused(texts[i], strlen(texts[i]));
    expect_refused("2027-03-28T02:30:00Z\0", 21);
    expect_refused("2027-03-28\0T02:30:00Z", 21);
}

static void every_prefix_of_an_instant_is_refused(void **state) {
    (void)state;
    static const char text[] = "2027-03-28T02:30:00.123456+01:00";
    for (size_t len = 0; len < sizeof text - 1; len++) {
        // A copy of exactly that size: sanitizers see a read past its end.
        char *prefix = malloc(len == 0 ? 1 : len);
        assert_non_null(prefix);
        memcpy(prefix, text, len);
        expect_refused(prefix, len);
        free(prefix);
    }
}

static void instants_are_texts(void **state) {
    (void)state;
    static const struct {
        int64_t instant;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {INT64_C(1796116800000000), "2026-12-01T09:20:00Z"},
        {INT64_C(1796116800100000), "2026-12-01T09:20:00.1Z"},
        {INT64_C(1796116800000010), "2026-12-01T09:20:00.00001Z"},
        {INT64_C(1796116800123456), "2026-12-01T09:20:00.123456Z"},
        {INSTANT_MAX, "9999-12-31T23:59:59.999999Z"},
        {INT64_C(-62167219200000000), "0000-01-01T00:00:00Z"},
        // Beyond RFC 3339, for logs: nothing overruns.
        {INT64_MAX, "294247-01-10T04:00:54.775807Z"},
        {INT64_MIN, "-290308-12-21T19:59:05.224192Z"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[INSTANT_TEXT];
        instant_format(rows[i].instant, text);
        assert_string_equal(text, rows[i].text);
    }
}

// Against the C library's own calendar.
static void days_agree_with_the_c_library(void **state) {
    (void)state;
    for (int32_t day = -719528; day <= 2932896; day += 61) {
        time_t seconds = (time_t)day * 86400;
        struct tm tm;
        char expected[64];
        char text[INSTANT_TEXT];
        int32_t back = 0;
        assert_non_null(gmtime_r(&seconds, &tm));
        (void)snprintf(
            expected, sizeof expected, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
        instant_format_day(day, text);
        assert_string_equal(text, expected);
        assert_true(instant_parse_day(text, strlen(text), &back));
        assert_int_equal(back, day);
    }
}

static void every_day_of_two_leap_cycles_follows_the_last(void **state) {
    (void)state;
    char last[INSTANT_TEXT] = "";
    for (int32_t day = -36525 * 2; day < 36525 * 2; day++) {
        char text[INSTANT_TEXT];
        int32_t back = 0;
        instant_format_day(day, text);
        assert_true(strcmp(last, text) < 0);
        assert_true(instant_parse_day(text, strlen(text), &back));
        assert_int_equal(back, day);
        memcpy(last, text, sizeof last);
    }
}

static void other_days_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"", "2027-02-29", "2027-2-01", "2027-02-01T", "2027-02-1",
        " 2027-02-01", "20270201", "2027/02/01", "10000-01-01", "2027-02-01Z", "yesterday"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        int32_t day = 42;
        assert_false(instant_parse_day(texts[i], strlen(texts[i]), &day));
        assert_int_equal(day, 42);
    }
}

static void an_instant_belongs_to_its_utc_day(void **state) {
    (void)state;
    assert_int_equal(instant_day(0), 0);
    assert_int_equal(instant_day(US_PER_DAY - 1), 0);
    assert_int_equal(instant_day(US_PER_DAY), 1);
    assert_int_equal(instant_day(-1), -1);
    assert_int_equal(instant_day(-US_PER_DAY), -1);
    assert_int_equal(instant_day(-US_PER_DAY - 1), -2);
    assert_int_equal(instant_day(INSTANT_MAX), 2932896);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_instants),
        cmocka_unit_test(fractions_are_cut_to_the_microsecond),
        cmocka_unit_test(offsets_and_time_zones_do_not_move_it),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(every_prefix_of_an_instant_is_refused),
        cmocka_unit_test(instants_are_texts),
        cmocka_unit_test(days_agree_with_the_c_library),
        cmocka_unit_test(every_day_of_two_leap_cycles_follows_the_last),
        cmocka_unit_test(other_days_are_refused),
        cmocka_unit_test(an_instant_belongs_to_its_utc_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
