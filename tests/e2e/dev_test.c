// SPDX-License-Identifier: MIT
// ./dev: what it starts, says, keeps and deletes.
#include "tests/support/json_get.h"
#include "tests/support/links.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct stack *stack;

static const char *const parts[] = {
    "postgres", "redis", "kafka", "keyrange", "writer", "clicks", "redirector"};

static int group_setup(void **state) {
    (void)state;
    stack = stack_up();
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    stack_down(stack);
    return 0;
}

static void dev(const char *word, struct process_result *out) {
    stack_dev(stack, NULL, out, WORDS(word));
    if (out->timed_out || out->code != 0)
        fail_msg("./dev %s: exit code %d: %s%s", word, out->code, out->out, out->err);
}

// The line that begins with this word.
static bool has_row(const char *said, const char *name, const char *text) {
    for (const char *line = said; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t len = strcspn(line, "\n");
        char copy[512];
        (void)snprintf(copy, sizeof copy, "%.*s", (int)(len < 511 ? len : 511), line);
        if (strncmp(copy, name, strlen(name)) == 0 && strstr(copy, text) != NULL)
            return true;
    }
    return false;
}

static void help_lists_the_commands(void **state) {
    (void)state;
    static const char *const commands[] = {
        "up", "down", "reset", "status", "logs", "env", "start", "stop", "test", "check"};
    struct process_result result;
    const char *const argv[] = {getenv("DUNLIN_DEV"), "--help", NULL};
    process_run(argv, NULL, 10 * US_PER_S, &result);
    assert_int_equal(result.code, 0);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        char row[32];
        (void)snprintf(row, sizeof row, "\n  %s ", commands[i]);
        if (strstr(result.out, row) == NULL)
            fail_msg("--help does not know %s: %s", commands[i], result.out);
    }
    process_result_done(&result);
    const char *const unknown[] = {getenv("DUNLIN_DEV"), "frobnicate", NULL};
    process_run(unknown, NULL, 10 * US_PER_S, &result);
    assert_int_equal(result.code, 2);
    assert_non_null(strstr(result.err, "frobnicate"));
    process_result_done(&result);
}

static void status_tells_each_part(void **state) {
    (void)state;
    struct process_result result;
    struct json_doc *doc = NULL;
    struct problem why = {0};
    stack_dev(stack, NULL, &result, WORDS("status", "--json"));
    assert_int_equal(result.code, 0);
    assert_int_equal(json_parse(result.out, strlen(result.out), &doc, &why), STATUS_OK);
    const struct json_value *list = json_root(doc);
    assert_int_equal(json_type(list), JSON_ARRAY);
    assert_int_equal(json_size(list), ARRAY_LEN(parts));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const struct json_value *part = json_at(list, i);
        int64_t pid = 0, port = 0;
        assert_non_null(json_get_text(part, "name"));
        assert_string_equal(json_get_text(part, "name"), parts[i]);
        assert_true(json_get_int64(part, "pid", &pid) && kill((pid_t)pid, 0) == 0);
        assert_true(json_get_int64(part, "port", &port) && port > 0 && port < 65536);
        assert_true(json_get_is(part, "ready", JSON_TRUE));
        assert_int_equal(json_size(part), 4);
    }
    json_doc_free(doc);
    process_result_done(&result);
    dev("status", &result);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        assert_true(has_row(result.out, parts[i], "ready"));
    assert_non_null(strstr(result.out, stack->dir)); // where the data is
    process_result_done(&result);
}

static void up_again_says_what_runs(void **state) {
    (void)state;
    struct process_result result;
    struct stack_part before[ARRAY_LEN(parts)];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        before[i] = stack_status(stack, parts[i]);
    dev("up", &result);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct stack_part after = stack_status(stack, parts[i]);
        if (!has_row(result.out, parts[i], "runs already"))
            fail_msg("%s is not said to run: %s", parts[i], result.out);
        assert_int_equal(after.pid, before[i].pid);
        assert_int_equal(after.port, before[i].port);
    }
    assert_non_null(strstr(result.out, stack->url));
    assert_non_null(strstr(result.out, stack->api_key));
    process_result_done(&result);
}

// The commands that it prints to paste do what they say: create, follow, clicks.
static void up_prints_commands_that_work(void **state) {
    (void)state;
    static const char *const expected[] = {"HTTP/1.1 201", "HTTP/1.1 302", "\"total\":"};
    struct process_result up;
    dev("up", &up);
    char *line = up.out;
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        struct process_result result;
        line = strstr(line, "\n  curl ");
        assert_non_null(line);
        char *end = strchr(++line, '\n');
        assert_non_null(end);
        *end = '\0';
        const char *const argv[] = {"sh", "-c", line, NULL};
        process_run(argv, NULL, 20 * US_PER_S, &result);
        if (result.code != 0 || strstr(result.out, expected[i]) == NULL)
            fail_msg("%s: %s%s", line, result.out, result.err);
        process_result_done(&result);
        *end = '\n';
        line = end;
    }
    assert_null(strstr(line, "\n  curl "));
    process_result_done(&up);
}

static void env_says_all_variables(void **state) {
    (void)state;
    static const char script[] =
        "eval \"$(\"$DUNLIN_DEV\" env --dir \"$1\")\" && for name in DUNLIN_URL DUNLIN_API_KEY DUNLIN_WRITER "
        "DUNLIN_KEYRANGE DUNLIN_CLICKS DUNLIN_PG DUNLIN_REDIS DUNLIN_KAFKA; do "
        "sh -c 'printenv \"$1\"' sh \"$name\" || echo missing \"$name\"; done"; // exported, so that children
                                                                                // see them
    struct process_result result;
    const char *const argv[] = {"sh", "-c", script, "sh", stack->dir, NULL};
    process_run(argv, NULL, 20 * US_PER_S, &result);
    assert_int_equal(result.code, 0);
    char expected[9 * STACK_TEXT];
    (void)snprintf(expected, sizeof expected, "%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", stack->url, stack->api_key,
        stack->writer, stack->keyrange, stack->clicks, stack->pg, stack->redis, stack->kafka);
    assert_string_equal(result.out, expected);
    process_result_done(&result);
    assert_int_equal(strncmp(stack->url, "http://127.0.0.1:", 17), 0);
    assert_int_equal(strncmp(stack->writer, "tcp://127.0.0.1:", 16), 0);
    assert_int_equal(strncmp(stack->redis, "redis://127.0.0.1:", 18), 0);
}

static void logs_prints_and_ends(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char *said = stack_logs(stack, parts[i]);
        assert_true(strlen(said) > 0);
        free(said);
    }
    struct process_result result;
    stack_dev(stack, NULL, &result, WORDS("logs", "nobody"));
    assert_int_not_equal(result.code, 0);
    assert_non_null(strstr(result.err, "nobody"));
    process_result_done(&result);
}

// ---- ports

// A listening socket on a port that the kernel picks.
static int take_port(int *port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void a_taken_port_is_named(void **state) {
    (void)state;
    int port = 0;
    int fd = take_port(&port);
    char text[16], pid[32];
    struct process_result result;
    struct stack *other = stack_create();
    (void)snprintf(text, sizeof text, "%d", port);
    (void)snprintf(pid, sizeof pid, "pid %d", (int)getpid());
    stack_dev(other, NULL, &result, WORDS("up", "--port", text));
    assert_int_equal(result.code, 1);
    if (strstr(result.err, text) == NULL || strstr(result.err, "redirector") == NULL ||
        strstr(result.err, pid) == NULL)
        fail_msg("port %s, redirector and %s are not named: %s", text, pid, result.err);
    process_result_done(&result);
    assert_int_equal(stack_status(other, "postgres").pid, 0); // told before anything was started
    stack_down(other);
    (void)close(fd);
}

// ---- the data

static void down_keeps_the_data(void **state) {
    (void)state;
    struct link link;
    struct process_result result;
    char url[STACK_TEXT], key[STACK_TEXT];
    link_create(stack, "{\"url\":\"https://dest.example/kept\",\"alias\":\"kept-link\"}", &link);
    link_must_redirect(stack, "kept-link", "https://dest.example/kept");
    link_await_clicks(stack, "kept-link", 1, 5);
    (void)snprintf(url, sizeof url, "%s", stack->url);
    (void)snprintf(key, sizeof key, "%s", stack->api_key);

    int pids[ARRAY_LEN(parts)];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        pids[i] = stack_status(stack, parts[i]).pid;
    dev("down", &result);
    process_result_done(&result);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct stack_part part = stack_status(stack, parts[i]);
        char proc[64];
        assert_true(part.is_known && part.pid == 0 && !part.ready && part.port > 0);
        (void)snprintf(proc, sizeof proc, "/proc/%d/exe", pids[i]); // a zombie has none
        assert_true(access(proc, F_OK) != 0);
    }
    dev("down", &result);
    assert_non_null(strstr(result.out, "nothing runs"));
    process_result_done(&result);

    dev("up", &result);
    process_result_done(&result);
    stack_read_environment(stack);
    assert_string_equal(stack->url, url);
    assert_string_equal(stack->api_key, key);
    link_must_redirect(stack, "kept-link", "https://dest.example/kept");
    link_await_clicks(stack, "kept-link", 2, 10);
    assert_int_equal(link_try_create(stack, "{\"url\":\"https://dest.example/after-down\"}"), 201);
}

static void reset_deletes_the_data(void **state) {
    (void)state;
    struct process_result result;
    int pid = stack_status(stack, "postgres").pid;
    char proc[64];
    struct stat seen;
    dev("reset", &result);
    process_result_done(&result);
    (void)snprintf(proc, sizeof proc, "/proc/%d/exe", pid);
    assert_true(access(proc, F_OK) != 0);
    assert_true(stat(stack->dir, &seen) != 0);
    stack_dev(stack, NULL, &result, WORDS("env"));
    assert_int_not_equal(result.code, 0);
    process_result_done(&result);

    stack_dev(stack, NULL, &result, WORDS("up", "--port", "0"));
    assert_int_equal(result.code, 0);
    process_result_done(&result);
    stack_read_environment(stack);
    assert_int_equal(link_follow(stack, "/kept-link"), 404);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_lists_the_commands),
        cmocka_unit_test(status_tells_each_part),
        cmocka_unit_test(up_again_says_what_runs),
        cmocka_unit_test(up_prints_commands_that_work),
        cmocka_unit_test(env_says_all_variables),
        cmocka_unit_test(logs_prints_and_ends),
        cmocka_unit_test(a_taken_port_is_named),
        cmocka_unit_test(down_keeps_the_data),
        cmocka_unit_test(reset_deletes_the_data),
    };
    return cmocka_run_group_tests_name("e2e/dev", tests, group_setup, group_teardown);
}
