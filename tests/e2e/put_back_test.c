// SPDX-License-Identifier: MIT
// A plain copy of the database is put back, under the running fleet and under one that was restarted whole:
// no code is given twice, the links that the copy holds go on, and those that it lost are gone, in Redis too.
#include "common/codes/codes.h"
#include "tests/support/links.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_EACH 2200 // more than two of the first blocks
#define BACK_S 60       // half a minute of it is a ceiling's, where the copy lost one

static struct stack *stack;
static char data[192]; // Postgres' folder
static char copy[224];
static char memory[128];
static const char *memory_setting[3];

// Kept, lost with the copy, made after it: and once more.
static char codes[5][LINKS_EACH][CODES_TEXT];

static void run(const char *const *argv) {
    struct process_result result;
    process_run(argv, NULL, 60 * US_PER_S, &result);
    if (result.code != 0)
        fail_msg("%s: %s", argv[0], result.err);
    process_result_done(&result);
}

static void up(void) {
    struct process_result result;
    stack_dev(stack, memory_setting, &result, WORDS("up", "--port", "0"));
    if (result.code != 0)
        fail_msg("./dev up: %s", result.err);
    process_result_done(&result);
}

static int group_setup(void **state) {
    (void)state;
    char path[128], home[160];
    stack = stack_create();
    (void)snprintf(memory, sizeof memory, "%s/keyrange-memory", stack->dir);
    memory_setting[0] = "KEYRANGE_MEMORY";
    memory_setting[1] = memory;
    up();
    stack_read_environment(stack);
    (void)snprintf(path, sizeof path, "%s/settings/postgres-home", stack->dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(home, sizeof home, file));
    (void)fclose(file);
    home[strcspn(home, "\n")] = '\0';
    (void)snprintf(data, sizeof data, "%s/data", home);
    (void)snprintf(copy, sizeof copy, "%s.copy", data);
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    const char *const argv[] = {"rm", "-rf", copy, NULL};
    run(argv);
    stack_down(stack);
    return 0;
}

static int64_t fetches(void) {
    static const char series[] = "\ndunlin_ceiling_fetches_total{result=\"ok\"} ";
    char path[128], url[64], port[16] = "";
    struct http_answer answer = {0};
    (void)snprintf(path, sizeof path, "%s/ports/redirector-admin", stack->dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(port, sizeof port, file));
    (void)fclose(file);
    port[strcspn(port, "\n")] = '\0';
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%s", port);
    http_get(url, "/metrics", &answer);
    const char *at = strstr(buf_text(&answer.body), series);
    assert_non_null(at);
    int64_t count = strtol(at + sizeof series - 1, NULL, 10);
    http_answer_done(&answer);
    return count;
}

static void create(char made[LINKS_EACH][CODES_TEXT]) {
    for (size_t i = 0; i < LINKS_EACH; i++) {
        struct link link;
        link_create(stack, "{\"url\":\"https://dest.example/put-back\"}", &link);
        (void)snprintf(made[i], CODES_TEXT, "%.30s", link.code);
    }
}

static void take_copy(void) {
    const char *const argv[] = {"cp", "-a", data, copy, NULL};
    stack_stop_part(stack, "postgres");
    run(argv);
    stack_start_part(stack, "postgres", NULL);
    AWAIT(20, link_try_create(stack, "{\"url\":\"https://dest.example/any\"}") == 201);
}

static void put_copy(void) {
    const char *const away[] = {"rm", "-rf", data, NULL};
    const char *const back[] = {"cp", "-a", copy, data, NULL};
    run(away);
    run(back);
}

static int follow(const char *code) {
    char target[CODES_TEXT + 1];
    (void)snprintf(target, sizeof target, "/%s", code);
    return link_follow(stack, target);
}

static bool all_are_gone(char lost[LINKS_EACH][CODES_TEXT]) {
    for (size_t i = 0; i < LINKS_EACH; i++)
        if (follow(lost[i]) != 404)
            return false;
    return true;
}

static void all_redirect(char kept[LINKS_EACH][CODES_TEXT]) {
    for (size_t i = 0; i < LINKS_EACH; i++)
        if (follow(kept[i]) != 302)
            fail_msg("%s is gone", kept[i]);
}

static int compare(const void *left, const void *right) {
    return strcmp(left, right);
}

static void all_differ(size_t sets) {
    size_t count = sets * LINKS_EACH;
    char(*sorted)[CODES_TEXT] = base_calloc(count, CODES_TEXT);
    memcpy(sorted, codes, count * CODES_TEXT);
    qsort(sorted, count, CODES_TEXT, compare);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            fail_msg("%s was given twice", sorted[i]);
    free(sorted);
}

static bool creates_work(void) {
    return link_try_create(stack, "{\"url\":\"https://dest.example/any\"}") == 201;
}

// The redirector asks keyrange for the ceilings once more.
static void await_fetch(void) {
    int64_t before = fetches();
    AWAIT(20, fetches() > before);
}

static void under_the_running_fleet(void **state) {
    (void)state;
    create(codes[0]);
    take_copy();
    create(codes[1]);
    await_fetch(); // what nobody has seen can't be missed
    stack_stop_part(stack, "postgres");
    put_copy();
    stack_start_part(stack, "postgres", NULL);
    AWAIT(BACK_S, creates_work());
    create(codes[2]);
    all_differ(3);
    all_redirect(codes[0]);
    all_redirect(codes[2]);
    AWAIT(30, all_are_gone(codes[1]));
}

// Nobody but the file remembers.
static void under_a_fleet_that_was_restarted(void **state) {
    (void)state;
    struct process_result result;
    create(codes[3]);
    stack_dev(stack, NULL, &result, WORDS("down"));
    assert_int_equal(result.code, 0);
    process_result_done(&result);
    put_copy();
    up();
    AWAIT(BACK_S, creates_work());
    create(codes[4]);
    all_differ(5);
    all_redirect(codes[0]);
    all_redirect(codes[4]);
    AWAIT(30, all_are_gone(codes[1]) && all_are_gone(codes[2]) && all_are_gone(codes[3]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(under_the_running_fleet),
        cmocka_unit_test(under_a_fleet_that_was_restarted),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
