// SPDX-License-Identifier: MIT
// A link that suddenly takes all the traffic: storage sees one read per worker, not a crowd, and once the
// link is in memory nobody waits for storage again.
#include "common/db/db.h"
#include "tests/support/links.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CROWD 5000
#define WORKERS 2               // as ./dev starts a redirector
#define LOAD_US (12 * US_PER_S) // some lives of an entry, which are 5 s
#define TARGET "https://dest.example/hot"
#define COMMAND_US (10 * US_PER_S)

static struct stack *stack;

// ---- what the servers counted

static void redis_cli(const char *const *words, struct process_result *out) {
    const char *argv[8] = {"redis-cli", "-p", strrchr(stack->redis, ':') + 1};
    for (size_t i = 0; words[i] != NULL; i++)
        argv[3 + i] = words[i];
    process_run(argv, NULL, COMMAND_US, out);
    assert_int_equal(out->code, 0);
}

static int64_t redis_gets(void) {
    static const char name[] = "cmdstat_get:calls=";
    struct process_result result;
    redis_cli(WORDS("INFO", "commandstats"), &result);
    const char *calls = strstr(result.out, name);
    int64_t count = calls == NULL ? 0 : (int64_t)strtoll(calls + strlen(name), NULL, 10);
    process_result_done(&result);
    return count;
}

static int64_t postgres_reads(void) {
    const struct db_options options = {.conninfo = stack->pg, .application = "hot_key_test"};
    struct db *db = db_create(&options);
    struct db_rows *rows = NULL;
    assert_int_equal(
        db_call(db, 0, "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'links_pkey'", 0, NULL,
            &rows),
        STATUS_OK);
    int64_t count = db_int64(rows, 0, 0);
    db_rows_free(rows);
    db_free(db);
    return count;
}

// The sum of the redirector's series that begin so.
static int64_t metric(const char *series) {
    char url[64];
    char path[128];
    char port[16] = "";
    (void)snprintf(path, sizeof path, "%s/ports/redirector-admin", stack->dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(port, sizeof port, file));
    (void)fclose(file);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", atoi(port));
    struct http_answer answer = {0};
    http_get(url, "/metrics", &answer);
    assert_int_equal(answer.status, 200);
    int64_t sum = 0;
    for (const char *at = strstr(buf_text(&answer.body), series); at != NULL; at = strstr(at + 1, series))
        sum += (int64_t)strtod(at + strcspn(at, " \n"), NULL);
    http_answer_done(&answer);
    return sum;
}

// ---- tests

static void a_crowd_on_a_cold_code_makes_one_read_per_worker(void **state) {
    (void)state;
    static struct http_client *crowd[CROWD];
    struct link link;
    struct process_result result;
    link_create(stack, "{\"url\":\"" TARGET "\"}", &link);
    redis_cli(WORDS("FLUSHALL"), &result);
    process_result_done(&result);
    // Postgres publishes what a session has read once that was idle for a second.
    const struct timespec published = {.tv_sec = 1, .tv_nsec = 500 * 1000000};
    (void)nanosleep(&published, NULL);
    int64_t reads = postgres_reads();
    for (size_t i = 0; i < CROWD; i++)
        crowd[i] = http_client_open(stack->url);
    int64_t gets = redis_gets();

    char target[64];
    (void)snprintf(target, sizeof target, "/%s", link.code);
    const struct http_request request = {.target = target};
    int64_t since_us = base_monotonic_us();
    for (size_t i = 0; i < CROWD; i++)
        http_client_send(crowd[i], &request);
    for (size_t i = 0; i < CROWD; i++) {
        struct http_answer answer = {0};
        http_client_read(crowd[i], false, &answer);
        assert_int_equal(answer.status, 302);
        assert_string_equal(http_field(&answer, "Location"), TARGET);
        http_answer_done(&answer);
    }
    int64_t took_us = base_monotonic_us() - since_us;
    gets = redis_gets() - gets;
    AWAIT(20, postgres_reads() > reads);
    (void)nanosleep(&published, NULL);
    reads = postgres_reads() - reads;
    print_message("%d connections answered in %d ms: %d GETs at Redis, %d reads in Postgres\n", CROWD,
        (int)(took_us / US_PER_MS), (int)gets, (int)reads);
    assert_in_range(gets, 1, WORKERS);
    assert_in_range(reads, 1, WORKERS);
    for (size_t i = 0; i < CROWD; i++)
        http_client_close(crowd[i]);
}

static void a_hot_code_waits_for_nobody(void **state) {
    (void)state;
    struct link link;
    link_create(stack, "{\"url\":\"" TARGET "\"}", &link);
    struct http_client *clients[8];
    char target[64];
    (void)snprintf(target, sizeof target, "/%s", link.code);
    const struct http_request request = {.target = target};
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        clients[i] = http_client_open(stack->url);
    for (int round = 0; round < 20; round++) // into the memory of the workers that these connections have
        for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
            struct http_answer answer = {0};
            http_client_send(clients[i], &request);
            http_client_read(clients[i], false, &answer);
            assert_int_equal(answer.status, 302);
            http_answer_done(&answer);
        }
    int64_t misses = metric("dunlin_lookups_total{source=\"memory\",result=\"miss\"}");
    int64_t refreshes = metric("dunlin_cache_refreshes_total");
    int64_t answers = 0;
    int64_t largest_us = 0;
    int64_t end_us = base_monotonic_us() + LOAD_US;
    while (base_monotonic_us() < end_us)
        for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
            struct http_answer answer = {0};
            http_client_send(clients[i], &request);
            http_client_read(clients[i], false, &answer);
            assert_int_equal(answer.status, 302);
            assert_string_equal(http_field(&answer, "Location"), TARGET);
            largest_us = answer.took_us > largest_us ? answer.took_us : largest_us;
            answers++;
            http_answer_done(&answer);
        }
    misses = metric("dunlin_lookups_total{source=\"memory\",result=\"miss\"}") - misses;
    refreshes = metric("dunlin_cache_refreshes_total") - refreshes;
    print_message("%d redirects, %d refreshes in the background, largest wait %d us\n", (int)answers,
        (int)refreshes, (int)largest_us);
    assert_int_equal(misses, 0);
    assert_in_range(refreshes, 1, 20);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        http_client_close(clients[i]);
}

static int set_up(void **state) {
    (void)state;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -1;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < 2 * CROWD + 1000)
        return -1;
    stack = stack_up();
    return stack == NULL ? -1 : 0;
}

static int tear_down(void **state) {
    (void)state;
    stack_down(stack);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_on_a_cold_code_makes_one_read_per_worker),
        cmocka_unit_test(a_hot_code_waits_for_nobody),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
