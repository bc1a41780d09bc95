// SPDX-License-Identifier: MIT
// docs/http-api.md: where several refusals apply, the first of: malformed HTTP 400, 414/431, 501/405, 401,
// 403, 415, 413, malformed JSON 400, 422, 404, 409, 412.
#include "common/buf/buf.h"
#include "tests/e2e/cases.h"
#include <stdio.h>
#include <string.h>

#define BODY_MAX ((size_t)64 * 1024)
#define JSON "application/json"

enum key { NO_KEY, BAD_KEY, ODD_KEY, GOOD_KEY };

struct row {
    const char *method;
    const char *target;
    const char *type;
    const char *body; // NULL: one byte too many
    enum key key;
    int status;
};

static const struct row rows[] = {
    // An unknown word and an unoffered method, before the key and the resource are looked at.
    {"BREW", LINKS_PATH, JSON, "{", NO_KEY, 501},
    {"BREW", "/api/v1/nowhere", JSON, "{", NO_KEY, 501},
    {"post", LINKS_PATH, JSON, "{}", GOOD_KEY, 501},
    {"PUT", LINKS_PATH, JSON, "{", NO_KEY, 405},
    {"PUT", LINKS_PATH "/no-such-link", JSON, "{", GOOD_KEY, 405},
    {"POST", LINKS_PATH "/no-such-link/clicks", JSON, "{", NO_KEY, 405},
    {"POST", "/api/v1/nowhere", JSON, "{", NO_KEY, 404},
    {"OPTIONS", "/api/v1/nowhere", JSON, "", NO_KEY, 404},
    {"OPTIONS", LINKS_PATH, "text/plain", "", NO_KEY, 204},
    {"OPTIONS", "*", "text/plain", "", NO_KEY, 204},
    // The key, before the body.
    {"POST", LINKS_PATH, JSON, "{\"url\":\"https://dest.example/\"}", NO_KEY, 401},
    {"POST", LINKS_PATH, JSON, "{\"url\":\"https://dest.example/\"}", BAD_KEY, 401},
    {"POST", LINKS_PATH, "text/plain", "{}", NO_KEY, 401},
    {"POST", LINKS_PATH, "text/plain", "{}", BAD_KEY, 401},
    {"POST", LINKS_PATH, "text/plain", "{}", ODD_KEY, 401},
    {"POST", LINKS_PATH, JSON, "{\"url\":5}", ODD_KEY, 401},
    {"POST", LINKS_PATH, JSON, NULL, NO_KEY, 401},
    {"POST", LINKS_PATH, JSON, NULL, BAD_KEY, 401},
    {"POST", LINKS_PATH, JSON, "{", BAD_KEY, 401},
    {"POST", LINKS_PATH, JSON, "{\"url\":5}", BAD_KEY, 401},
    {"POST", LINKS_PATH "?x=1", JSON, "{}", BAD_KEY, 401},
    {"GET", LINKS_PATH "/no-such-link", JSON, "", BAD_KEY, 401},
    {"GET", LINKS_PATH "/%ff", JSON, "", BAD_KEY, 401},
    {"GET", LINKS_PATH "/no-such-link/clicks?from=x", JSON, "", BAD_KEY, 401},
    // The type, the size, the JSON, the fields.
    {"POST", LINKS_PATH, "text/plain", NULL, GOOD_KEY, 415},
    {"POST", LINKS_PATH, "text/plain", "{", GOOD_KEY, 415},
    {"POST", LINKS_PATH, "application/jsonp", "{}", GOOD_KEY, 415},
    {"POST", LINKS_PATH, "application/x-www-form-urlencoded", "url=https://dest.example/", GOOD_KEY, 415},
    {"POST", LINKS_PATH, NULL, "{\"url\":\"https://dest.example/\"}", GOOD_KEY, 415},
    {"POST", LINKS_PATH, JSON, NULL, GOOD_KEY, 413},
    {"POST", LINKS_PATH, JSON, "{\"url\":5", GOOD_KEY, 400},
    {"POST", LINKS_PATH, JSON, "{\"url\":5,\"url\":6}", GOOD_KEY, 400},
    {"POST", LINKS_PATH, JSON, "{\"url\":5}", GOOD_KEY, 422},
    {"POST", LINKS_PATH "?x=1", JSON, "{\"url\":\"https://dest.example/\"}", GOOD_KEY, 422},
    {"POST", LINKS_PATH, "Application/JSON ; charset=utf-8", "{\"url\":5}", GOOD_KEY, 422},
    // The query, then what is there.
    {"POST", LINKS_PATH "?x=1", JSON, "{\"url\":5}", GOOD_KEY, 422},
    {"POST", LINKS_PATH "?x=%ff", JSON, "{\"url\":5}", GOOD_KEY, 400},
    {"GET", LINKS_PATH "/no-such-link?x=%ff", JSON, "", GOOD_KEY, 400},
    {"GET", LINKS_PATH "/no-such-link/clicks?from=x&to=%ff", JSON, "", GOOD_KEY, 400},
    {"GET", LINKS_PATH "/no-such-link?x=1", JSON, "", GOOD_KEY, 422},
    {"GET", LINKS_PATH "/no-such-link/clicks?from=x", JSON, "", GOOD_KEY, 422},
    {"GET", LINKS_PATH "/no-such-link", JSON, "", GOOD_KEY, 404},
    {"GET", LINKS_PATH "/%zz", JSON, "", GOOD_KEY, 404},
    {"GET", LINKS_PATH "/%00", JSON, "", GOOD_KEY, 404},
    {"GET", LINKS_PATH "/", JSON, "", GOOD_KEY, 404},
};

static void check(size_t index, const struct row *row, const char *too_long) {
    struct http_answer answer;
    const struct http_request request = {
        .method = row->method,
        .target = row->target,
        .key = row->key == NO_KEY    ? NULL
               : row->key == BAD_KEY ? "no-such-key"
               : row->key == ODD_KEY ? "no-such-k\xC3\xA9y"
                                     : cases_stack->api_key,
        .type = row->type,
        .body = row->body != NULL ? row->body : too_long,
    };
    http_ask(cases_stack->url, &request, &answer);
    if (answer.status != row->status)
        fail_msg("row %zu: %s %s: status %d, not %d: %s", index, row->method, row->target, answer.status,
            row->status, buf_text(&answer.body));
    if (row->status >= 400)
        links_expect_problem(&answer, row->status, NULL, NULL);
    if (row->status == 401)
        assert_string_equal(http_field(&answer, "WWW-Authenticate"), "Bearer");
    if (row->status == 405 || row->status == 204)
        assert_non_null(http_field(&answer, "Allow"));
    http_answer_done(&answer);
}

// A create whose body has exactly `size` bytes, padded by white space after the JSON.
static void make_body(struct buf *out, size_t size) {
    buf_init(out, size);
    buf_puts(out, "{\"url\":\"https://dest.example/padded\"}");
    while (out->len < size)
        buf_putc(out, ' ');
    assert_true(buf_ok(out));
}

void the_first_of_several_refusals_is_told(void **state) {
    (void)state;
    struct buf body;
    make_body(&body, BODY_MAX + 1);
    int64_t links = cases_count_links();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check(i, &rows[i], body.data);
        cases_expect_alive((int)i);
    }
    assert_int_equal(cases_count_links(), links);
    buf_done(&body);
    make_body(&body, BODY_MAX);
    cases_expect_create(0, body.data, body.len, 201, NULL);
    buf_done(&body);
}

static void expect_raw(const struct buf *bytes, int status) {
    struct http_answer answer;
    assert_true(buf_ok(bytes));
    http_ask_bytes(cases_stack->url, bytes->data, bytes->len, &answer);
    if (answer.status != status)
        fail_msg("%.60s…: status %d, not %d", bytes->data, answer.status, status);
    http_answer_done(&answer);
    cases_expect_alive(0);
}

static void put(struct buf *out, char byte, size_t count) {
    for (size_t i = 0; i < count; i++)
        buf_putc(out, byte);
}

// A request line of `len` bytes.
static void expect_line(size_t len, int status) {
    static const char before[] = "GET /unknown?", after[] = " HTTP/1.1";
    struct buf out;
    buf_init(&out, 65536);
    buf_puts(&out, before);
    put(&out, 'x', len - strlen(before) - strlen(after));
    buf_puts(&out, after);
    assert_int_equal(out.len, len);
    buf_puts(&out, "\r\nHost: 127.0.0.1\r\n\r\n");
    expect_raw(&out, status);
    buf_done(&out);
}

// A field that makes line and fields together `len` bytes, line ends not counted; or `count` fields.
static void expect_fields(size_t len, size_t count, int status) {
    static const char line[] = "GET /unknown HTTP/1.1", host[] = "Host: 127.0.0.1";
    struct buf out;
    buf_init(&out, 65536);
    buf_printf(&out, "%s\r\n%s\r\n", line, host);
    for (size_t i = 0; i < count; i++)
        buf_printf(&out, "X-%zu: y\r\n", i);
    if (len > 0) {
        buf_puts(&out, "X: ");
        put(&out, 'y', len - strlen(line) - strlen(host) - strlen("X: "));
        buf_puts(&out, "\r\n");
    }
    buf_puts(&out, "\r\n");
    expect_raw(&out, status);
    buf_done(&out);
}

void oversized_requests_are_refused(void **state) {
    (void)state;
    expect_line(8192, 404);
    expect_line(8193, 414);
    expect_line(60000, 414);
    expect_fields((size_t)12 * 1024, 0, 404);
    expect_fields((size_t)12 * 1024 + 1, 0, 431);
    expect_fields(0, 99, 404);
    expect_fields(0, 100, 431);
    static const struct {
        const char *bytes;
        int status;
    } hostile[] = {
        {"GET /unknown HTTP/1.1\r\n\r\n", 400}, // no Host
        {"GET /unknown HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET /un known HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"POST " LINKS_PATH
         " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400},
        {"POST " LINKS_PATH " HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},
    };
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        struct buf out;
        buf_init(&out, 1024);
        buf_puts(&out, hostile[i].bytes);
        expect_raw(&out, hostile[i].status);
        buf_done(&out);
    }
}
