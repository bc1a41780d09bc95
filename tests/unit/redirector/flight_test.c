// SPDX-License-Identifier: MIT
#include "services/redirector/flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const uint8_t key[CRYPTO_SIPHASH_KEY] = {7};

static void waiters_come_back_oldest_first(void **state) {
    (void)state;
    struct flights *flights = flights_create(key);
    const struct l1_fetch fetch = {.read_at = 5, .epoch = 6};
    struct flight_waiter waiters[3];
    int owner = 0;
    assert_null(flights_find(flights, "abcdefg"));
    struct flight *flight = flights_begin(flights, "abcdefg", &fetch, &owner);
    assert_ptr_equal(flights_find(flights, "abcdefg"), flight);
    assert_null(flights_find(flights, "abcdefG"));
    assert_string_equal(flight->code, "abcdefg");
    assert_int_equal(flight->fetch.read_at, 5);
    assert_ptr_equal(flight->owner, &owner);
    for (size_t i = 0; i < ARRAY_LEN(waiters); i++)
        flight_join(flight, &waiters[i]);
    struct flight_waiter *waiter = flights_land(flights, flight);
    for (size_t i = 0; i < ARRAY_LEN(waiters); i++) {
        assert_ptr_equal(waiter, &waiters[i]);
        waiter = waiter->next;
    }
    assert_null(waiter);
    assert_null(flights_find(flights, "abcdefg"));
    assert_int_equal(flights_count(flights), 0);
    flights_free(flights);
}

static void a_refresh_has_no_waiters(void **state) {
    (void)state;
    struct flights *flights = flights_create(key);
    const struct l1_fetch fetch = {0};
    struct flight *flight = flights_begin(flights, "abcdefg", &fetch, NULL);
    assert_null(flights_land(flights, flight));
    flights_free(flights);
    flights_free(NULL);
}

// More flights than buckets, landed in another order than they began in.
static void many_codes_fly_at_once(void **state) {
    (void)state;
    static struct flight *all[5000];
    struct flights *flights = flights_create(key);
    const struct l1_fetch fetch = {0};
    char code[CODES_TEXT];
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        (void)snprintf(code, sizeof code, "code%zu", i);
        all[i] = flights_begin(flights, code, &fetch, NULL);
    }
    assert_int_equal(flights_count(flights), ARRAY_LEN(all));
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        size_t at = i * 2003 % ARRAY_LEN(all);
        (void)snprintf(code, sizeof code, "code%zu", at);
        assert_ptr_equal(flights_find(flights, code), all[at]);
        assert_null(flights_land(flights, all[at]));
        assert_null(flights_find(flights, code));
    }
    assert_int_equal(flights_count(flights), 0);
    flights_free(flights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiters_come_back_oldest_first),
        cmocka_unit_test(a_refresh_has_no_waiters),
        cmocka_unit_test(many_codes_fly_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
