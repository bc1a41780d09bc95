// SPDX-License-Identifier: MIT
// What a request leaves behind in Redis' command stream and in our logs.
#include "tests/e2e/cases.h"
#include "tests/support/raw.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Redis

static struct raw *start_monitor(void) {
    struct raw *monitor = raw_open(cases_stack->redis);
    struct buf line;
    assert_non_null(monitor);
    buf_init(&line, 256);
    assert_true(raw_send(monitor, "MONITOR\r\n", 9) && raw_read_line(monitor, &line));
    assert_string_equal(buf_text(&line), "+OK");
    buf_done(&line);
    return monitor;
}

// A command of ours that ends what the monitor is read for.
static void send_marker(const char *marker) {
    char command[64];
    struct raw *raw = raw_open(cases_stack->redis);
    struct buf line;
    assert_non_null(raw);
    buf_init(&line, 256);
    int len = snprintf(command, sizeof command, "ECHO %s\r\n", marker);
    assert_true(raw_send(raw, command, (size_t)len) && raw_read_line(raw, &line));
    buf_done(&line);
    raw_close(raw);
}

// The commands on keys since the monitor was last read, as Redis prints them: "GET" "key" a line.
static void read_commands(struct raw *monitor, const char *marker, struct buf *out) {
    send_marker(marker);
    buf_init(out, 65536);
    for (;;) {
        struct buf line;
        buf_init(&line, 65536);
        assert_true(raw_read_line(monitor, &line));
        bool done = strstr(buf_text(&line), marker) != NULL;
        const char *command = strstr(buf_text(&line), "] ");
        if (!done && command != NULL && strcasecmp(command + 2, "\"PING\"") != 0)
            buf_printf(out, "%s\n", command + 2);
        buf_done(&line);
        if (done)
            return;
    }
}

void a_lookup_touches_one_key_in_redis(void **state) {
    (void)state;
    static const char *const impossible[] = {"/%25s", "/%25b", "/%25s%25s%25s%25n", "/a%20b", "/a%20EX%201",
        "/abcd%0d%0aFLUSHALL", "/%22abcd%22", "/abcd%00", "/*abcd", "/%zz%zz"};
    char code[] = "plain-117", key[64], expected[128];
    struct link link;
    struct buf commands;
    link_create(cases_stack, "{\"url\":\"https://dest.example/one-key\",\"alias\":\"plain-117\"}", &link);
    struct raw *monitor = start_monitor();
    for (size_t i = 0; i < ARRAY_LEN(impossible); i++) {
        struct http_answer answer;
        http_get(cases_stack->url, impossible[i], &answer);
        if (answer.status != 404)
            fail_msg("case 117: GET %s: status %d", impossible[i], answer.status);
        http_answer_done(&answer);
    }
    read_commands(monitor, "no-keys-so-far", &commands);
    assert_string_equal(buf_text(&commands), "");
    buf_done(&commands);

    link_must_redirect(cases_stack, "plain%2d117", "https://dest.example/one-key");
    read_commands(monitor, "one-key-so-far", &commands);
    cases_redis_key(code, key);
    (void)snprintf(expected, sizeof expected, "\"GET\" \"%s\"\n", key);
    assert_string_equal(buf_text(&commands), expected);
    buf_done(&commands);
    raw_close(monitor);
    cases_expect_alive(117);
}

// ---- logs

static void expect_json_lines(const char *part) {
    char *said = stack_logs(cases_stack, part);
    size_t lines = 0;
    char *rest = said, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        struct json_doc *doc = NULL;
        struct problem why = {0};
        if (*line == '\0')
            continue;
        if (json_parse(line, strlen(line), &doc, &why) != STATUS_OK ||
            json_type(json_root(doc)) != JSON_OBJECT)
            fail_msg("case 151: a line of %s is no JSON object (%s): %s", part, why.message, line);
        assert_true(strlen(links_text(doc, "time")) > 0);
        assert_true(strlen(links_text(doc, "level")) > 0);
        assert_string_equal(links_text(doc, "service"), part);
        assert_true(strlen(links_text(doc, "msg")) > 0);
        for (const char *byte = line; *byte != '\0'; byte++)
            assert_true((unsigned char)*byte >= ' ' && *byte != '\x7f');
        json_doc_free(doc);
        lines++;
    }
    assert_true(lines > 0);
    free(said);
}

void a_request_is_one_line_in_a_log(void **state) {
    (void)state;
    static const struct {
        const char *target;
        const char *fields;
        int status; // 0: any answer
    } rows[] = {
        {"/%0d%0aFAKE%20200", NULL, 404},
        {"/%0aFAKE", NULL, 404},
        {"/%1b%5b31mred", NULL, 404},
        {"/unknown-151", "User-Agent: a\tb \"quoted\" \\ back\r\n", 404},
        {"/unknown-151", "User-Agent: \x1b[31m\x7f\r\n", 0},
        {"/unknown-151", "X-Request-Id: \"},{\"level\":\"info\"\r\n", 404},
        {"/unknown-151", "Referer: https://dest.example/\"\\\xff\r\n", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_answer answer;
        http_ask(cases_stack->url, &(struct http_request){.target = rows[i].target, .fields = rows[i].fields},
            &answer);
        if (answer.status == 0 || (rows[i].status != 0 && answer.status != rows[i].status))
            fail_msg("case 151: row %zu: status %d", i, answer.status);
        http_answer_done(&answer);
    }
    cases_expect_alias_refused(151, "line\\none");
    cases_expect_url_refused(151, "https://dest.example/line\\n{}");
    cases_expect_alive(151);
    static const char *const parts[] = {"redirector", "writer", "keyrange", "clicks"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        expect_json_lines(parts[i]);
}
