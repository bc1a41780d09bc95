// SPDX-License-Identifier: MIT
#include "common/web/web_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BODY_MAX 65536

// Judges a head of one line and fields that are written "name: value", one a line.
static struct web_head judge(
    const char *method, const char *target, const char *version, const char *fields) {
    struct web_head head;
    size_t line = strlen(method) + strlen(target) + strlen(version) + 2;
    size_t len = line;
    web_head_begin(&head);
    web_head_line(&head, method, target, version);
    while (*fields != '\0') {
        size_t end = strcspn(fields, "\n");
        size_t colon = strcspn(fields, ":");
        size_t value = colon + 1 + strspn(fields + colon + 1, " ");
        web_head_field(&head, fields, colon, fields + value, end - value);
        len += end;
        fields += end + (fields[end] == '\n');
    }
    web_head_end(&head, line, len, BODY_MAX);
    return head;
}

static int status(const char *fields) {
    return judge("GET", "/c", "HTTP/1.1", fields).refusal;
}

static int target_status(const char *method, const char *target) {
    return judge(method, target, "HTTP/1.1", "Host: a").refusal;
}

static void passes_ordinary_requests(void **state) {
    (void)state;
    struct web_head head =
        judge("GET", "/c?q", "HTTP/1.1", "Host: s.example\nAccept: */*\nX-Tab: a\tb\xC3\xA9");
    assert_int_equal(head.refusal, 0);
    assert_string_equal(head.detail, "");
    assert_int_equal(head.method, WEB_GET);
    assert_int_equal(head.fields, 3);
    assert_int_equal(judge("GET", "/c", "HTTP/1.0", "").refusal, 0);
    assert_int_equal(status("Host: a\nTransfer-Encoding: Chunked"), 0);
    assert_int_equal(status("Host: a\nContent-Length: 65536"), 0);
    assert_int_equal(status("Host: a\nContent-Length: 5 \t"), 0);
    assert_int_equal(status("Host: a\nExpect: 100-Continue"), 0);
    assert_int_equal(judge("GET", "/c", "HTTP/1.0", "Expect: other").refusal, 0);
}

static void knows_the_methods(void **state) {
    (void)state;
    static const struct {
        const char *word;
        enum web_method method;
    } rows[] = {
        {"GET", WEB_GET},
        {"HEAD", WEB_HEAD},
        {"POST", WEB_POST},
        {"PUT", WEB_PUT},
        {"PATCH", WEB_PATCH},
        {"DELETE", WEB_DELETE},
        {"OPTIONS", WEB_OPTIONS},
        {"TRACE", WEB_TRACE},
        {"CONNECT", WEB_CONNECT},
        {"get", WEB_OTHER},
        {"BREW", WEB_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct web_head head = judge(rows[i].word, "/c", "HTTP/1.1", "Host: a");
        assert_int_equal(head.method, rows[i].method);
        assert_int_equal(head.refusal, 0);
    }
    assert_int_equal(target_status("G(T", "/c"), 400);
    assert_int_equal(target_status("", "/c"), 400);
}

static void judges_hosts(void **state) {
    (void)state;
    static const char *const good[] = {
        "a", "a.b:80", "a:", "[::1]", "[2001:db8::1.2.3.4]:8080", "1.2.3.4", "%41_~"};
    static const char *const bad[] = {"", ":80", "a b", "a/b", "u@a", "a:x", "a:1:2", "[::1", "[]", "[::g]",
        "::1", "a\xC3\xA9", "[::1]x", "a?b", "a#b"};
    char field[64];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        (void)snprintf(field, sizeof field, "Host: %s", good[i]);
        if (status(field) != 0)
            fail_msg("%s is a host", good[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        (void)snprintf(field, sizeof field, "Host: %s", bad[i]);
        if (status(field) != 400)
            fail_msg("%s is no host", bad[i]);
    }
    assert_int_equal(status(""), 400);
    assert_int_equal(status("Host: a\nHOST: a"), 400);
}

static void judges_targets(void **state) {
    (void)state;
    static const char *const good[] = {"/", "/c", "//c", "/%zz[]", "/!$&'()*+,;=:@-._~", "/c?",
        "/c?\x01\x7f\xff\"<>\\^`{|}?", "http://a", "HTTPS://a:1/b", "http://a?q", "/c\?\?", "/%00"};
    static const char *const bad[] = {"", "c", "*", "?q", "#", "/#", "/c?#", "/c?a b", "/c?\r", "/ ", "/\x01",
        "/\x7f", "/\xC3\xA9", "/\"", "/<", "/>", "/\\", "/^", "/`", "/{", "/|", "/}", "http://", "http:///c",
        "http://u@a/", "http://a#", "http:/a", "ftp://a/", "http://a b/", "http://[::1/"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (target_status("GET", good[i]) != 0)
            fail_msg("%s is a target", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (target_status("GET", bad[i]) != 400)
            fail_msg("%s is no target", bad[i]);
    assert_int_equal(target_status("OPTIONS", "*"), 0);
    assert_int_equal(target_status("CONNECT", "a:443"), 0);
}

// Each byte at each place, since values are read eight bytes at a time.
static void judges_every_byte_of_a_value(void **state) {
    (void)state;
    for (size_t len = 1; len <= 20; len++) {
        for (size_t at = 0; at < len; at++) {
            for (int byte = 0; byte < 256; byte++) {
                char value[24];
                struct web_head head;
                memset(value, 'v', sizeof value);
                value[at] = (char)byte;
                web_head_begin(&head);
                web_head_field(&head, "X", 1, value, len);
                bool bad = (byte < 0x20 && byte != '\t') || byte == 0x7F;
                assert_int_equal(head.refusal, bad ? 400 : 0);
            }
        }
    }
}

static void judges_every_byte_of_a_name(void **state) {
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char name[2] = {'X', (char)byte};
        struct web_head head;
        web_head_begin(&head);
        web_head_field(&head, name, 2, "", 0);
        bool token = byte != 0 &&
                     strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                         byte) != NULL;
        assert_int_equal(head.refusal, token ? 0 : 400);
    }
    assert_int_equal(status("Host: a\n: v"), 400);
}

static void judges_the_framing(void **state) {
    (void)state;
    assert_int_equal(status("Host: a\nContent-Length: 1\nContent-Length: 1"), 400);
    assert_int_equal(status("Host: a\nContent-Length: 1, 1"), 400);
    assert_int_equal(status("Host: a\nContent-Length: -1"), 400);
    assert_int_equal(status("Host: a\nContent-Length:"), 400);
    assert_int_equal(status("Host: a\nContent-Length: 65537"), 413);
    assert_int_equal(status("Host: a\nContent-Length: 18446744073709551616"), 413);
    assert_int_equal(status("Host: a\nContent-Length: 184467440737095516160000"), 413);
    assert_int_equal(status("Host: a\nTransfer-Encoding: chunked\nContent-Length: 1"), 400);
    assert_int_equal(status("Host: a\nContent-Length: 1\nTransfer-Encoding: gzip"), 400);
    assert_int_equal(status("Host: a\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked"), 400);
    assert_int_equal(status("Host: a\nTransfer-Encoding: gzip"), 501);
    assert_int_equal(status("Host: a\nTransfer-Encoding: chunked, chunked"), 501);
    assert_int_equal(status("Host: a\nExpect: 200-ok"), 417);
    assert_int_equal(judge("POST", "/", "HTTP/1.0", "Transfer-Encoding: chunked").refusal, 400);
}

static int sized(size_t line_len, size_t len, size_t fields, const char *field) {
    struct web_head head;
    web_head_begin(&head);
    web_head_line(&head, "GET", "/c", "HTTP/1.1");
    web_head_field(&head, "Host", 4, "a", 1);
    for (size_t i = 1; i < fields; i++)
        web_head_field(&head, field, strlen(field), "v", 1);
    web_head_end(&head, line_len, len, BODY_MAX);
    return head.refusal;
}

static bool expects(const char *version, const char *fields) {
    return judge("POST", "/", version, fields).expects;
}

static void sees_who_waits_for_leave(void **state) {
    (void)state;
    assert_true(expects("HTTP/1.1", "Host: a\nExpect: 100-Continue\nContent-Length: 1"));
    assert_true(expects("HTTP/1.1", "Host: a\nTransfer-Encoding: chunked\nExpect: 100-continue"));
    assert_false(expects("HTTP/1.1", "Host: a\nExpect: 100-continue\nContent-Length: 0"));
    assert_false(expects("HTTP/1.1", "Host: a\nExpect: 100-continue"));
    assert_false(expects("HTTP/1.1", "Host: a\nContent-Length: 1"));
    assert_false(expects("HTTP/1.0", "Host: a\nExpect: 100-continue\nContent-Length: 1"));
}

static void judges_sizes_and_puts_the_gravest_first(void **state) {
    (void)state;
    assert_int_equal(sized(8192, 12288, 100, "X"), 0);
    assert_int_equal(sized(8193, 12288, 100, "X"), 414);
    assert_int_equal(sized(8192, 12289, 100, "X"), 431);
    assert_int_equal(sized(8192, 12288, 101, "X"), 431);
    assert_int_equal(sized(8193, 12289, 101, "X"), 414);
    assert_int_equal(sized(8193, 12289, 101, "X@"), 400);
    assert_int_equal(sized(14, 12289, 3, "Transfer-Encoding"), 400);
    assert_int_equal(sized(14, 12289, 2, "Transfer-Encoding"), 431);
    assert_int_equal(status("Host: a\nExpect: x\nContent-Length: 65537"), 417);
    assert_int_equal(status("Content-Length: 65537"), 400);
}

static void splits_targets(void **state) {
    (void)state;
    static const struct {
        const char *target;
        const char *path;
        const char *query;
        const char *host;
    } rows[] = {
        {"/", "/", NULL, NULL},
        {"/c?", "/c", "", NULL},
        {"/c?a?b", "/c", "a?b", NULL},
        {"*", "*", NULL, NULL},
        {"http://a", "/", NULL, "a"},
        {"http://a/", "/", NULL, "a"},
        {"HTTPS://A.b:81/c?d", "/c", "d", "A.b:81"},
        {"http://[::1]?q", "/", "q", "[::1]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct web_target parts;
        char *target = base_strdup(rows[i].target);
        web_head_split(target, &parts);
        assert_string_equal(parts.path, rows[i].path);
        assert_string_equal(
            parts.query == NULL ? "none" : parts.query, rows[i].query == NULL ? "none" : rows[i].query);
        assert_string_equal(
            parts.host == NULL ? "none" : parts.host, rows[i].host == NULL ? "none" : rows[i].host);
        free(target);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_ordinary_requests),
        cmocka_unit_test(knows_the_methods),
        cmocka_unit_test(judges_hosts),
        cmocka_unit_test(judges_targets),
        cmocka_unit_test(judges_every_byte_of_a_value),
        cmocka_unit_test(judges_every_byte_of_a_name),
        cmocka_unit_test(judges_the_framing),
        cmocka_unit_test(sees_who_waits_for_leave),
        cmocka_unit_test(judges_sizes_and_puts_the_gravest_first),
        cmocka_unit_test(splits_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
