// SPDX-License-Identifier: MIT
#include "common/db/db.h"
#include "common/linkcache/linkcache.h"
#include "tests/e2e/cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_TARGET "https://dest.example/alive"

struct stack *cases_stack;

static struct link plain;
static struct db *db;
static int64_t jumps;

static const char *const services[] = {"keyrange", "writer", "clicks", "redirector"};
static int pids[ARRAY_LEN(services)];
static unsigned long long started[ARRAY_LEN(services)];

// When a process started, in clock ticks; 0 where it has ended, reaped or not.
static unsigned long long start_of(int pid) {
    char path[64], stat[1024] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t len = fread(stat, 1, sizeof stat - 1, file);
    (void)fclose(file);
    stat[len] = '\0';
    const char *rest = strrchr(stat, ')');
    char state = 'Z';
    unsigned long long ticks = 0;
    if (rest == NULL ||
        sscanf(rest + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
            &state, &ticks) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : ticks;
}

static struct db_rows *query(const char *sql) {
    struct db_rows *rows = NULL;
    if (db_call(db, 0, sql, 0, NULL, &rows) != STATUS_OK)
        fail_msg("%s: %s", sql, db_error_text(db));
    return rows;
}

static int64_t query_int64(const char *sql) {
    struct db_rows *rows = query(sql);
    int64_t number = db_int64(rows, 0, 0);
    db_rows_free(rows);
    return number;
}

static int group_setup(void **state) {
    (void)state;
    cases_stack = stack_up();
    db = db_create(&(struct db_options){.conninfo = cases_stack->pg, .application = "dunlin-test"});
    jumps = query_int64("SELECT dunlin.database_jumps()");
    link_create(cases_stack, "{\"url\":\"" PLAIN_TARGET "\"}", &plain);
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        pids[i] = stack_status(cases_stack, services[i]).pid;
        started[i] = start_of(pids[i]);
        assert_true(started[i] != 0);
    }
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    db_free(db);
    stack_down(cases_stack);
    return 0;
}

void cases_expect_alive(int number) {
    char target[64];
    struct http_answer answer;
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        if (start_of(pids[i]) != started[i])
            fail_msg("case %d: %s has ended", number, services[i]);
    (void)snprintf(target, sizeof target, "/%s", plain.code);
    http_get(cases_stack->url, target, &answer);
    if (answer.status != 302 || answer.took_us > US_PER_S)
        fail_msg("case %d: a plain redirect: status %d in %d ms", number, answer.status,
            (int)(answer.took_us / US_PER_MS));
    assert_string_equal(http_field(&answer, "Location"), PLAIN_TARGET);
    http_answer_done(&answer);
}

int64_t cases_count_links(void) {
    return query_int64("SELECT count(*) FROM dunlin.links");
}

void cases_run_sql(const char *sql) {
    if (db_run(db, 0, sql) != STATUS_OK)
        fail_msg("%s: %s", sql, db_error_text(db));
}

void cases_redis_key(const char *code, char out[LINKCACHE_KEY]) {
    linkcache_key(out, jumps, code);
}

void cases_expect_create(int number, const char *body, size_t body_len, int status, const char *field) {
    struct http_answer answer;
    int64_t links = cases_count_links();
    const struct http_request request = {.method = "POST",
        .target = LINKS_PATH,
        .key = cases_stack->api_key,
        .type = "application/json",
        .body = body,
        .body_len = body_len};
    http_ask(cases_stack->url, &request, &answer);
    if (answer.status != status)
        fail_msg("case %d: %.200s: status %d, not %d: %s", number, body, answer.status, status,
            buf_text(&answer.body));
    if (status != 201)
        links_expect_problem(&answer, status, NULL, field);
    http_answer_done(&answer);
    if (cases_count_links() != links + (status == 201))
        fail_msg("case %d: %.200s: the number of links is another than it should be", number, body);
    cases_expect_alive(number);
}

void cases_expect_url_refused(int number, const char *url_json) {
    char body[1024];
    (void)snprintf(body, sizeof body, "{\"url\":\"%s\"}", url_json);
    cases_expect_create(number, body, 0, 422, "url");
}

void cases_expect_alias_refused(int number, const char *alias_json) {
    char body[1024];
    (void)snprintf(body, sizeof body, "{\"url\":\"https://dest.example/\",\"alias\":\"%s\"}", alias_json);
    cases_expect_create(number, body, 0, 422, "alias");
}

void cases_expect_get(int number, const char *target, int status) {
    struct http_answer answer;
    http_get(cases_stack->url, target, &answer);
    if (answer.status != status)
        fail_msg("case %d: GET %s: status %d, not %d", number, target, answer.status, status);
    http_answer_done(&answer);
    cases_expect_alive(number);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_come_out_byte_for_byte),
        cmocka_unit_test(targets_of_other_schemes_are_refused),
        cmocka_unit_test(targets_with_controls_are_refused),
        cmocka_unit_test(a_fragment_is_the_browsers_business),
        cmocka_unit_test(planted_line_breaks_never_reach_a_header),
        cmocka_unit_test(one_trailing_slash_is_the_same_link),
        cmocka_unit_test(dot_segments_stay_among_links),
        cmocka_unit_test(escaped_letters_are_the_same_link),
        cmocka_unit_test(letter_case_tells_links_apart),
        cmocka_unit_test(codes_are_ascii),
        cmocka_unit_test(head_answers_as_get),
        cmocka_unit_test(our_own_address_is_never_the_hosts_word),
        cmocka_unit_test(aliases_are_of_one_alphabet),
        cmocka_unit_test(our_own_routes_are_no_aliases),
        cmocka_unit_test(json_of_wrong_kinds_is_refused),
        cmocka_unit_test(json_that_is_not_utf8_is_refused),
        cmocka_unit_test(deep_json_is_refused),
        cmocka_unit_test(the_first_of_several_refusals_is_told),
        cmocka_unit_test(oversized_requests_are_refused),
        cmocka_unit_test(a_lookup_touches_one_key_in_redis),
        cmocka_unit_test(a_request_is_one_line_in_a_log),
        cmocka_unit_test(malformed_rpc_is_refused),
    };
    return cmocka_run_group_tests_name("e2e/cases", tests, group_setup, group_teardown);
}
