// SPDX-License-Identifier: MIT
#include "common/documents/documents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static char code[] = "Ab3xYz9";
static char short_url[] = "https://sho.rt/Ab3xYz9";
static char owner[] = "team";
static char source[] = "range";

static Dunlin__V1__Link good_link(void) {
    static uint8_t url[] = "https://example.com/";
    Dunlin__V1__Link link = DUNLIN__V1__LINK__INIT;
    link.code = code;
    link.short_url = short_url;
    link.has_url = true;
    link.url.data = url;
    link.url.len = sizeof url - 1;
    link.owner = owner;
    link.state = DUNLIN__V1__LINK_STATE__LINK_STATE_ACTIVE;
    link.source = source;
    link.version = 1;
    link.created_at_us = INT64_C(1764547200) * US_PER_S;
    link.updated_at_us = INT64_C(1764547200) * US_PER_S + 250000;
    return link;
}

static void expect_link(const Dunlin__V1__Link *link, const char *text) {
    struct buf out;
    struct json_writer json;
    buf_init(&out, 4096);
    json_begin(&json, &out);
    documents_put_link(&json, link);
    assert_true(buf_ok(&out));
    assert_string_equal(buf_text(&out), text);
    buf_done(&out);
}

static void a_link_has_all_its_members(void **state) {
    (void)state;
    Dunlin__V1__Link link = good_link();
    expect_link(&link, "{\"code\":\"Ab3xYz9\",\"short_url\":\"https://sho.rt/Ab3xYz9\","
                       "\"url\":\"https://example.com/\",\"owner\":\"team\",\"state\":\"active\","
                       "\"source\":\"range\",\"version\":1,\"created_at\":\"2025-12-01T00:00:00Z\","
                       "\"updated_at\":\"2025-12-01T00:00:00.25Z\",\"expires_at\":null}");
}

static void a_retired_link_has_no_url(void **state) {
    (void)state;
    Dunlin__V1__Link link = good_link();
    link.has_url = false;
    link.state = DUNLIN__V1__LINK_STATE__LINK_STATE_EXPIRED;
    link.version = UINT64_MAX;
    link.has_expires_at_us = true;
    link.expires_at_us = INT64_C(253402300799999999);
    expect_link(&link,
        "{\"code\":\"Ab3xYz9\",\"short_url\":\"https://sho.rt/Ab3xYz9\","
        "\"url\":null,\"owner\":\"team\",\"state\":\"expired\","
        "\"source\":\"range\",\"version\":18446744073709551615,\"created_at\":\"2025-12-01T00:00:00Z\","
        "\"updated_at\":\"2025-12-01T00:00:00.25Z\",\"expires_at\":\"9999-12-31T23:59:59.999999Z\"}");
}

static void texts_are_escaped_and_warnings_listed(void **state) {
    (void)state;
    static uint8_t url[] = "https://example.com/'\\";
    char first[] = "one \"warning\"";
    char second[] = "\xc3\xbc\n";
    char *warnings[] = {first, second};
    Dunlin__V1__Link link = good_link();
    link.url.data = url;
    link.url.len = sizeof url - 1;
    link.warnings = warnings;
    link.n_warnings = 2;
    expect_link(&link, "{\"code\":\"Ab3xYz9\",\"short_url\":\"https://sho.rt/Ab3xYz9\","
                       "\"url\":\"https://example.com/'\\\\\",\"owner\":\"team\",\"state\":\"active\","
                       "\"source\":\"range\",\"version\":1,\"created_at\":\"2025-12-01T00:00:00Z\","
                       "\"updated_at\":\"2025-12-01T00:00:00.25Z\",\"expires_at\":null,"
                       "\"warnings\":[\"one \\\"warning\\\"\",\"\xc3\xbc\\n\"]}");
}

static void states_have_names(void **state) {
    (void)state;
    assert_string_equal(documents_state_name(DUNLIN__V1__LINK_STATE__LINK_STATE_ACTIVE), "active");
    assert_string_equal(documents_state_name(DUNLIN__V1__LINK_STATE__LINK_STATE_DISABLED), "disabled");
    assert_string_equal(documents_state_name(DUNLIN__V1__LINK_STATE__LINK_STATE_DELETED), "deleted");
    assert_string_equal(documents_state_name(DUNLIN__V1__LINK_STATE__LINK_STATE_EXPIRED), "expired");
    assert_string_equal(documents_state_name(DUNLIN__V1__LINK_STATE__LINK_STATE_UNSPECIFIED), "unknown");
    assert_string_equal(documents_state_name((Dunlin__V1__LinkState)99), "unknown");
}

static void clicks_are_listed_by_day(void **state) {
    (void)state;
    Dunlin__V1__DayClicks first = DUNLIN__V1__DAY_CLICKS__INIT;
    Dunlin__V1__DayClicks second = DUNLIN__V1__DAY_CLICKS__INIT;
    Dunlin__V1__DayClicks *days[] = {&first, &second};
    first.day = 20787;
    second.day = 20788;
    second.clicks = UINT64_C(9007199254740993); // no double holds it
    Dunlin__V1__GetClicksResponse clicks = DUNLIN__V1__GET_CLICKS_RESPONSE__INIT;
    clicks.code = code;
    clicks.from_day = 20787;
    clicks.to_day = 20788;
    clicks.total = UINT64_C(9007199254740993);
    clicks.lifetime = UINT64_MAX;
    struct buf out;
    struct json_writer json;
    buf_init(&out, 4096);
    json_begin(&json, &out);
    documents_put_clicks(&json, &clicks);
    assert_string_equal(buf_text(&out),
        "{\"code\":\"Ab3xYz9\",\"from\":\"2026-11-30\",\"to\":\"2026-12-01\","
        "\"total\":9007199254740993,\"lifetime\":18446744073709551615,\"days\":[]}");
    clicks.days = days;
    clicks.n_days = 2;
    buf_clear(&out);
    json_begin(&json, &out);
    documents_put_clicks(&json, &clicks);
    assert_string_equal(buf_text(&out),
        "{\"code\":\"Ab3xYz9\",\"from\":\"2026-11-30\",\"to\":\"2026-12-01\","
        "\"total\":9007199254740993,\"lifetime\":18446744073709551615,\"days\":["
        "{\"day\":\"2026-11-30\",\"clicks\":0},"
        "{\"day\":\"2026-12-01\",\"clicks\":9007199254740993}]}");
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_has_all_its_members),
        cmocka_unit_test(a_retired_link_has_no_url),
        cmocka_unit_test(texts_are_escaped_and_warnings_listed),
        cmocka_unit_test(states_have_names),
        cmocka_unit_test(clicks_are_listed_by_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
