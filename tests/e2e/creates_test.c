// SPDX-License-Identifier: MIT
// 10,000 creates by 8 clients at once: as many different codes, and each resolves to its own URL.
#include "common/codes/codes.h"
#include "tests/support/json_get.h"
#include "tests/support/links.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS 8
#define EACH 1250

struct client {
    int number;
    char code[EACH][CODES_TEXT]; // "" where none was given
    int created;
    int resolved;
    char complaint[256]; // the first one; threads must not fail a test themselves
};

static struct stack *stack;
static struct client clients[CLIENTS];

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

static void url_of(int client, int i, char out[96]) {
    (void)snprintf(out, 96, "https://dest.example/load/%d/%d?of=%d#end", client, i, EACH);
}

static void complain(struct client *client, int i, const struct http_answer *answer) {
    if (client->complaint[0] == '\0')
        (void)snprintf(client->complaint, sizeof client->complaint, "client %d, link %d: status %d: %.160s",
            client->number, i, answer->status, buf_text(&answer->body));
}

static bool read_code(const struct http_answer *answer, const char *url, char out[CODES_TEXT]) {
    struct json_doc *doc = NULL;
    struct problem why;
    if (answer->status != 201 ||
        json_parse(buf_text(&answer->body), answer->body.len, &doc, &why) != STATUS_OK)
        return false;
    const char *code = json_get_text(json_root(doc), "code");
    const char *stored = json_get_text(json_root(doc), "url");
    bool good = code != NULL && codes_is_generated_shape(code, strlen(code)) && stored != NULL &&
                strcmp(stored, url) == 0;
    if (good)
        (void)snprintf(out, CODES_TEXT, "%s", code);
    json_doc_free(doc);
    return good;
}

static void *create(void *arg) {
    struct client *client = arg;
    struct http_client *http = http_client_open(stack->url);
    for (int i = 0; http != NULL && i < EACH; i++) {
        char url[96], json[128];
        struct http_answer answer;
        url_of(client->number, i, url);
        (void)snprintf(json, sizeof json, "{\"url\":\"%s\"}", url);
        http_client_send(http, &(struct http_request){.method = "POST",
                                   .target = LINKS_PATH,
                                   .key = stack->api_key,
                                   .type = "application/json",
                                   .body = json});
        http_client_read(http, false, &answer);
        if (read_code(&answer, url, client->code[i]))
            client->created++;
        else
            complain(client, i, &answer);
        http_answer_done(&answer);
    }
    http_client_close(http);
    return NULL;
}

static void *resolve(void *arg) {
    struct client *client = arg;
    struct http_client *http = http_client_open(stack->url);
    for (int i = 0; http != NULL && i < EACH; i++) {
        char url[96], target[CODES_TEXT + 1];
        struct http_answer answer;
        url_of(client->number, i, url);
        (void)snprintf(target, sizeof target, "/%s", client->code[i]);
        http_client_send(http, &(struct http_request){.target = target});
        http_client_read(http, false, &answer);
        const char *location = http_field(&answer, "Location");
        if (answer.status == 302 && location != NULL && strcmp(location, url) == 0)
            client->resolved++;
        else
            complain(client, i, &answer);
        http_answer_done(&answer);
    }
    http_client_close(http);
    return NULL;
}

// Returns how many seconds all clients together took.
static double run_all(void *(*work)(void *)) {
    pthread_t threads[CLIENTS];
    int64_t start_us = base_monotonic_us();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    return (double)(base_monotonic_us() - start_us) / (double)US_PER_S;
}

static void expect_no_complaint(void) {
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].complaint[0] != '\0')
            fail_msg("%s", clients[i].complaint);
}

static int compare(const void *left, const void *right) {
    return strcmp(left, right);
}

static void each_create_has_a_code_of_its_own(void **state) {
    (void)state;
    static char all[CLIENTS * EACH][CODES_TEXT];
    double seconds = run_all(create);
    expect_no_complaint();
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(clients[i].created, EACH);
        memcpy(all[(size_t)i * EACH], clients[i].code, sizeof clients[i].code);
    }
    qsort(all, ARRAY_LEN(all), sizeof all[0], compare);
    for (size_t i = 1; i < ARRAY_LEN(all); i++)
        if (strcmp(all[i - 1], all[i]) == 0)
            fail_msg("%s was given twice", all[i]);
    print_message("%d creates by %d clients in %.1f s: %.0f a second\n", CLIENTS * EACH, CLIENTS, seconds,
        CLIENTS * EACH / seconds);
}

// Of neighbours in the order of creation about half ascend; 3 % off half is 6 standard deviations of 9,992
// pairs.
static void codes_hide_their_order(void **state) {
    (void)state;
    int ascending = 0;
    for (int i = 0; i < CLIENTS; i++)
        for (int j = 1; j < EACH; j++)
            ascending += strcmp(clients[i].code[j - 1], clients[i].code[j]) < 0;
    int pairs = CLIENTS * (EACH - 1);
    assert_in_range(ascending, pairs * 47 / 100, pairs * 53 / 100);
}

static void each_code_resolves_to_its_own_url(void **state) {
    (void)state;
    double seconds = run_all(resolve);
    expect_no_complaint();
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(clients[i].resolved, EACH);
    print_message("%d redirects by %d clients in %.1f s: %.0f a second\n", CLIENTS * EACH, CLIENTS, seconds,
        CLIENTS * EACH / seconds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_create_has_a_code_of_its_own),
        cmocka_unit_test(codes_hide_their_order),
        cmocka_unit_test(each_code_resolves_to_its_own_url),
    };
    return cmocka_run_group_tests_name("e2e/creates", tests, group_setup, group_teardown);
}
