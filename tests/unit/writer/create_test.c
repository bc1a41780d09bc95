// SPDX-License-Identifier: MIT
#include "common/instant/instant.h"
#include "services/writer/create.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/writer/create_fake.h"

#define SLOT 2
#define FIRST_COUNTER 1000

// ---- a run

static struct target_rules rules;
static struct codes_key key;

static int set_up(void **state) {
    (void)state;
    struct buf why;
    crypto_init();
    buf_init(&why, 256);
    bool good = target_rules_init(&rules, "https://sho.rt", "", &why) &&
                codes_key_parse("000102030405060708090a0b0c0d0e0f", &key);
    buf_done(&why);
    return good ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    target_rules_done(&rules);
    return 0;
}

struct run {
    struct fake fake;
    struct create_wish wish;
    int64_t deadline_us; // 0: far away
    struct stored_link made;
    struct problem why;
};

static void run_init(struct run *run, const char *url, const char *alias) {
    *run = (struct run){
        .fake = {.next = FIRST_COUNTER, .plan_count = 1},
        .wish = {.owner = "team", .url = url, .url_len = strlen(url), .alias = alias},
        .made = {.code = "untouched"},
    };
}

static void plan(struct run *run, const struct plan *plans, size_t count) {
    memcpy(run->fake.plans, plans, count * sizeof *plans);
    run->fake.plan_count = count;
}
#define PLAN(run, ...)                                                                                       \
    plan((run), (const struct plan[]){__VA_ARGS__},                                                          \
        sizeof((const struct plan[]){__VA_ARGS__}) / sizeof(struct plan))

static enum status run_create(struct run *run) {
    const struct create_means means = {
        .rules = &rules,
        .key = &key,
        .slot = SLOT,
        .arg = &run->fake,
        .take = take,
        .drop = drop,
        .insert = insert,
        .collided = collided,
        .asked_again = asked_again,
    };
    int64_t deadline = run->deadline_us != 0 ? run->deadline_us : base_monotonic_us() + 30 * US_PER_S;
    enum status status = create_link(&means, deadline, &run->wish, &run->made, &run->why);
    if (status != STATUS_OK) {
        assert_int_equal(run->why.status, status);
        assert_string_equal(run->made.code, "untouched");
    }
    return status;
}

static void expect_code_of(const struct run *run, size_t call, uint64_t counter) {
    char code[CODES_TEXT];
    assert_true(codes_encode(&key, SLOT, counter, code));
    assert_string_equal(run->fake.calls[call].code, code);
    assert_int_equal(run->fake.calls[call].link.slot, SLOT);
    assert_int_equal(run->fake.calls[call].link.counter, counter);
}

static bool same_create_id(const struct run *run, size_t one, size_t other) {
    return memcmp(run->fake.calls[one].create_id, run->fake.calls[other].create_id, WRITER_CREATE_ID) == 0;
}

// ---- the wish

static void every_broken_rule_is_named(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "ftp://example.com/", "a b");
    run.wish.has_expiry = true;
    run.wish.expires_at = base_wall_us() - 1;
    assert_int_equal(run_create(&run), STATUS_INVALID_ARGUMENT);
    assert_int_equal(run.why.violation_count, 3);
    assert_string_equal(run.why.violations[0].field, "url");
    assert_string_equal(run.why.violations[1].field, "alias");
    assert_string_equal(run.why.violations[2].field, "expires_at");
    assert_int_equal(run.fake.takes, 0);
    assert_int_equal(run.fake.call_count, 0);
}

static void one_broken_rule_is_enough(void **state) {
    (void)state;
    static const struct {
        const char *url, *alias;
        int64_t expires_in_us;
        const char *field;
    } rows[] = {
        {"https://sho.rt/loop", "launch", US_PER_DAY, "url"},
        {"", NULL, US_PER_DAY, "url"},
        {"https://example.com/", "API", US_PER_DAY, "alias"},
        {"https://example.com/", "", US_PER_DAY, "alias"},
        {"https://example.com/", "launch", 0, "expires_at"},
        {"https://example.com/", NULL, -US_PER_DAY, "expires_at"},
        {"https://example.com/", NULL, INSTANT_MAX, "expires_at"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct run run;
        run_init(&run, rows[i].url, rows[i].alias);
        run.wish.has_expiry = true;
        run.wish.expires_at = base_wall_us() + rows[i].expires_in_us;
        assert_int_equal(run_create(&run), STATUS_INVALID_ARGUMENT);
        assert_int_equal(run.why.violation_count, 1);
        assert_string_equal(run.why.violations[0].field, rows[i].field);
        assert_int_equal(run.fake.takes + run.fake.call_count, 0);
    }
}

static void the_last_instant_is_a_good_expiry(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", NULL);
    run.wish.has_expiry = true;
    run.wish.expires_at = INSTANT_MAX;
    assert_int_equal(run_create(&run), STATUS_OK);
    assert_true(run.fake.calls[0].link.has_expiry);
    assert_int_equal(run.fake.calls[0].link.expires_at, INSTANT_MAX);
}

// ---- aliases

static void an_alias_is_the_code(void **state) {
    (void)state;
    struct run run;
    run_init(&run, " https://example.com/a b ", "my-alias");
    assert_int_equal(run_create(&run), STATUS_OK);
    assert_int_equal(run.why.status, STATUS_OK);
    assert_string_equal(run.made.code, "my-alias");
    assert_string_equal(run.fake.url, "https://example.com/a%20b");
    assert_string_equal(run.fake.owner, "team");
    assert_string_equal(run.fake.source, "alias");
    assert_false(run.fake.calls[0].link.has_expiry);
    assert_int_equal(run.fake.call_count, 1);
    assert_int_equal(run.fake.takes, 0);
}

static void a_taken_alias_is_refused_at_once(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", "launch");
    PLAN(&run, {STATUS_OK, CREATE_TAKEN});
    assert_int_equal(run_create(&run), STATUS_ALREADY_EXISTS);
    assert_string_equal(run.why.reason, "ALIAS_TAKEN");
    assert_int_equal(run.why.violation_count, 1);
    assert_string_equal(run.why.violations[0].field, "alias");
    assert_int_equal(run.fake.call_count, 1);
    assert_int_equal(run.fake.drops + run.fake.collisions, 0);
}

static void a_rival_may_win_an_alias_while_we_ask_again(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", "launch");
    PLAN(&run, {STATUS_UNKNOWN, CREATE_TAKEN}, {STATUS_OK, CREATE_TAKEN});
    assert_int_equal(run_create(&run), STATUS_ALREADY_EXISTS);
    assert_string_equal(run.why.reason, "ALIAS_TAKEN");
    assert_true(same_create_id(&run, 0, 1));
}

// ---- codes from the counter

static void a_counter_value_makes_the_code(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", NULL);
    assert_int_equal(run_create(&run), STATUS_OK);
    assert_int_equal(run.fake.call_count, 1);
    expect_code_of(&run, 0, FIRST_COUNTER);
    assert_string_equal(run.made.code, run.fake.calls[0].code);
    assert_int_equal(strlen(run.made.code), 7);
    assert_string_equal(run.fake.source, "range");
    assert_int_equal(run.fake.drops + run.fake.collisions + run.fake.asked_again, 0);
}

static void no_counter_value_means_no_insert(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", NULL);
    run.fake.take_status = STATUS_UNAVAILABLE;
    assert_int_equal(run_create(&run), STATUS_UNAVAILABLE);
    assert_string_equal(run.why.reason, "KEYRANGE_UNAVAILABLE");
    assert_int_equal(run.fake.call_count, 0);
}

static void a_used_up_slot_says_so(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", NULL);
    run.fake.next = UINT64_C(1) << 62;
    assert_int_equal(run_create(&run), STATUS_RESOURCE_EXHAUSTED);
    assert_string_equal(run.why.reason, "SLOT_EXHAUSTED");
    assert_int_equal(run.fake.call_count, 0);
}

static void a_collision_drops_the_block_and_goes_on(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", NULL);
    PLAN(&run, {STATUS_OK, CREATE_TAKEN}, {STATUS_OK, CREATE_TAKEN}, {STATUS_OK, CREATE_TAKEN},
        {STATUS_OK, CREATE_TAKEN}, {STATUS_OK, CREATE_MADE});
    assert_int_equal(run_create(&run), STATUS_OK);
    assert_int_equal(run.fake.call_count, 5);
    assert_int_equal(run.fake.takes, 5);
    assert_int_equal(run.fake.collisions, 4);
    assert_int_equal(run.fake.drops, 4);
    for (size_t i = 0; i < 5; i++) {
        expect_code_of(&run, i, FIRST_COUNTER + i);
        for (size_t j = 0; j < i; j++)
            assert_false(same_create_id(&run, i, j));
    }
    assert_string_equal(run.made.code, run.fake.calls[4].code);
}

static void five_collisions_are_enough(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", NULL);
    PLAN(&run, {STATUS_OK, CREATE_TAKEN});
    assert_int_equal(run_create(&run), STATUS_UNAVAILABLE);
    assert_string_equal(run.why.reason, "NO_FREE_CODE");
    assert_int_equal(run.fake.call_count, 5);
    assert_int_equal(run.fake.takes, 5);
    assert_int_equal(run.fake.collisions, 5);
    assert_int_equal(run.fake.drops, 5);
}

static void a_refused_counter_drops_the_block_and_goes_on(void **state) {
    (void)state;
    struct run run;
    run_init(&run, "https://example.com/", NULL);
    PLAN(&run, {STATUS_OK, CREATE_COUNTER_REFUSED}, {STATUS_OK, CREATE_MADE});
    assert_int_equal(run_create(&run), STATUS_OK);
    assert_int_equal(run.fake.drops, 1);
    assert_int_equal(run.fake.collisions, 0);
    expect_code_of(&run, 1, FIRST_COUNTER + 1);
    assert_string_equal(run.made.code, run.fake.calls[1].code);
}

// ---- unknown outcomes

static void an_unknown_outcome_is_asked_again_and_makes_one_link(void **state) {
    (void)state;
    static const char *const aliases[] = {NULL, "launch"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        struct run run;
        run_init(&run, "https://example.com/", aliases[i]);
        // Committed, then lost; then Postgres is away for a while.
        PLAN(&run, {STATUS_UNKNOWN, CREATE_MADE}, {STATUS_UNAVAILABLE, CREATE_TAKEN},
            {STATUS_DEADLINE_EXCEEDED, CREATE_TAKEN}, {STATUS_UNKNOWN, CREATE_MADE},
            {STATUS_OK, CREATE_MADE});
        assert_int_equal(run_create(&run), STATUS_OK);
        assert_int_equal(run.why.status, STATUS_OK);
        assert_int_equal(run.fake.call_count, 5);
        assert_int_equal(run.fake.link_count, 1);
        assert_int_equal(run.fake.takes, aliases[i] == NULL ? 1 : 0);
        assert_int_equal(run.fake.asked_again, 1);
        assert_int_equal(run.fake.drops + run.fake.collisions, 0);
        for (size_t j = 1; j < 5; j++) {
            assert_string_equal(run.fake.calls[j].code, run.fake.calls[0].code);
            assert_true(same_create_id(&run, j, 0));
        }
        assert_string_equal(run.made.code, run.fake.calls[0].code);
    }
}

static void an_outcome_that_stays_unknown_ends_at_the_deadline(void **state) {
    (void)state;
    static const enum status later[] = {STATUS_UNKNOWN, STATUS_UNAVAILABLE, STATUS_DEADLINE_EXCEEDED};
    for (size_t i = 0; i < ARRAY_LEN(later); i++) {
        struct run run;
        run_init(&run, "https://example.com/", NULL);
        PLAN(&run, {STATUS_UNKNOWN, CREATE_MADE}, {later[i], CREATE_MADE});
        int64_t since = base_monotonic_us();
        run.deadline_us = since + 300 * US_PER_MS;
        assert_int_equal(run_create(&run), STATUS_UNAVAILABLE);
        int64_t took = base_monotonic_us() - since;
        assert_string_equal(run.why.reason, "OUTCOME_UNKNOWN");
        assert_in_range(took, 200 * US_PER_MS, 800 * US_PER_MS);
        assert_in_range(run.fake.call_count, 2, 7);
        assert_int_equal(run.fake.link_count, 1);
        assert_int_equal(run.fake.takes, 1);
    }
}

static void what_surely_failed_is_not_asked_again(void **state) {
    (void)state;
    static const enum status failures[] = {STATUS_UNAVAILABLE, STATUS_INTERNAL, STATUS_INVALID_ARGUMENT};
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        struct run run;
        run_init(&run, "https://example.com/", NULL);
        PLAN(&run, {failures[i], CREATE_TAKEN});
        assert_int_equal(run_create(&run), failures[i]);
        assert_string_equal(run.why.reason, "PLANNED");
        assert_int_equal(run.fake.call_count, 1);
        assert_int_equal(run.fake.asked_again + run.fake.drops + run.fake.collisions, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_rule_is_named),
        cmocka_unit_test(one_broken_rule_is_enough),
        cmocka_unit_test(the_last_instant_is_a_good_expiry),
        cmocka_unit_test(an_alias_is_the_code),
        cmocka_unit_test(a_taken_alias_is_refused_at_once),
        cmocka_unit_test(a_rival_may_win_an_alias_while_we_ask_again),
        cmocka_unit_test(a_counter_value_makes_the_code),
        cmocka_unit_test(no_counter_value_means_no_insert),
        cmocka_unit_test(a_used_up_slot_says_so),
        cmocka_unit_test(a_collision_drops_the_block_and_goes_on),
        cmocka_unit_test(five_collisions_are_enough),
        cmocka_unit_test(a_refused_counter_drops_the_block_and_goes_on),
        cmocka_unit_test(an_unknown_outcome_is_asked_again_and_makes_one_link),
        cmocka_unit_test(an_outcome_that_stays_unknown_ends_at_the_deadline),
        cmocka_unit_test(what_surely_failed_is_not_asked_again),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
