// SPDX-License-Identifier: MIT
#include "common/instant/instant.h"
#include "tests/e2e/path.h"
#include "tests/support/json_get.h"
#include "tests/support/links.h"
#include <stdio.h>
#include <string.h>

static void visit(const struct link *link, const char *method, const char *fields) {
    char target[64];
    struct http_answer answer;
    (void)snprintf(target, sizeof target, "/%s", link->code);
    http_ask(path_stack->url, &(struct http_request){.method = method, .target = target, .fields = fields},
        &answer);
    assert_int_equal(answer.status, 302);
    http_answer_done(&answer);
}

// What isn't a click comes first, so that it would be seen among what is.
void clicks_are_counted_within_5_seconds(void **state) {
    (void)state;
    static const char *const prefetches[] = {"Sec-Purpose: prefetch\r\n",
        "Sec-Purpose: prefetch;prerender\r\n", "Sec-Purpose: PREFETCH\r\n", "Purpose: prefetch\r\n",
        "X-Purpose: preview\r\n", "X-Moz: prefetch\r\n"};
    struct link link;
    link_create(path_stack, "{\"url\":\"https://dest.example/counted\"}", &link);
    assert_int_equal(link_clicks(path_stack, link.code), 0);
    for (size_t i = 0; i < ARRAY_LEN(prefetches); i++)
        visit(&link, NULL, prefetches[i]);
    for (int i = 0; i < 3; i++)
        visit(&link, "HEAD", NULL);
    for (int i = 0; i < 4; i++)
        visit(&link, NULL, "If-None-Match: \"1\"\r\n");
    link_await_clicks(path_stack, link.code, 4, 5);
    visit(&link, NULL, "User-Agent: curl/8.0\r\n");
    link_await_clicks(path_stack, link.code, 5, 5);
}

static void get_clicks(const struct link *link, const char *query, struct http_answer *out) {
    char target[256];
    (void)snprintf(target, sizeof target, LINKS_PATH "/%s/clicks%s", link->code, query);
    http_ask(path_stack->url, &(struct http_request){.target = target, .key = path_stack->api_key}, out);
}

static int64_t clicks_of_day(const struct json_value *days, size_t index, const char *day) {
    int64_t clicks = -1;
    const char *named = json_get_text(json_at(days, index), "day");
    assert_non_null(named);
    assert_string_equal(named, day);
    assert_true(json_get_int64(json_at(days, index), "clicks", &clicks));
    return clicks;
}

static void expect_span(const struct link *link, const char *query, int32_t from, int32_t to, int32_t today,
    int64_t clicks_today) {
    struct http_answer answer;
    char text[INSTANT_TEXT];
    int64_t number = -1;
    get_clicks(link, query, &answer);
    assert_int_equal(answer.status, 200);
    path_expect_field(&answer, "Content-Type", "application/json");
    struct json_doc *doc = links_json(&answer);
    assert_string_equal(links_text(doc, "code"), link->code);
    instant_format_day(from, text);
    assert_string_equal(links_text(doc, "from"), text);
    instant_format_day(to, text);
    assert_string_equal(links_text(doc, "to"), text);
    const struct json_value *days = json_member(json_root(doc), "days");
    assert_non_null(days);
    assert_int_equal(json_size(days), to - from + 1);
    for (int32_t day = from; day <= to; day++) {
        instant_format_day(day, text);
        assert_int_equal(clicks_of_day(days, (size_t)(day - from), text), day == today ? clicks_today : 0);
    }
    assert_true(json_get_int64(json_root(doc), "total", &number));
    assert_int_equal(number, from <= today && today <= to ? clicks_today : 0);
    assert_true(json_get_int64(json_root(doc), "lifetime", &number));
    assert_int_equal(number, clicks_today);
    json_doc_free(doc);
    http_answer_done(&answer);
}

// Midnight would put the visits and the question on two days: near it, waits for the next day.
static int32_t steady_today(void) {
    AWAIT(25, base_wall_us() % US_PER_DAY < US_PER_DAY - 20 * US_PER_S);
    return instant_day(base_wall_us());
}

void clicks_are_told_per_day(void **state) {
    (void)state;
    struct link link;
    int32_t today = steady_today();
    char query[80], day[INSTANT_TEXT], tomorrow[INSTANT_TEXT];
    link_create(path_stack, "{\"url\":\"https://dest.example/per-day\"}", &link);
    for (int i = 0; i < 2; i++)
        visit(&link, NULL, NULL);
    link_await_clicks(path_stack, link.code, 2, 5);
    expect_span(&link, "", today - 29, today, today, 2);
    instant_format_day(today, day);
    (void)snprintf(query, sizeof query, "?from=%s&to=%s", day, day);
    expect_span(&link, query, today, today, today, 2);
    (void)snprintf(query, sizeof query, "?from=%s", day);
    expect_span(&link, query, today, today, today, 2);
    instant_format_day(today + 1, tomorrow);
    (void)snprintf(query, sizeof query, "?to=%s", tomorrow);
    expect_span(&link, query, today - 28, today + 1, today, 2);
    int32_t feb_28 = 0;
    assert_true(instant_parse_day("2024-02-28", 10, &feb_28));
    expect_span(&link, "?from=2024-02-28&to=2024-03-01", feb_28, feb_28 + 2, today, 2);
}

void clicks_refuses_bad_spans(void **state) {
    (void)state;
    static const struct {
        const char *query;
        const char *field;
        int status;
    } rows[] = {
        {"?from=2026-02-02&to=2026-02-01", NULL, 422},
        {"?from=2026-02-30", "from", 422},
        {"?to=yesterday", "to", 422},
        {"?from=", "from", 422},
        {"?from=2000-01-01&to=2026-01-01", NULL, 422},
        {"?since=2026-01-01", "since", 422},
        {"?from=%00", "from", 422},
        {"?from=%zz", "from", 422},
        {"?from=%ff", NULL, 400},
    };
    struct link link;
    link_create(path_stack, "{\"url\":\"https://dest.example/spans\"}", &link);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_answer answer;
        get_clicks(&link, rows[i].query, &answer);
        links_expect_problem(&answer, rows[i].status, NULL, rows[i].field);
        http_answer_done(&answer);
    }
}
