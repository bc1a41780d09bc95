// SPDX-License-Identifier: MIT
#include "common/json/json.h"
#include "services/redirector/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/redirector/answer_check.h"

static struct json_doc *parse_body(const struct answer *answer) {
    struct json_doc *doc = NULL;
    struct problem why = {0};
    assert_true(buf_ok(&answer->body));
    assert_int_equal(answer->body.data[answer->body.len - 1], '\n');
    assert_int_equal(json_parse(answer->body.data, answer->body.len, &doc, &why), STATUS_OK);
    return doc;
}

static void expect_text(const struct json_value *object, const char *key, const char *text) {
    size_t len = 0;
    const char *found = json_text(json_member(object, key), &len);
    assert_non_null(found);
    assert_int_equal(len, strlen(text));
    assert_memory_equal(found, text, len);
}

static void expect_int(const struct json_value *object, const char *key, int64_t number) {
    int64_t found = 0;
    assert_true(json_int64(json_member(object, key), &found));
    assert_int_equal(found, number);
}

static void every_answer_is_not_sniffed(void **state) {
    (void)state;
    struct answer answer;
    answer_init(&answer, 201);
    assert_int_equal(answer.status, 201);
    assert_false(answer.close);
    assert_int_equal(answer.header_count, 1);
    expect_header(&answer, "X-Content-Type-Options", "nosniff");
    answer_done(&answer);
}

static void copied_values_outlive_their_source(void **state) {
    (void)state;
    struct answer answer;
    char value[ANSWER_SCRATCH / 2];
    answer_init(&answer, 200);
    memset(value, 'a', sizeof value);
    value[sizeof value - 1] = '\0';
    answer_header_copy(&answer, "A", value);
    memset(value, 'b', sizeof value - 1);
    answer_header_copy(&answer, "B", value);
    memset(value, 0, sizeof value);
    assert_int_equal(strlen(header_of(&answer, "A")), sizeof value - 1);
    assert_int_equal(header_of(&answer, "A")[sizeof value - 2], 'a');
    assert_int_equal(header_of(&answer, "B")[0], 'b');
    answer_done(&answer);
}

static void a_problem_names_fields_and_rules(void **state) {
    (void)state;
    struct answer answer;
    struct problem why = {0};
    (void)problem_violate(&why, "url", "The URL must be \"good\".");
    (void)problem_violate(&why, "<b>\n\xff", "\xc3\xbc");
    answer_init(&answer, 200);
    buf_puts(&answer.body, "half an answer");
    answer_outcome(&answer, &why);
    assert_int_equal(answer.status, 422);
    expect_error_headers(&answer);
    expect_header(&answer, "Content-Type", "application/problem+json");
    expect_header(&answer, "Retry-After", NULL);
    expect_header(&answer, "WWW-Authenticate", NULL);
    struct json_doc *doc = parse_body(&answer);
    const struct json_value *root = json_root(doc);
    assert_int_equal(json_size(root), 5);
    expect_text(root, "type", "urn:dunlin:problem:invalid-field");
    expect_text(root, "title", "Unprocessable Content");
    expect_int(root, "status", 422);
    expect_text(root, "detail", "A field breaks a rule.");
    const struct json_value *errors = json_member(root, "errors");
    assert_int_equal(json_type(errors), JSON_ARRAY);
    assert_int_equal(json_size(errors), 2);
    assert_int_equal(json_size(json_at(errors, 0)), 2);
    expect_text(json_at(errors, 0), "field", "url");
    expect_text(json_at(errors, 0), "rule", "The URL must be \"good\".");
    expect_text(json_at(errors, 1), "field", "<b>\n\xef\xbf\xbd");
    expect_text(json_at(errors, 1), "rule", "\xc3\xbc");
    json_doc_free(doc);
    answer_done(&answer);
}

static void a_reason_is_the_type(void **state) {
    (void)state;
    static const struct {
        const char *reason, *type;
    } rows[] = {
        {"", "about:blank"},
        {"ALIAS_TAKEN", "urn:dunlin:problem:alias-taken"},
        {"NO_KEY", "urn:dunlin:problem:no-key"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", "urn:dunlin:problem:abcdefghijklmnopqrstuvwxyz-0123456789"},
        {"A234567890B234567890C234567890D234567890E234567",
            "urn:dunlin:problem:a234567890b234567890c234567890d234567890e234567"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer answer;
        struct problem why = {0};
        (void)problem_set(&why, STATUS_ALREADY_EXISTS, rows[i].reason, "So it is.");
        answer_init(&answer, 200);
        answer_outcome(&answer, &why);
        assert_int_equal(answer.status, 409);
        struct json_doc *doc = parse_body(&answer);
        assert_int_equal(json_size(json_root(doc)), 4);
        expect_text(json_root(doc), "type", rows[i].type);
        expect_text(json_root(doc), "detail", "So it is.");
        json_doc_free(doc);
        answer_done(&answer);
    }
}

static void each_status_has_its_words(void **state) {
    (void)state;
    static const int sent[] = {
        400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 414, 415, 417, 421, 422, 429, 431, 500, 501, 503};
    for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
        struct answer answer;
        const struct problem why = {0};
        assert_string_not_equal(answer_title(sent[i]), "Error");
        answer_init(&answer, 200);
        answer_problem(&answer, sent[i], &why);
        struct json_doc *doc = parse_body(&answer);
        size_t len = 0;
        assert_non_null(json_text(json_member(json_root(doc), "detail"), &len));
        assert_true(len > 0);
        expect_text(json_root(doc), "title", answer_title(sent[i]));
        expect_int(json_root(doc), "status", sent[i]);
        json_doc_free(doc);
        expect_header(&answer, "WWW-Authenticate", sent[i] == 401 ? "Bearer" : NULL);
        expect_header(&answer, "Retry-After", sent[i] == 503 || sent[i] == 429 ? "1" : NULL);
        answer_done(&answer);
    }
    assert_string_equal(answer_title(418), "Error");
    assert_string_equal(answer_title(404), "Not Found");
}

// Each outcome that is shown maps to a status with words of its own; nobody is left to read the answer to
// CANCELLED.
static void each_outcome_has_a_status(void **state) {
    (void)state;
    for (int status = STATUS_UNKNOWN; status < STATUS_COUNT; status++) {
        struct answer answer;
        struct problem why = {0};
        (void)problem_set(&why, (enum status)status, "", "x");
        answer_init(&answer, 200);
        answer_outcome(&answer, &why);
        assert_int_equal(answer.status, status_http((enum status)status));
        assert_string_not_equal(answer_title(answer.status), "Error");
        answer_done(&answer);
    }
}

static void a_wish_to_wait_is_passed_on(void **state) {
    (void)state;
    struct answer answer;
    struct problem why = {0};
    (void)problem_set(&why, STATUS_UNAVAILABLE, "KEYRANGE_UNAVAILABLE", "Away.");
    why.retry_after_s = UINT32_MAX;
    answer_init(&answer, 200);
    answer_header(&answer, "Allow", "GET, HEAD");
    answer_outcome(&answer, &why);
    assert_int_equal(answer.status, 503);
    expect_header(&answer, "Retry-After", "4294967295");
    expect_header(&answer, "Allow", "GET, HEAD");
    answer_done(&answer);
}

static void browsers_get_a_page_that_echoes_nothing(void **state) {
    (void)state;
    static const char planted[] = "<script>alert(\"x\")</script>&'planted";
    struct answer answer;
    struct problem why = {0};
    (void)problem_set(&why, STATUS_NOT_FOUND, planted, "%s", planted);
    (void)problem_violate(&why, planted, "%s", planted);
    answer_init(&answer, 200);
    answer_error(&answer, 404, &why, "text/html,*/*;q=0.8");
    assert_int_equal(answer.status, 404);
    expect_error_headers(&answer);
    expect_header(&answer, "Vary", "Accept");
    expect_header(&answer, "Content-Type", "text/html; charset=utf-8");
    const char *page = buf_text(&answer.body);
    assert_int_equal(strncmp(page, "<!doctype html>", 15), 0);
    assert_non_null(strstr(page, "404 Not Found"));
    assert_null(strstr(page, "script"));
    assert_null(strstr(page, "planted"));
    answer_done(&answer);
}

static void others_get_a_problem_document(void **state) {
    (void)state;
    static const char *const accepts[] = {NULL, "", "*/*", "application/json", "text/html;q=0", "text/*"};
    for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
        struct answer answer;
        const struct problem why = {0};
        answer_init(&answer, 200);
        answer_error(&answer, 410, &why, accepts[i]);
        assert_int_equal(answer.status, 410);
        expect_error_headers(&answer);
        expect_header(&answer, "Vary", "Accept");
        expect_header(&answer, "Content-Type", "application/problem+json");
        struct json_doc *doc = parse_body(&answer);
        expect_text(json_root(doc), "type", "about:blank");
        expect_text(json_root(doc), "title", "Gone");
        expect_int(json_root(doc), "status", 410);
        json_doc_free(doc);
        answer_done(&answer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_not_sniffed),
        cmocka_unit_test(copied_values_outlive_their_source),
        cmocka_unit_test(a_problem_names_fields_and_rules),
        cmocka_unit_test(a_reason_is_the_type),
        cmocka_unit_test(each_status_has_its_words),
        cmocka_unit_test(each_outcome_has_a_status),
        cmocka_unit_test(a_wish_to_wait_is_passed_on),
        cmocka_unit_test(browsers_get_a_page_that_echoes_nothing),
        cmocka_unit_test(others_get_a_problem_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
