// SPDX-License-Identifier: MIT
#include "common/codes/codes.h"
#include "tests/e2e/path.h"
#include "tests/support/json_get.h"
#include "tests/support/links.h"
#include <stdio.h>
#include <string.h>

enum { DONE = 0, REFUSED = 1, USAGE = 2, UNAVAILABLE = 3 };

static void expect_code(const struct process_result *result, int code) {
    if (result->timed_out || result->code != code)
        fail_msg("exit code %d, not %d: %s%s", result->code, code, result->out, result->err);
    // What went well says it on standard output alone, what did not on standard error alone.
    assert_int_equal(code == DONE ? strlen(result->err) : strlen(result->out), 0);
    assert_true(strlen(code == DONE ? result->out : result->err) > 0);
}

static struct json_doc *parse(const char *text) {
    struct json_doc *doc = NULL;
    struct problem why = {0};
    if (json_parse(text, strlen(text), &doc, &why) != STATUS_OK)
        fail_msg("%s: %s", why.message, text);
    return doc;
}

static void cut_line(char *text) {
    size_t len = strcspn(text, "\n");
    assert_string_equal(text + len, "\n"); // one line, and nothing more
    text[len] = '\0';
}

void ctl_creates_and_gets(void **state) {
    (void)state;
    struct process_result result;
    stack_ctl(path_stack, NULL, &result,
        WORDS("create", "https://dest.example/ctl", "--alias", "by-hand", "--expires-at",
            "2099-01-01T00:00:00Z"));
    expect_code(&result, DONE);
    cut_line(result.out);
    char short_url[320];
    (void)snprintf(short_url, sizeof short_url, "%s/by-hand", path_stack->url);
    assert_string_equal(result.out, short_url);
    process_result_done(&result);
    link_must_redirect(path_stack, "by-hand", "https://dest.example/ctl");

    stack_ctl(path_stack, NULL, &result, WORDS("get", "by-hand"));
    expect_code(&result, DONE);
    assert_non_null(strstr(result.out, "https://dest.example/ctl\n"));
    assert_non_null(strstr(result.out, short_url));
    process_result_done(&result);

    stack_ctl(path_stack, NULL, &result, WORDS("--json", "get", "by-hand"));
    expect_code(&result, DONE);
    struct json_doc *doc = parse(result.out);
    assert_string_equal(links_text(doc, "code"), "by-hand");
    assert_string_equal(links_text(doc, "url"), "https://dest.example/ctl");
    assert_string_equal(links_text(doc, "expires_at"), "2099-01-01T00:00:00Z");
    assert_string_equal(links_text(doc, "source"), "alias");
    json_doc_free(doc);
    process_result_done(&result);
}

void ctl_counts(void **state) {
    (void)state;
    struct process_result result;
    stack_ctl(path_stack, NULL, &result, WORDS("create", "https://dest.example/ctl-clicks", "--json"));
    expect_code(&result, DONE);
    struct json_doc *doc = parse(result.out);
    char code[CODES_TEXT];
    (void)snprintf(code, sizeof code, "%s", links_text(doc, "code"));
    json_doc_free(doc);
    process_result_done(&result);
    link_must_redirect(path_stack, code, "https://dest.example/ctl-clicks");
    link_await_clicks(path_stack, code, 1, 5);

    stack_ctl(path_stack, NULL, &result, WORDS("clicks", code, "--json"));
    expect_code(&result, DONE);
    doc = parse(result.out);
    int64_t total = -1;
    assert_true(json_get_int64(json_root(doc), "total", &total));
    assert_int_equal(total, 1);
    json_doc_free(doc);
    process_result_done(&result);
    stack_ctl(path_stack, NULL, &result, WORDS("clicks", code, "--from", "2020-01-01", "--to", "2020-01-02"));
    expect_code(&result, DONE);
    assert_non_null(strstr(result.out, "2020-01-01 0\n2020-01-02 0\n"));
    process_result_done(&result);
}

static int64_t decode(const char *code) {
    struct process_result result;
    int64_t slot = -1, counter = -1;
    stack_ctl(path_stack, NULL, &result, WORDS("decode", code, "--json"));
    expect_code(&result, DONE);
    struct json_doc *doc = parse(result.out);
    assert_string_equal(links_text(doc, "code"), code);
    assert_true(json_get_int64(json_root(doc), "slot", &slot));
    assert_int_equal(slot, 0);
    assert_true(json_get_int64(json_root(doc), "counter", &counter));
    json_doc_free(doc);
    process_result_done(&result);
    return counter;
}

// Two creates in a row take two counter values in a row, unless a block ended between them.
void ctl_decodes(void **state) {
    (void)state;
    struct link first, second;
    link_create(path_stack, "{\"url\":\"https://dest.example/decode\"}", &first);
    link_create(path_stack, "{\"url\":\"https://dest.example/decode\"}", &second);
    int64_t before = decode(first.code);
    assert_true(before >= 0);
    assert_true(decode(second.code) > before);
    struct process_result result;
    stack_ctl(path_stack, NULL, &result, WORDS("decode", "not-a-code"));
    expect_code(&result, REFUSED);
    process_result_done(&result);
}

void ctl_makes_keys(void **state) {
    (void)state;
    struct process_result result;
    struct http_answer answer;
    stack_ctl(path_stack, NULL, &result, WORDS("key", "create", "--owner", "keeper"));
    expect_code(&result, DONE);
    cut_line(result.out);
    http_post_json(
        path_stack->url, LINKS_PATH, result.out, "{\"url\":\"https://dest.example/keeper\"}", &answer);
    assert_int_equal(answer.status, 201);
    struct json_doc *doc = links_json(&answer);
    assert_string_equal(links_text(doc, "owner"), "keeper");
    json_doc_free(doc);
    http_answer_done(&answer);
    process_result_done(&result);

    stack_ctl(path_stack, NULL, &result, WORDS("key", "create", "--owner", "keeper", "--json"));
    expect_code(&result, DONE);
    doc = parse(result.out);
    assert_string_equal(links_text(doc, "owner"), "keeper");
    assert_true(strlen(links_text(doc, "id")) > 0);
    assert_true(strlen(links_text(doc, "key")) >= 22);
    json_doc_free(doc);
    process_result_done(&result);
}

void ctl_says_refused_usage_and_unavailable(void **state) {
    (void)state;
    static const struct {
        const char *words[7]; // ended by NULL
        int code;
    } rows[] = {
        {{"create", "ftp://dest.example/"}, REFUSED},
        {{"create", "https://dest.example/", "--alias", "admin"}, REFUSED},
        {{"get", "no-such-link"}, REFUSED},
        {{"clicks", "no-such-link"}, REFUSED},
        {{"get", "no-such-link", "--api-key", "no-such-key"}, REFUSED},
        {{"create"}, USAGE},
        {{"get", "one1", "two2"}, USAGE},
        {{"frobnicate", "it"}, USAGE},
        {{"create", "https://dest.example/", "--expires-at", "soon"}, USAGE},
        {{"clicks", "no-such-link", "--from", "2026-02-30"}, USAGE},
        {{"key", "create"}, USAGE},
        {{"get", "no-such-link", "--no-such-flag"}, USAGE},
        {{"get", "no-such-link", "--writer", "tcp://127.0.0.1:1", "--timeout", "2"}, UNAVAILABLE},
        {{"clicks", "no-such-link", "--clicks", "tcp://127.0.0.1:1", "--timeout", "2"}, UNAVAILABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct process_result result;
        stack_ctl(path_stack, NULL, &result, rows[i].words);
        expect_code(&result, rows[i].code);
        process_result_done(&result);
    }
}
