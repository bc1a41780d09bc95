// SPDX-License-Identifier: MIT
// A tiny service in a child process: this program again, told so by an environment variable.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/json/json.h"
#include "common/log/log.h"
#include "common/service/service.h"
#include "tests/support/test_child.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- the tiny service ----

#define TINY_CONFIG(F)                                                                                       \
    F(TEXT, gate, "TINY_GATE", "/nonexistent/gate", 1, 256, "path", 0, "The file whose being there opens.")  \
    F(INT, workers, "TINY_WORKERS", "2", 1, 8, "threads", 0, "How many workers.")                            \
    F(BOOL, fails, "TINY_FAILS", "false", 0, 0, "", 0, "Whether the second part fails to start.")            \
    F(BOOL, hangs, "TINY_HANGS", "false", 0, 0, "", 0, "Whether the second part never stops.")
struct tiny_config {
    TINY_CONFIG(CONFIG_MEMBER)
};
#define CONFIG_STRUCT tiny_config
static const struct config_field tiny_fields[] = {TINY_CONFIG(CONFIG_ROW)};
#define TINY_METRICS(M) M(opened, COUNTER, "tiny_opened_total", "gates", NULL, "Gates opened.", "Nothing.")
static const struct metric_family tiny_families[] = {TINY_METRICS(METRIC_ROW)};

static struct tiny_config tiny;

static enum status gate_start(void *state, struct problem *why) {
    (void)state;
    (void)why;
    metric_count(metric_add(&tiny_families[0]), 3);
    log_info("step", log_text("do", "gate start"));
    return STATUS_OK;
}

static void gate_stop(void *state) {
    (void)state;
    log_info("step", log_text("do", "gate stop"));
}

static bool gate_ready(void *state, char *why, size_t size) {
    (void)state;
    if (access(tiny.gate, F_OK) == 0)
        return true;
    (void)snprintf(why, size, "the gate\nis shut");
    return false;
}

static enum status work_start(void *state, struct problem *why) {
    (void)state;
    if (tiny.fails)
        return problem_set(why, STATUS_FAILED_PRECONDITION, "", "Port 7001 is in use.");
    log_info("step", log_text("do", "work start"));
    return STATUS_OK;
}

static void work_leaving(void *state) {
    (void)state;
    log_info("step", log_text("do", "work leaving"));
}

static void work_drain(void *state) {
    (void)state;
    log_info("step", log_text("do", "work drain"));
}

static void work_stop(void *state) {
    (void)state;
    int64_t left = service_stop_time_left_us();
    log_info("step", log_text("do", "work stop"), log_bool("in_time", left > 0 && left <= 20 * US_PER_S));
    while (tiny.hangs)
        (void)pause();
}

static void render_debug(void *state, struct buf *out) {
    buf_printf(out, "workers %lld, state %s\n", (long long)tiny.workers, (const char *)state);
}

static int tiny_main(int argc, char **argv) {
    static char state[] = "given";
    const struct config_section config = {"tiny", tiny_fields, ARRAY_LEN(tiny_fields), &tiny};
    const struct metric_section metrics = {"tiny", tiny_families, ARRAY_LEN(tiny_families)};
    const struct service_part parts[] = {
        {.name = "gate", .start = gate_start, .stop = gate_stop, .ready = gate_ready},
        {.name = "work",
            .start = work_start,
            .leaving = work_leaving,
            .drain = work_drain,
            .stop = work_stop},
    };
    const struct service_route route = {"/debug/tiny", render_debug};
    const struct service service = {
        .name = "tiny",
        .summary = "Shows how a service lives.",
        .admin_preset = "127.0.0.1:9199",
        .config = &config,
        .config_count = 1,
        .metrics = &metrics,
        .metrics_count = 1,
        .parts = parts,
        .part_count = ARRAY_LEN(parts),
        .routes = &route,
        .route_count = 1,
        .state = state,
    };
    return service_main(&service, argc, argv);
}

// ---- its children ----

static char folder[] = "/tmp/dunlin-service-test-XXXXXX";
static char gate_path[64];

// `settings`: name, value, …, NULL; NULL for none.
static struct child *start_tiny(const char *option, const char *const *settings) {
    const char *all[16] = {
        "TINY_SERVICE", "1", "ADMIN_LISTEN", "127.0.0.1:0", "DRAIN_DELAY_MS", "0", "TINY_GATE", gate_path};
    size_t count = 8;
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++)
        all[count++] = settings[i];
    const char *const argv[] = {"/proc/self/exe", option, NULL};
    return child_start(argv, all);
}

static struct child *run_tiny(const char *option, const char *const *settings, int expected) {
    struct child *child = start_tiny(option, settings);
    int code = child_end(child);
    if (code != expected)
        fail_msg("exit code %d, not %d:\n%s", code, expected, child_said(child));
    return child;
}

// Starts one that serves and returns when its parts are started.
static struct child *serve_tiny(const char *const *settings, int *port) {
    struct child *child = start_tiny(NULL, settings);
    (void)child_wait_for(child, "\"do\":\"work start\"");
    const char *text = child_wait_for(child, "\"port\":");
    *port = (int)strtol(text + strlen("\"port\":"), NULL, 10);
    assert_in_range(*port, 1, 65535);
    return child;
}

static void assert_answer(int port, const char *method, const char *path, int status, const char *body) {
    char *text = child_ask(port, method, path);
    int got = 0;
    assert_int_equal(sscanf(text, "HTTP/1.1 %d ", &got), 1);
    assert_int_equal(got, status);
    const char *got_body = strstr(text, "\r\n\r\n");
    assert_non_null(got_body);
    assert_string_equal(got_body + 4, body);
    free(text);
}

static void assert_said(const struct child *child, const char *piece) {
    if (strstr(child_said(child), piece) == NULL)
        fail_msg("\"%s\" is not in:\n%s", piece, child_said(child));
}

// Every line that it logged is one JSON object.
static void assert_json_lines(const struct child *child) {
    for (const char *at = child_said(child); *at != '\0';) {
        size_t len = strcspn(at, "\n");
        struct json_doc *doc = NULL;
        if (json_parse(at, len, &doc, NULL) != STATUS_OK)
            fail_msg("no JSON: %.*s", (int)len, at);
        json_doc_free(doc);
        at += len + (at[len] == '\n');
    }
}

static void test_options(void **state) {
    (void)state;
    struct child *child = run_tiny("--help", NULL, 0);
    assert_said(child, "Usage: dunlin-tiny ");
    assert_said(child, "Shows how a service lives.");
    assert_said(child, "[host:port, 1 to 80 bytes; default 127.0.0.1:9199]");
    assert_said(child, "  TINY_WORKERS ");
    child_free(child);
    child = run_tiny("--version", NULL, 0);
    assert_string_equal(child_said(child), "dunlin-tiny " DUNLIN_VERSION "\n");
    child_free(child);
    child = run_tiny("--describe=settings", NULL, 0);
    assert_said(child, "| `DRAIN_DELAY_MS` | ms, 0 to 600000 | `5000` |");
    assert_said(child, "| `TINY_FAILS` | true or false | `false` |");
    child_free(child);
    child = run_tiny("--describe=metrics", NULL, 0);
    assert_said(child, "| `dunlin_ready` | gauge |");
    assert_said(child, "| `tiny_opened_total` | counter | gates |  | Gates opened. | Nothing. |");
    child_free(child);
    child = run_tiny("--nonsense", NULL, 2);
    assert_said(child, "unknown argument");
    child_free(child);
}

static void test_check(void **state) {
    (void)state;
    static const struct {
        const char *setting[3];
        int code;
        const char *line;
    } cases[] = {
        {{"TINY_WORKERS", "8", NULL}, 0, "dunlin-tiny: the settings are valid\n"},
        {{"TINY_WORKERS", "9", NULL}, 2,
            "dunlin-tiny: TINY_WORKERS=\"9\": must be a whole number from 1 to 8\n"},
        {{"LOG_LEVEL", "loud", NULL}, 2,
            "dunlin-tiny: LOG_LEVEL=\"loud\": must be one of debug|info|warn|error\n"},
        {{"ADMIN_LISTEN", "[::1]:9100", NULL}, 0, "dunlin-tiny: the settings are valid\n"},
        {{"ADMIN_LISTEN", "localhost:9100", NULL}, 2,
            "dunlin-tiny: ADMIN_LISTEN=\"localhost:9100\": must be a numeric address and a port, "
            "127.0.0.1:9100 or [::1]:9100\n"},
        {{"ADMIN_LISTEN", "127.0.0.1:65536", NULL}, 2,
            "dunlin-tiny: ADMIN_LISTEN=\"127.0.0.1:65536\": must be a numeric address and a port, "
            "127.0.0.1:9100 or [::1]:9100\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct child *child = run_tiny("--check", cases[i].setting, cases[i].code);
        assert_string_equal(child_said(child), cases[i].line);
        child_free(child);
    }
    // The same in a real start, as a log line.
    static const char *const bad[] = {"TINY_WORKERS", "no", NULL};
    struct child *child = run_tiny(NULL, bad, 2);
    assert_said(child, "TINY_WORKERS=\\\"no\\\": must be a whole number from 1 to 8");
    assert_json_lines(child);
    child_free(child);
}

static void assert_metrics(int port, const char *ready_line) {
    char *text = child_ask(port, "GET", "/metrics");
    assert_non_null(strstr(text, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert_non_null(strstr(text, "\ndunlin_build_info{service=\"tiny\",version=\"" DUNLIN_VERSION "\"} 1\n"));
    assert_non_null(strstr(text, "\n# TYPE tiny_opened_total counter\ntiny_opened_total 3\n"));
    assert_non_null(strstr(text, ready_line));
    assert_non_null(strstr(text, "\nprocess_open_fds "));
    free(text);
}

static void open_gate(void) {
    int fd = open(gate_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void assert_steps(const struct child *child, const char *const *steps, size_t count) {
    const char *at = child_said(child);
    for (size_t i = 0; i < count; i++) {
        char piece[64];
        (void)snprintf(piece, sizeof piece, "\"do\":\"%s\"", steps[i]);
        const char *found = strstr(at, piece);
        if (found == NULL)
            fail_msg("%s is not in its place in:\n%s", steps[i], child_said(child));
        else
            at = found;
    }
}

static void test_lives_and_drains(void **state) {
    (void)state;
    int port = 0;
    struct child *child = serve_tiny(NULL, &port);
    assert_answer(port, "GET", "/healthz", 200, "ok\n");
    (void)child_wait_for(child, "\"msg\":\"not ready\",\"reason\":\"gate: the gate is shut\"");
    assert_answer(port, "GET", "/readyz", 503, "gate: the gate is shut\n");
    assert_metrics(port, "\ndunlin_ready 0\n");
    open_gate();
    (void)child_wait_for(child, "\"msg\":\"ready\"");
    assert_answer(port, "GET", "/readyz", 200, "ready\n");
    assert_metrics(port, "\ndunlin_ready 1\n");
    assert_answer(port, "GET", "/debug/tiny", 200, "workers 2, state given\n");
    assert_answer(port, "GET", "/debug/other", 404, "not found\n");
    assert_answer(port, "HEAD", "/healthz", 200, "");
    char *refused = child_ask(port, "POST", "/metrics");
    assert_int_equal(strncmp(refused, "HTTP/1.1 405 ", 13), 0);
    assert_non_null(strstr(refused, "\r\nAllow: GET, HEAD\r\n"));
    free(refused);
    child_signal(child, SIGTERM);
    assert_int_equal(child_end(child), 0);
    static const char *const steps[] = {
        "gate start", "work start", "work leaving", "work drain", "work stop", "gate stop"};
    assert_steps(child, steps, ARRAY_LEN(steps));
    assert_said(child, "\"msg\":\"draining\",\"signal\":\"SIGTERM\"");
    assert_said(child, "\"do\":\"work stop\",\"in_time\":true");
    assert_said(child, "\"msg\":\"stopped\",\"exit_code\":0");
    assert_json_lines(child);
    child_free(child);
}

static void test_second_signal_ends_at_once(void **state) {
    (void)state;
    static const char *const settings[] = {"DRAIN_DELAY_MS", "600000", NULL};
    int port = 0;
    open_gate();
    struct child *child = serve_tiny(settings, &port);
    (void)child_wait_for(child, "\"msg\":\"ready\"");
    child_signal(child, SIGINT);
    (void)child_wait_for(child, "\"do\":\"work leaving\"");
    assert_answer(port, "GET", "/readyz", 503, "service: draining\n");
    assert_answer(port, "GET", "/healthz", 200, "ok\n");
    assert_metrics(port, "\ndunlin_ready 0\n");
    assert_answer(port, "GET", "/debug/tiny", 200, "workers 2, state given\n");
    child_signal(child, SIGTERM);
    assert_int_equal(child_end(child), 1);
    assert_said(child, "a second signal");
    assert_null(strstr(child_said(child), "work drain"));
    child_free(child);
}

static void test_unready_again_is_said(void **state) {
    (void)state;
    int port = 0;
    open_gate();
    struct child *child = serve_tiny(NULL, &port);
    (void)child_wait_for(child, "\"msg\":\"ready\"");
    assert_int_equal(unlink(gate_path), 0);
    (void)child_wait_for(child, "\"msg\":\"not ready\"");
    open_gate();
    (void)child_wait_for(child, "\"msg\":\"ready again\"");
    child_signal(child, SIGTERM);
    assert_int_equal(child_end(child), 0);
    child_free(child);
}

static void test_port_in_use(void **state) {
    (void)state;
    int port = 0;
    struct child *first = serve_tiny(NULL, &port);
    char listen[32];
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
    const char *const settings[] = {"ADMIN_LISTEN", listen, NULL};
    struct child *second = run_tiny(NULL, settings, 1);
    assert_said(second, "\"msg\":\"the admin port can't be opened\"");
    assert_said(second, listen);
    assert_null(strstr(child_said(second), "gate start"));
    assert_json_lines(second);
    child_free(second);
    assert_answer(port, "GET", "/healthz", 200, "ok\n");
    child_signal(first, SIGTERM);
    assert_int_equal(child_end(first), 0);
    child_free(first);
}

static void test_part_that_fails(void **state) {
    (void)state;
    static const char *const settings[] = {"TINY_FAILS", "true", NULL};
    struct child *child = run_tiny(NULL, settings, 1);
    assert_said(child, "\"level\":\"error\"");
    assert_said(
        child, "\"part\":\"work\",\"status\":\"FAILED_PRECONDITION\",\"reason\":\"Port 7001 is in use.\"");
    static const char *const steps[] = {"gate start", "gate stop"};
    assert_steps(child, steps, ARRAY_LEN(steps));
    assert_null(strstr(child_said(child), "work stop"));
    child_free(child);
}

static void test_stop_that_hangs(void **state) {
    (void)state;
    static const char *const settings[] = {"TINY_HANGS", "true", "SHUTDOWN_TIMEOUT_MS", "100", NULL};
    int port = 0;
    struct child *child = serve_tiny(settings, &port);
    child_signal(child, SIGTERM);
    (void)child_wait_for(child, "\"do\":\"work stop\"");
    assert_answer(port, "GET", "/metrics", 503, "stopping\n");
    assert_int_equal(child_end(child), 1);
    assert_said(child, "stopping took longer than SHUTDOWN_TIMEOUT_MS");
    child_free(child);
}

static int make_folder(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(gate_path, sizeof gate_path, "%s/gate", folder);
    return 0;
}

static int shut_gate(void **state) {
    (void)state;
    (void)unlink(gate_path);
    return 0;
}

static int remove_folder(void **state) {
    (void)shut_gate(state);
    return rmdir(folder);
}

int main(int argc, char **argv) {
    if (getenv("TINY_SERVICE") != NULL)
        return tiny_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_check),
        cmocka_unit_test_setup(test_lives_and_drains, shut_gate),
        cmocka_unit_test_setup(test_second_signal_ends_at_once, shut_gate),
        cmocka_unit_test_setup(test_unready_again_is_said, shut_gate),
        cmocka_unit_test_setup(test_port_in_use, shut_gate),
        cmocka_unit_test_setup(test_part_that_fails, shut_gate),
        cmocka_unit_test_setup(test_stop_that_hangs, shut_gate),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
