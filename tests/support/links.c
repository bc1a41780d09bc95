// SPDX-License-Identifier: MIT
#include "tests/support/links.h"
#include "tests/support/json_get.h"

#include <stdio.h>
#include <string.h>

struct json_doc *links_json(const struct http_answer *answer) {
    struct json_doc *doc = NULL;
    struct problem why = {0};
    if (json_parse(buf_text(&answer->body), answer->body.len, &doc, &why) != STATUS_OK)
        fail_msg("status %d, and the body is no JSON (%s): %s", answer->status, why.message,
            buf_text(&answer->body));
    return doc;
}

const char *links_text(const struct json_doc *doc, const char *member) {
    const char *text = json_get_text(json_root(doc), member);
    if (text == NULL)
        fail_msg("%s is no string", member);
    return text;
}

static bool names_field(const struct json_value *errors, const char *field) {
    for (size_t i = 0; errors != NULL && i < json_size(errors); i++) {
        const char *named = json_get_text(json_at(errors, i), "field");
        const char *rule = json_get_text(json_at(errors, i), "rule");
        if (named != NULL && strcmp(named, field) == 0 && rule != NULL && rule[0] != '\0')
            return true;
    }
    return false;
}

void links_expect_problem(const struct http_answer *answer, int status, const char *type, const char *field) {
    if (answer->status != status)
        fail_msg("status %d, not %d: %s", answer->status, status, buf_text(&answer->body));
    assert_non_null(http_field(answer, "Content-Type"));
    assert_string_equal(http_field(answer, "Content-Type"), "application/problem+json");
    struct json_doc *doc = links_json(answer);
    int64_t number = 0;
    assert_true(json_get_int64(json_root(doc), "status", &number));
    assert_int_equal(number, status);
    assert_true(strlen(links_text(doc, "title")) > 0);
    assert_true(strlen(links_text(doc, "detail")) > 0);
    if (type != NULL)
        assert_string_equal(links_text(doc, "type"), type);
    if (field != NULL && !names_field(json_member(json_root(doc), "errors"), field))
        fail_msg("no error names %s: %s", field, buf_text(&answer->body));
    json_doc_free(doc);
}

void link_create(const struct stack *stack, const char *json, struct link *out) {
    struct http_answer answer;
    http_post_json(stack->url, LINKS_PATH, stack->api_key, json, &answer);
    if (answer.status != 201)
        fail_msg("create %s: status %d: %s", json, answer.status, buf_text(&answer.body));
    struct json_doc *doc = links_json(&answer);
    (void)snprintf(out->code, sizeof out->code, "%s", links_text(doc, "code"));
    (void)snprintf(out->short_url, sizeof out->short_url, "%s", links_text(doc, "short_url"));
    json_doc_free(doc);
    http_answer_done(&answer);
}

int link_try_create(const struct stack *stack, const char *json) {
    struct http_answer answer;
    http_post_json(stack->url, LINKS_PATH, stack->api_key, json, &answer);
    int status = answer.status;
    http_answer_done(&answer);
    return status;
}

void link_must_redirect(const struct stack *stack, const char *code, const char *location) {
    char target[64];
    struct http_answer answer;
    (void)snprintf(target, sizeof target, "/%s", code);
    http_get(stack->url, target, &answer);
    if (answer.status != 302)
        fail_msg("GET %s: status %d: %s", target, answer.status, buf_text(&answer.body));
    assert_int_equal(http_field_count(&answer, "Location"), 1);
    assert_string_equal(http_field(&answer, "Location"), location);
    http_answer_done(&answer);
}

int link_follow(const struct stack *stack, const char *target) {
    struct http_answer answer;
    http_get(stack->url, target, &answer);
    int status = answer.status;
    http_answer_done(&answer);
    return status;
}

int64_t link_clicks(const struct stack *stack, const char *code) {
    char target[96];
    struct http_answer answer;
    (void)snprintf(target, sizeof target, LINKS_PATH "/%s/clicks", code);
    http_ask(stack->url, &(struct http_request){.target = target, .key = stack->api_key}, &answer);
    int64_t total = -1;
    if (answer.status == 200) {
        struct json_doc *doc = links_json(&answer);
        assert_true(json_get_int64(json_root(doc), "total", &total));
        json_doc_free(doc);
    }
    http_answer_done(&answer);
    return total;
}

void link_await_clicks(const struct stack *stack, const char *code, int64_t clicks, int seconds) {
    int64_t end_us = base_monotonic_us() + seconds * US_PER_S;
    int64_t seen;
    while ((seen = link_clicks(stack, code)) != clicks) {
        if (seen > clicks || base_monotonic_us() > end_us)
            fail_msg("%s has %d clicks, not %d", code, (int)seen, (int)clicks);
        (void)nanosleep(&(struct timespec){.tv_nsec = 50 * 1000000}, NULL);
    }
}
