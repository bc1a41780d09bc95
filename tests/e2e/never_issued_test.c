// SPDX-License-Identifier: MIT
// Codes that were never issued, on a fleet with two redirectors: they cost no lookup, a new link is never
// taken for one of them, and neither a wrong key nor a keyrange service that is away makes a false 404.
#include "common/codes/codes.h"
#include "common/db/db.h"
#include "tests/support/links.h"
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS 4
#define CODES_EACH 25000
#define PAIRS 1000
#define QUICK_US (500 * US_PER_MS) // for a request while something hangs; 8 tests may share the machine

static struct stack *stack;
static char urls[2][64]; // the redirectors'
static char admins[2][64];
static struct codes_key key;

// ---- the fleet

static void read_file(const char *name, char out[128]) {
    char path[192];
    (void)snprintf(path, sizeof path, "%s/%s", stack->dir, name);
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(out, 128, file) == NULL)
        fail_msg("%s can't be read", path);
    (void)fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

static void read_urls(void) {
    static const char *const names[] = {"redirector", "redirector-2"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char file[64], port[128];
        (void)snprintf(file, sizeof file, "ports/%s", names[i]);
        read_file(file, port);
        (void)snprintf(urls[i], sizeof urls[i], "http://127.0.0.1:%.8s", port);
        (void)snprintf(file, sizeof file, "ports/%s-admin", names[i]);
        read_file(file, port);
        (void)snprintf(admins[i], sizeof admins[i], "http://127.0.0.1:%.8s", port);
    }
}

// The sum of the series that begin so: "dunlin_lookups_total{source=\"postgres\"".
static int64_t metric(size_t redirector, const char *series) {
    struct http_answer answer = {0};
    int64_t sum = 0;
    http_get(admins[redirector], "/metrics", &answer);
    assert_int_equal(answer.status, 200);
    const char *at = buf_text(&answer.body);
    while ((at = strstr(at, series)) != NULL) {
        if (at == buf_text(&answer.body) || at[-1] == '\n')
            sum += (int64_t)strtod(at + strcspn(at, " \n"), NULL);
        at++;
    }
    http_answer_done(&answer);
    return sum;
}

#define LOOKUPS_POSTGRES "dunlin_lookups_total{source=\"postgres\""
#define LOOKUPS_REDIS "dunlin_lookups_total{source=\"redis\""
#define TRUSTED "dunlin_ceilings_trusted "
#define UNISSUED "dunlin_never_issued_total "

static int group_setup(void **state) {
    (void)state;
    struct process_result result;
    char hex[128];
    crypto_init();
    stack = stack_create();
    stack_dev(stack, NULL, &result, WORDS("up", "--port", "0", "--redirectors", "2"));
    if (result.code != 0)
        fail_msg("./dev up: %s", result.err);
    process_result_done(&result);
    stack_read_environment(stack);
    read_urls();
    read_file("secrets/permutation_key", hex);
    assert_true(codes_key_parse(hex, &key));
    AWAIT(20, metric(0, TRUSTED) == 1 && metric(1, TRUSTED) == 1);
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    stack_down(stack);
    return 0;
}

static void read_ceilings(uint64_t out[CODES_SLOTS]) {
    struct db_rows *rows;
    struct db *db = db_create(&(struct db_options){.conninfo = stack->pg, .application = "dunlin-test"});
    assert_int_equal(
        db_call(db, 0, "SELECT ceiling FROM dunlin.key_ranges ORDER BY slot", 0, NULL, &rows), STATUS_OK);
    assert_int_equal(db_rows_count(rows), CODES_SLOTS - 1);
    for (size_t slot = 0; slot < CODES_SLOTS - 1; slot++)
        out[slot] = (uint64_t)db_int64(rows, slot, 0);
    db_rows_free(rows);
    db_free(db);
}

// ---- random codes

struct client {
    pthread_t thread;
    uint64_t ceilings[CODES_SLOTS];
    int below;
    int others; // answers other than 404
};

// Of a slot that has a counter.
static bool random_code(char out[CODES_TEXT], unsigned *slot, uint64_t *counter) {
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t random = crypto_random_u64();
    for (int i = 0; i < CODES_MIN_LEN; i++, random /= 62)
        out[i] = digits[random % 62];
    out[CODES_MIN_LEN] = '\0';
    return codes_decode(&key, out, slot, counter) && *slot != CODES_SLOT_OTHER;
}

static void *try_codes(void *arg) {
    struct client *client = arg;
    struct http_client *http = http_client_open(urls[0]);
    for (int i = 0; http != NULL && i < CODES_EACH; i++) {
        char code[CODES_TEXT], target[CODES_TEXT + 1];
        struct http_answer answer = {0};
        unsigned slot;
        uint64_t counter;
        while (!random_code(code, &slot, &counter)) {
        }
        client->below += counter < client->ceilings[slot];
        (void)snprintf(target, sizeof target, "/%s", code);
        http_client_send(http, &(struct http_request){.target = target});
        http_client_read(http, false, &answer);
        client->others += answer.status != 404;
        http_answer_done(&answer);
    }
    client->others += http == NULL;
    http_client_close(http);
    return NULL;
}

static void only_codes_below_a_ceiling_are_looked_up(void **state) {
    (void)state;
    static struct client clients[CLIENTS];
    int64_t postgres = metric(0, LOOKUPS_POSTGRES);
    int64_t redis = metric(0, LOOKUPS_REDIS);
    int64_t unissued = metric(0, UNISSUED);
    int below = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        read_ceilings(clients[i].ceilings);
        assert_int_equal(pthread_create(&clients[i].thread, NULL, try_codes, &clients[i]), 0);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
        assert_int_equal(clients[i].others, 0);
        below += clients[i].below;
    }
    print_message("of %d random codes %d lay below a ceiling\n", CLIENTS * CODES_EACH, below);
    assert_int_equal(metric(0, LOOKUPS_POSTGRES) - postgres, below);
    assert_int_equal(metric(0, LOOKUPS_REDIS) - redis, below);
    assert_int_equal(metric(0, UNISSUED) - unissued, CLIENTS * CODES_EACH - below);
    assert_in_range(below, 20, 250); // 74 expected: one slot's 2^31 and 2^27 of 7 slots' 62^7 / 8 each
}

// ---- links

static void a_new_link_is_found_by_the_other_redirector(void **state) {
    (void)state;
    struct http_client *follower = http_client_open(urls[1]);
    assert_non_null(follower);
    for (int i = 0; i < PAIRS; i++) {
        struct link link;
        struct http_answer answer = {0};
        char target[64];
        link_create(stack, "{\"url\":\"https://dest.example/pair\"}", &link);
        (void)snprintf(target, sizeof target, "/%s", link.code);
        http_client_send(follower, &(struct http_request){.target = target});
        http_client_read(follower, false, &answer);
        if (answer.status != 302)
            fail_msg("pair %d: %s was answered with %d", i, link.code, answer.status);
        http_answer_done(&answer);
    }
    http_client_close(follower);
}

static void follow_quickly(const char *code, int status) {
    char target[64];
    struct http_answer answer = {0};
    (void)snprintf(target, sizeof target, "/%s", code);
    http_get(urls[0], target, &answer);
    assert_int_equal(answer.status, status);
    if (answer.took_us > QUICK_US)
        fail_msg("%s was answered after %d ms", code, (int)(answer.took_us / US_PER_MS));
    http_answer_done(&answer);
}

static void a_keyrange_that_hangs_delays_no_request(void **state) {
    (void)state;
    struct link link;
    char unissued[CODES_TEXT];
    char
        another[CODES_TEXT]; // never asked for before the trust ends, so that no worker remembers its absence
    assert_true(codes_encode(&key, 5, 1000, unissued));
    assert_true(codes_encode(&key, 5, 1001, another));
    link_create(stack, "{\"url\":\"https://dest.example/hang\"}", &link);
    int pid = stack_status(stack, "keyrange").pid;
    assert_true(pid > 0);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    int64_t end_us = base_monotonic_us() + 30 * US_PER_S;
    while (metric(0, TRUSTED) == 1 && base_monotonic_us() < end_us) {
        follow_quickly(link.code, 302);
        follow_quickly(unissued, 404);
        (void)nanosleep(&(struct timespec){.tv_nsec = 100 * 1000000}, NULL);
    }
    int64_t trusted = metric(0, TRUSTED);
    int64_t lookups = metric(0, LOOKUPS_POSTGRES);
    follow_quickly(another, 404); // looked up now
    lookups = metric(0, LOOKUPS_POSTGRES) - lookups;
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(trusted, 0);
    assert_int_equal(lookups, 1);
    AWAIT(20, metric(0, TRUSTED) == 1);
}

static void a_wrong_key_serves_every_link(void **state) {
    (void)state;
    static struct link links[50];
    char unissued[CODES_TEXT];
    assert_true(codes_encode(&key, 5, 2000, unissued));
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        link_create(stack, "{\"url\":\"https://dest.example/wrong-key\"}", &links[i]);
    stack_stop_part(stack, "redirector-2");
    const char *const settings[] = {"PERMUTATION_KEY", "000102030405060708090a0b0c0d0e0f", NULL};
    stack_start_part(stack, "redirector-2", settings);
    AWAIT(20, metric(1, "dunlin_ceiling_fetches_total{result=\"wrong_key\"}") >= 1);
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        char target[64];
        struct http_answer answer = {0};
        (void)snprintf(target, sizeof target, "/%.30s", links[i].code);
        http_get(urls[1], target, &answer);
        assert_int_equal(answer.status, 302);
        http_answer_done(&answer);
    }
    assert_int_equal(metric(1, TRUSTED), 0);
    assert_int_equal(metric(1, UNISSUED), 0);
    char *logs = stack_logs(stack, "redirector-2");
    const char *alarm = strstr(logs, "PERMUTATION_KEY is not the counters' key");
    assert_non_null(alarm);
    free(logs);
    stack_stop_part(stack, "redirector-2");
    stack_start_part(stack, "redirector-2", NULL);
    AWAIT(20, metric(1, TRUSTED) == 1);
}

static void a_counter_is_advanced_by_hand(void **state) {
    (void)state;
    struct process_result result;
    stack_ctl(stack, NULL, &result, WORDS("keyrange", "advance", "--slot", "4", "--to", "123456"));
    assert_int_equal(result.code, 0);
    assert_string_equal(result.out, "slot 4 counter 123456\n");
    process_result_done(&result);
    stack_ctl(stack, NULL, &result, WORDS("--json", "keyrange", "advance", "--slot", "4", "--to", "5"));
    assert_int_equal(result.code, 0);
    assert_string_equal(result.out, "{\"slot\":4,\"counter\":123456}\n");
    process_result_done(&result);
    stack_ctl(stack, NULL, &result, WORDS("keyrange", "advance", "--slot", "4", "--to", "9000000000"));
    assert_int_equal(result.code, 1);
    process_result_done(&result);
    stack_ctl(
        stack, NULL, &result, WORDS("keyrange", "advance", "--slot", "4", "--to", "9000000000", "--force"));
    assert_int_equal(result.code, 0);
    process_result_done(&result);
    stack_ctl(stack, NULL, &result, WORDS("keyrange", "advance", "--slot", "4"));
    assert_int_equal(result.code, 2);
    process_result_done(&result);
    assert_int_equal(link_try_create(stack, "{\"url\":\"https://dest.example/after\"}"), 201);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_codes_below_a_ceiling_are_looked_up),
        cmocka_unit_test(a_new_link_is_found_by_the_other_redirector),
        cmocka_unit_test(a_keyrange_that_hangs_delays_no_request),
        cmocka_unit_test(a_wrong_key_serves_every_link),
        cmocka_unit_test(a_counter_is_advanced_by_hand),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
