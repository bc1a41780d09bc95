// SPDX-License-Identifier: MIT
#include "common/rpc/rpc.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include "services/redirector/never_issued.h"
#include "tests/support/await.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NOW INT64_C(1000000000)
#define EVERY_US (50 * US_PER_MS)

static struct codes_key key;
static uint8_t fingerprint[CODES_FINGERPRINT];

static const char *code_of(unsigned slot, uint64_t counter) {
    static char code[CODES_TEXT];
    assert_true(codes_encode(&key, slot, counter, code));
    return code;
}

static struct never_issued_news news_of(uint64_t slot_0, uint64_t slot_3) {
    struct never_issued_news news = {
        .ceiling = {[0] = slot_0, [3] = slot_3}, .has_fingerprint = true, .jumps = 2};
    memcpy(news.fingerprint, fingerprint, sizeof fingerprint);
    return news;
}

// ---- the check

static void codes_at_and_past_their_ceiling_are_not_looked_up(void **state) {
    (void)state;
    static const struct {
        uint64_t counter;
        unsigned slot;
        enum never_issued_answer expected;
    } rows[] = {
        {0, 0, NEVER_ISSUED_LOOK_UP},
        {999, 0, NEVER_ISSUED_LOOK_UP},
        {1000, 0, NEVER_ISSUED_NO_LOOKUP},
        {CODES_COUNTERS_7 - 1, 0, NEVER_ISSUED_NO_LOOKUP},
        {0, 1, NEVER_ISSUED_NO_LOOKUP}, // unused: its ceiling is 0
        {5, 6, NEVER_ISSUED_NO_LOOKUP},
        {CODES_COUNTERS_7 - 1, 3, NEVER_ISSUED_LOOK_UP},
        {CODES_COUNTERS_7, 3, NEVER_ISSUED_LOOK_UP}, // of 8 characters
        {CODES_COUNTERS_7 + 9, 3, NEVER_ISSUED_LOOK_UP},
        {CODES_COUNTERS_7 + 10, 3, NEVER_ISSUED_NO_LOOKUP},
        {CODES_COUNTERS_7 + 10, 2, NEVER_ISSUED_NO_LOOKUP},
        {0, 7, NEVER_ISSUED_LOOK_UP}, // not of a counter
        {CODES_COUNTERS_7 - 1, 7, NEVER_ISSUED_LOOK_UP},
        {CODES_COUNTERS_7, 7, NEVER_ISSUED_LOOK_UP},
    };
    static struct never_issued_state check;
    never_issued_init(&check, &key);
    const struct never_issued_news news = news_of(1000, CODES_COUNTERS_7 + 10);
    assert_int_equal(never_issued_take(&check, NOW, &news), NEVER_ISSUED_TRUSTED);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (never_issued_check(&check, code_of(rows[i].slot, rows[i].counter), NOW) != rows[i].expected)
            fail_msg("row %zu", i);
    static const char *const aliases[] = {"abcd", "abc-efg", "abcdef", "abcdefghi", "a_cdefgh"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        assert_int_equal(never_issued_check(&check, aliases[i], NOW), NEVER_ISSUED_LOOK_UP);
}

static void trust_ends_20_s_after_it_was_asked_for(void **state) {
    (void)state;
    static struct never_issued_state check;
    never_issued_init(&check, &key);
    const char *code = code_of(0, 1000);
    assert_int_equal(never_issued_check(&check, code, 0), NEVER_ISSUED_UNKNOWN);
    const struct never_issued_news news = news_of(1000, 0);
    (void)never_issued_take(&check, NOW, &news);
    assert_int_equal(never_issued_check(&check, code, NOW + 20 * US_PER_S - 1), NEVER_ISSUED_NO_LOOKUP);
    assert_int_equal(never_issued_check(&check, code, NOW + 20 * US_PER_S), NEVER_ISSUED_UNKNOWN);
    assert_int_equal(never_issued_check(&check, "not-generated", NOW + 20 * US_PER_S), NEVER_ISSUED_LOOK_UP);
}

static void the_largest_ceiling_seen_counts(void **state) {
    (void)state;
    static struct never_issued_state check;
    never_issued_init(&check, &key);
    const struct never_issued_news high = news_of(2000, 0);
    const struct never_issued_news low = news_of(1000, 7);
    (void)never_issued_take(&check, NOW, &high);
    (void)never_issued_take(&check, NOW + 1, &low);
    assert_int_equal(never_issued_check(&check, code_of(0, 1999), NOW), NEVER_ISSUED_LOOK_UP);
    assert_int_equal(never_issued_check(&check, code_of(0, 2000), NOW), NEVER_ISSUED_NO_LOOKUP);
    assert_int_equal(never_issued_check(&check, code_of(3, 6), NOW), NEVER_ISSUED_LOOK_UP);
    assert_int_equal(atomic_load(&check.jumps), 2);
}

static void another_key_is_never_trusted(void **state) {
    (void)state;
    static struct never_issued_state check;
    never_issued_init(&check, &key);
    struct never_issued_news news = news_of(1000, 0);
    (void)never_issued_take(&check, NOW, &news);
    news.fingerprint[0] ^= 1;
    assert_int_equal(never_issued_take(&check, NOW, &news), NEVER_ISSUED_WRONG_KEY);
    assert_int_equal(never_issued_check(&check, code_of(0, 1000), NOW), NEVER_ISSUED_UNKNOWN);
    assert_true(never_issued_is_counters(&check, code_of(7, 1)));
    news.has_fingerprint = false;
    assert_int_equal(never_issued_take(&check, NOW, &news), NEVER_ISSUED_UNCLAIMED);
    assert_int_equal(never_issued_check(&check, code_of(0, 1000), NOW), NEVER_ISSUED_UNKNOWN);
}

static void without_a_key_every_generated_code_is_a_counters(void **state) {
    (void)state;
    static struct never_issued_state check;
    never_issued_init(&check, NULL);
    assert_int_equal(never_issued_check(&check, code_of(0, 1000), NOW), NEVER_ISSUED_UNKNOWN);
    assert_true(never_issued_is_counters(&check, code_of(7, 5)));
    assert_false(never_issued_is_counters(&check, "alias-1"));
    struct never_issued_news news = news_of(1000, 0);
    memset(news.fingerprint, 0, sizeof news.fingerprint);
    assert_int_equal(never_issued_take(&check, NOW, &news), NEVER_ISSUED_WRONG_KEY);
}

static void with_the_right_key_slot_7_is_no_counters(void **state) {
    (void)state;
    static struct never_issued_state check;
    never_issued_init(&check, &key);
    const struct never_issued_news news = news_of(1000, 0);
    (void)never_issued_take(&check, NOW, &news);
    assert_true(never_issued_is_counters(&check, code_of(0, 5)));
    assert_true(never_issued_is_counters(&check, code_of(6, 5)));
    assert_false(never_issued_is_counters(&check, code_of(7, 5)));
    assert_false(never_issued_is_counters(&check, "abcdef"));
}

// ---- the thread, on a keyrange service in this process

struct fake {
    Dunlin__V1__Keyrange_Service base; // first
    pthread_mutex_t lock;              // guards what follows
    unsigned calls;
    size_t slots; // how many of the slots an answer has
    uint8_t flip; // of the fingerprint
    bool fails;
    bool told; // the last request's word was: counter 5 and ceiling 1000 for slot 0
};

static void get_ceilings(Dunlin__V1__Keyrange_Service *service, const Dunlin__V1__GetCeilingsRequest *request,
    Dunlin__V1__Ceilings_Closure closure, void *data) {
    struct fake *fake = (struct fake *)service;
    (void)pthread_mutex_lock(&fake->lock);
    fake->calls++;
    fake->told = request->n_known == NEVER_ISSUED_SLOTS && request->known[0]->counter == 5 &&
                 request->known[0]->ceiling == 1000 && request->has_key_fingerprint;
    Dunlin__V1__Ceiling slots[NEVER_ISSUED_SLOTS];
    Dunlin__V1__Ceiling *list[NEVER_ISSUED_SLOTS];
    for (unsigned slot = 0; slot < NEVER_ISSUED_SLOTS; slot++) {
        slots[slot] = (Dunlin__V1__Ceiling)DUNLIN__V1__CEILING__INIT;
        slots[slot].slot = slot;
        slots[slot].counter = slot == 0 ? 5 : 0;
        slots[slot].ceiling = slot == 0 ? 1000 : 0;
        list[slot] = &slots[slot];
    }
    uint8_t told[CODES_FINGERPRINT];
    memcpy(told, fingerprint, sizeof told);
    told[0] ^= fake->flip;
    Dunlin__V1__Ceilings answer = DUNLIN__V1__CEILINGS__INIT;
    answer.n_ceilings = fake->slots;
    answer.ceilings = list;
    answer.has_key_fingerprint = true;
    answer.key_fingerprint = (ProtobufCBinaryData){.len = sizeof told, .data = told};
    bool fails = fake->fails;
    (void)pthread_mutex_unlock(&fake->lock);
    struct problem why = {.status = STATUS_UNAVAILABLE};
    if (fails)
        RPC_REFUSE(closure, &why, data);
    else
        RPC_ANSWER(closure, &answer, data);
}

static void fake_init(struct fake *fake) {
    *fake = (struct fake){
        .base = {.base = {&dunlin__v1__keyrange__descriptor, protobuf_c_service_invoke_internal, NULL},
            .get_ceilings = get_ceilings},
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .slots = NEVER_ISSUED_SLOTS,
    };
}

static unsigned calls_of(struct fake *fake) {
    (void)pthread_mutex_lock(&fake->lock);
    unsigned calls = fake->calls;
    (void)pthread_mutex_unlock(&fake->lock);
    return calls;
}

static enum never_issued_answer ask(const struct never_issued *never_issued, uint64_t counter) {
    return never_issued_check(never_issued_state(never_issued), code_of(0, counter), base_monotonic_us());
}

static void ceilings_are_fetched_in_the_background(void **state) {
    (void)state;
    struct fake fake;
    fake_init(&fake);
    fake.fails = true;
    struct never_issued *never_issued = never_issued_start(&fake.base.base, &key, EVERY_US);
    AWAIT(5, calls_of(&fake) >= 2); // again after half a second
    assert_int_equal(ask(never_issued, 1000), NEVER_ISSUED_UNKNOWN);
    (void)pthread_mutex_lock(&fake.lock);
    fake.fails = false;
    (void)pthread_mutex_unlock(&fake.lock);
    AWAIT(5, ask(never_issued, 1000) == NEVER_ISSUED_NO_LOOKUP);
    assert_int_equal(ask(never_issued, 999), NEVER_ISSUED_LOOK_UP);
    int64_t since = base_monotonic_us();
    never_issued_stop(never_issued);
    assert_true(base_monotonic_us() - since < US_PER_S);
}

static void what_was_seen_is_told(void **state) {
    (void)state;
    struct fake fake;
    fake_init(&fake);
    struct never_issued *never_issued = never_issued_start(&fake.base.base, &key, EVERY_US);
    AWAIT(5, calls_of(&fake) >= 2);
    (void)pthread_mutex_lock(&fake.lock);
    assert_true(fake.told);
    (void)pthread_mutex_unlock(&fake.lock);
    never_issued_stop(never_issued);
}

static void an_answer_without_all_slots_is_none(void **state) {
    (void)state;
    struct fake fake;
    fake_init(&fake);
    fake.slots = NEVER_ISSUED_SLOTS - 1;
    struct never_issued *never_issued = never_issued_start(&fake.base.base, &key, EVERY_US);
    AWAIT(5, calls_of(&fake) >= 2);
    assert_int_equal(ask(never_issued, 1000), NEVER_ISSUED_UNKNOWN);
    never_issued_stop(never_issued);
}

static void a_wrong_key_looks_everything_up(void **state) {
    (void)state;
    struct fake fake;
    fake_init(&fake);
    fake.flip = 1;
    struct never_issued *never_issued = never_issued_start(&fake.base.base, &key, EVERY_US);
    AWAIT(5, calls_of(&fake) >= 1);
    assert_int_equal(ask(never_issued, 1000), NEVER_ISSUED_UNKNOWN);
    never_issued_stop(never_issued);
    never_issued = never_issued_start(NULL, NULL, EVERY_US);
    assert_int_equal(ask(never_issued, 1000), NEVER_ISSUED_UNKNOWN);
    never_issued_stop(never_issued);
    never_issued_stop(NULL);
}

static int prepare(void **state) {
    (void)state;
    crypto_init();
    assert_true(codes_key_parse("000102030405060708090a0b0c0d0e0f", &key));
    codes_fingerprint(&key, fingerprint);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_at_and_past_their_ceiling_are_not_looked_up),
        cmocka_unit_test(trust_ends_20_s_after_it_was_asked_for),
        cmocka_unit_test(the_largest_ceiling_seen_counts),
        cmocka_unit_test(another_key_is_never_trusted),
        cmocka_unit_test(without_a_key_every_generated_code_is_a_counters),
        cmocka_unit_test(with_the_right_key_slot_7_is_no_counters),
        cmocka_unit_test(ceilings_are_fetched_in_the_background),
        cmocka_unit_test(what_was_seen_is_told),
        cmocka_unit_test(an_answer_without_all_slots_is_none),
        cmocka_unit_test(a_wrong_key_looks_everything_up),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
