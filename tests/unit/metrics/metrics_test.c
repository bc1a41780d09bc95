// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/metrics/metrics.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_METRICS(M)                                                                                      \
    M(plain, COUNTER, "zz_plain_total", "things", NULL, "Counts\\things\non two lines.", "Look.")            \
    M(labelled, COUNTER, "ab_requests_total", "requests", "method,status", "Requests.", "Look | there.")     \
    M(level, GAUGE, "mm_level", "units", NULL, "A level.", "Look.")                                          \
    M(asked, GAUGE, "mm_asked", "units", NULL, "A level that is asked for.", "Look.")                        \
    M(took, HISTOGRAM, "took_seconds", "seconds", "op", "Times.", "Look.")                                   \
    M(bare, HISTOGRAM, "ztook_seconds", "seconds", NULL, "Times without labels.", "Look.")                   \
    M(unused, COUNTER, "unused_total", "things", NULL, "Never added.", "Look.")
static const struct metric_family families[] = {TEST_METRICS(METRIC_ROW)};
enum { PLAIN, LABELLED, LEVEL, ASKED, TOOK, BARE };

static char *render(void) {
    struct buf out;
    buf_init(&out, 1 << 20);
    metrics_render(&out);
    assert_true(buf_ok(&out));
    return buf_take(&out, NULL);
}

// The text has this line, whole.
static void assert_line(const char *text, const char *line) {
    size_t len = strlen(line);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at += len)
        if ((at == text || at[-1] == '\n') && at[len] == '\n')
            return;
    fail_msg("no line \"%s\" in:\n%s", line, text);
}

static size_t count_of(const char *text, const char *piece) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, piece)) != NULL; at += strlen(piece))
        count++;
    return count;
}

static void test_renders_nothing_at_first(void **state) {
    (void)state;
    char *text = render();
    assert_string_equal(text, "");
    free(text);
}

static void test_sums_shards_of_a_series(void **state) {
    (void)state;
    struct metric *first = metric_add(&families[PLAIN]);
    struct metric *second = metric_add(&families[PLAIN]);
    assert_ptr_not_equal(first, second);
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_int_equal((uintptr_t)second % 64, 0);
    metric_inc(first);
    metric_count(second, 41);
    assert_int_equal(metric_value(first), 1);
    assert_int_equal(metric_value(second), 41);
    char *text = render();
    assert_string_equal(text, "# HELP zz_plain_total Counts\\\\things\\non two lines.\n"
                              "# TYPE zz_plain_total counter\nzz_plain_total 42\n");
    free(text);
}

static void test_orders_and_escapes(void **state) {
    (void)state;
    metric_count(metric_add(&families[LABELLED], "POST", "302"), 7);
    metric_count(metric_add(&families[LABELLED], "GET", "a\"b\\c\nd"), 3);
    char *text = render();
    const char *expected = "# HELP ab_requests_total Requests.\n# TYPE ab_requests_total counter\n"
                           "ab_requests_total{method=\"GET\",status=\"a\\\"b\\\\c\\nd\"} 3\n"
                           "ab_requests_total{method=\"POST\",status=\"302\"} 7\n"
                           "# HELP zz_plain_total";
    assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
    assert_int_equal(count_of(text, "# TYPE ab_requests_total"), 1);
    assert_int_equal(count_of(text, "unused_total"), 0);
    free(text);
}

static int64_t read_value(void *arg) {
    return *(const int64_t *)arg;
}

static void test_gauges_move_and_are_asked(void **state) {
    (void)state;
    static int64_t values[2] = {-5, 9};
    struct metric *gauge = metric_add(&families[LEVEL]);
    metric_set(gauge, 10);
    metric_move(gauge, -13);
    assert_int_equal(metric_value(gauge), -3);
    metric_add_read(&families[ASKED], read_value, &values[0]);
    metric_add_read(&families[ASKED], read_value, &values[1]);
    char *text = render();
    assert_line(text, "# TYPE mm_level gauge");
    assert_line(text, "mm_level -3");
    assert_line(text, "mm_asked 4");
    free(text);
}

static void test_histograms_are_cumulative(void **state) {
    (void)state;
    struct metric *first = metric_add(&families[TOOK], "get");
    struct metric *second = metric_add(&families[TOOK], "get");
    metric_observe_us(first, 100); // the bound belongs to its bucket
    metric_observe_us(first, 101);
    metric_observe_us(second, 4000);
    metric_observe_us(second, -7); // a clock that went back
    metric_observe_us(second, 60 * US_PER_S);
    char *text = render();
    assert_line(text, "# TYPE took_seconds histogram");
    assert_line(text, "took_seconds_bucket{op=\"get\",le=\"0.0001\"} 2");
    assert_line(text, "took_seconds_bucket{op=\"get\",le=\"0.00025\"} 3");
    assert_line(text, "took_seconds_bucket{op=\"get\",le=\"0.0025\"} 3");
    assert_line(text, "took_seconds_bucket{op=\"get\",le=\"0.005\"} 4");
    assert_line(text, "took_seconds_bucket{op=\"get\",le=\"10\"} 4");
    assert_line(text, "took_seconds_bucket{op=\"get\",le=\"+Inf\"} 5");
    assert_line(text, "took_seconds_sum{op=\"get\"} 60.004201");
    assert_line(text, "took_seconds_count{op=\"get\"} 5");
    assert_int_equal(count_of(text, "took_seconds_bucket{"), 17);
    metric_observe_us(metric_add(&families[BARE]), 1500000);
    free(text);
    text = render();
    assert_line(text, "ztook_seconds_bucket{le=\"1\"} 0");
    assert_line(text, "ztook_seconds_bucket{le=\"2.5\"} 1");
    assert_line(text, "ztook_seconds_sum 1.500000");
    assert_line(text, "ztook_seconds_count 1");
    free(text);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *bump(void *arg) {
    struct metric *own = metric_add(&families[LABELLED], "PUT", "200");
    for (int i = 0; i < ROUNDS; i++) {
        metric_inc(own);
        metric_inc(arg);
    }
    return NULL;
}

static void test_loses_nothing_between_threads(void **state) {
    (void)state;
    struct metric *common = metric_add(&families[LABELLED], "PUT", "500");
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, bump, common), 0);
    free(render());
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    char *text = render();
    assert_line(text, "ab_requests_total{method=\"PUT\",status=\"200\"} 80000");
    assert_line(text, "ab_requests_total{method=\"PUT\",status=\"500\"} 80000");
    free(text);
}

static void test_prints_markdown(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    const struct metric_section section = {"test", families, 2};
    metrics_print_markdown(out, &section, 1);
    assert_int_equal(fclose(out), 0);
    assert_line(text, "## test");
    assert_line(
        text, "| `ab_requests_total` | counter | requests | method,status | Requests. | Look \\| there. |");
    assert_non_null(strstr(text, "| Counts\\things on two lines. | Look. |\n"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renders_nothing_at_first),
        cmocka_unit_test(test_sums_shards_of_a_series),
        cmocka_unit_test(test_orders_and_escapes),
        cmocka_unit_test(test_gauges_move_and_are_asked),
        cmocka_unit_test(test_histograms_are_cumulative),
        cmocka_unit_test(test_loses_nothing_between_threads),
        cmocka_unit_test(test_prints_markdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
