// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/json/json.h"
#include "common/log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Standard error, kept in memory between capture() and release().
static int saved_stderr = -1;
static int memory = -1;

static void capture(void) {
    saved_stderr = dup(STDERR_FILENO);
    memory = memfd_create("log", 0);
    assert_true(saved_stderr >= 0 && memory >= 0);
    assert_true(fcntl(memory, F_SETFL, O_APPEND) == 0);
    assert_true(dup2(memory, STDERR_FILENO) >= 0);
}

static char *release(void) {
    assert_true(dup2(saved_stderr, STDERR_FILENO) >= 0);
    (void)close(saved_stderr);
    off_t size = lseek(memory, 0, SEEK_END);
    assert_true(size >= 0);
    char *text = base_calloc(1, (size_t)size + 1);
    assert_int_equal(pread(memory, text, (size_t)size, 0), size);
    (void)close(memory);
    return text;
}

// The one line that was captured, parsed.
static struct json_doc *release_line(void) {
    char *text = release();
    size_t len = strlen(text);
    assert_true(len > 0 && strchr(text, '\n') == text + len - 1);
    for (size_t i = 0; i + 1 < len; i++)
        assert_true((unsigned char)text[i] >= 0x20 && text[i] != 0x7F);
    struct json_doc *doc = NULL;
    struct problem why = {0};
    if (json_parse(text, len, &doc, &why) != STATUS_OK)
        fail_msg("%s in %s", why.message, text);
    free(text);
    return doc;
}

static void assert_member(const struct json_doc *doc, const char *key, const char *expected, size_t len) {
    size_t got_len = 0;
    const char *got = json_text(json_member(json_root(doc), key), &got_len);
    assert_non_null(got);
    assert_int_equal(got_len, len);
    assert_memory_equal(got, expected, len);
}

// Runs first: nothing is open yet.
static void test_logs_before_it_is_open(void **state) {
    (void)state;
    capture();
    log_info("early");
    log_debug("not shown");
    struct json_doc *doc = release_line();
    assert_member(doc, "service", "", 0);
    assert_member(doc, "msg", "early", 5);
    json_doc_free(doc);
}

static void test_writes_fields_in_order(void **state) {
    (void)state;
    assert_true(log_open("keyrange", "info"));
    capture();
    errno = EBADF;
    log_warn("claimed a block", log_int("start", -5), log_text("peer", "tcp://h:1"), log_text("none", NULL),
        log_bool("ok", true), log_double("share", 0.25));
    assert_int_equal(errno, EBADF);
    struct json_doc *doc = release_line();
    const struct json_value *root = json_root(doc);
    static const char *const keys[] = {
        "time", "level", "service", "msg", "start", "peer", "none", "ok", "share"};
    assert_int_equal(json_size(root), ARRAY_LEN(keys));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        assert_string_equal(json_key_at(root, i), keys[i]);
    assert_member(doc, "level", "warn", 4);
    assert_member(doc, "service", "keyrange", 8);
    assert_int_equal(json_type(json_member(root, "none")), JSON_NULL);
    assert_int_equal(json_type(json_member(root, "ok")), JSON_TRUE);
    int64_t start = 0;
    assert_true(json_int64(json_member(root, "start"), &start));
    assert_int_equal(start, -5);
    const char *time = json_text(json_member(root, "time"), NULL);
    int year;
    int rest[6];
    char zone;
    assert_int_equal(strlen(time), strlen("2026-01-02T03:04:05.678Z"));
    assert_int_equal(sscanf(time, "%4d-%2d-%2dT%2d:%2d:%2d.%3d%c", &year, &rest[0], &rest[1], &rest[2],
                         &rest[3], &rest[4], &rest[5], &zone),
        8);
    assert_true(year >= 2024 && zone == 'Z');
    json_doc_free(doc);
}

static void test_one_event_is_one_line(void **state) {
    (void)state;
    static const struct {
        const char *in;
        size_t in_len;
        const char *out;
        size_t out_len;
    } cases[] = {
#define SAME(text) {text, sizeof(text) - 1, text, sizeof(text) - 1}
        SAME("/\r\nFAKE 200"),
        SAME("\"}\n{\"level\":\"critical\",\"msg\":\"forged\"}"),
        SAME("tab\tescape\x1b[2J quote\" back\\ delete\x7f bell\a"),
        SAME("nul\0nul"),
        SAME("\xC3\xBC\xE2\x82\xAC"),
        {"bad\xC0\xAF\xFF", 6, "bad\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 12},
        {"cut\xE2\x82", 5, "cut\xEF\xBF\xBD\xEF\xBF\xBD", 9},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        capture();
        log_info("request", log_bytes("path", cases[i].in, cases[i].in_len), log_int("n", (int64_t)i));
        struct json_doc *doc = release_line();
        assert_member(doc, "path", cases[i].out, cases[i].out_len);
        assert_member(doc, "level", "info", 4);
        assert_member(doc, "msg", "request", 7);
        json_doc_free(doc);
    }
}

// A three-byte character at every place around the limit.
static void test_cuts_long_text_between_characters(void **state) {
    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        char text[3001];
        memset(text, 'a', shift);
        for (size_t at = shift; at + 3 <= 3000; at += 3)
            (void)snprintf(text + at, 4, "%s", "\xE2\x82\xAC");
        capture();
        log_info("long", log_bytes("text", text, 2000));
        struct json_doc *doc = release_line();
        size_t whole = shift + (1024 - shift) / 3 * 3;
        assert_member(doc, "text", text, whole);
        json_doc_free(doc);
    }
    char noise[2000];
    memset(noise, 0x80, sizeof noise);
    capture();
    log_info("no character ends", log_bytes("text", noise, sizeof noise));
    struct json_doc *doc = release_line();
    size_t len = 0;
    assert_non_null(json_text(json_member(json_root(doc), "text"), &len));
    assert_in_range(len, 3 * 1020, 3 * 1024);
    json_doc_free(doc);
}

static void test_keeps_to_its_level(void **state) {
    (void)state;
    assert_false(log_open("x", "verbose"));
    assert_false(log_open("x", ""));
    assert_true(log_open("writer", "error"));
    capture();
    log_warn("not shown");
    log_critical("shown");
    struct json_doc *doc = release_line();
    assert_member(doc, "level", "critical", 8);
    json_doc_free(doc);
    assert_true(log_open("writer", "debug"));
    capture();
    const struct log_field fields[] = {log_int("A", 1), log_text("B", "two")};
    log_write_fields(LOG_LEVEL_DEBUG, "settings", fields, 2);
    doc = release_line();
    assert_member(doc, "level", "debug", 5);
    assert_member(doc, "B", "two", 3);
    json_doc_free(doc);
    assert_true(log_open("writer", "info"));
}

enum { THREADS = 4, LINES = 200 };

static void *shout(void *arg) {
    char text[1000];
    memset(text, *(char *)arg, sizeof text);
    for (int i = 0; i < LINES; i++)
        log_info("shout", log_bytes("a", text, sizeof text), log_bytes("b", text, sizeof text),
            log_bytes("c", text, sizeof text), log_bytes("d", text, sizeof text),
            log_bytes("e", text, sizeof text));
    return NULL;
}

static void test_threads_never_mix(void **state) {
    (void)state;
    char names[THREADS] = {'p', 'q', 'r', 's'};
    pthread_t threads[THREADS];
    capture();
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, shout, &names[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    char *text = release();
    size_t lines = 0;
    for (char *at = text; *at != '\0'; lines++) {
        size_t len = strcspn(at, "\n");
        struct json_doc *doc = NULL;
        assert_int_equal(json_parse(at, len, &doc, NULL), STATUS_OK);
        json_doc_free(doc);
        at += len + 1;
    }
    assert_int_equal(lines, THREADS * LINES);
    free(text);
}

static void test_limits_repeated_lines(void **state) {
    (void)state;
    struct log_limit limit = {0};
    int64_t suppressed = -1;
    assert_true(log_allowed(&limit, &suppressed));
    assert_int_equal(suppressed, 0);
    for (int i = 0; i < 5; i++)
        assert_false(log_allowed(&limit, &suppressed));
    atomic_store(&limit.next_us, 0); // as if a second had passed
    assert_true(log_allowed(&limit, &suppressed));
    assert_int_equal(suppressed, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logs_before_it_is_open),
        cmocka_unit_test(test_writes_fields_in_order),
        cmocka_unit_test(test_one_event_is_one_line),
        cmocka_unit_test(test_cuts_long_text_between_characters),
        cmocka_unit_test(test_keeps_to_its_level),
        cmocka_unit_test(test_threads_never_mix),
        cmocka_unit_test(test_limits_repeated_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
