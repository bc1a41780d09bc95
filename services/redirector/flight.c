// SPDX-License-Identifier: MIT
#include "services/redirector/flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Enough for a worker's Postgres queue at a load of one; more only makes the chains longer.
#define BUCKETS 1024

struct flights {
    uint8_t key[CRYPTO_SIPHASH_KEY];
    size_t count;
    struct flight *buckets[BUCKETS];
};

struct flights *flights_create(const uint8_t key[CRYPTO_SIPHASH_KEY]) {
    struct flights *flights = base_calloc(1, sizeof *flights);
    memcpy(flights->key, key, sizeof flights->key);
    return flights;
}

void flights_free(struct flights *flights) {
    REQUIRE(flights == NULL || flights->count == 0);
    free(flights);
}

static size_t bucket_of(const struct flights *flights, const char *code) {
    return crypto_siphash(flights->key, code, strlen(code)) % BUCKETS;
}

struct flight *flights_find(const struct flights *flights, const char *code) {
    struct flight *flight = flights->buckets[bucket_of(flights, code)];
    while (flight != NULL && strcmp(flight->code, code) != 0)
        flight = flight->next;
    return flight;
}

struct flight *flights_begin(
    struct flights *flights, const char *code, const struct l1_fetch *fetch, void *owner) {
    struct flight **bucket = &flights->buckets[bucket_of(flights, code)];
    struct flight *flight = base_calloc(1, sizeof *flight);
    (void)snprintf(flight->code, sizeof flight->code, "%s", code);
    flight->fetch = *fetch;
    flight->owner = owner;
    flight->next = *bucket;
    *bucket = flight;
    flights->count++;
    return flight;
}

void flight_join(struct flight *flight, struct flight_waiter *waiter) {
    waiter->next = flight->waiters;
    flight->waiters = waiter;
}

struct flight_waiter *flights_land(struct flights *flights, struct flight *flight) {
    struct flight **link = &flights->buckets[bucket_of(flights, flight->code)];
    while (*link != flight)
        link = &(*link)->next;
    *link = flight->next;
    flights->count--;
    struct flight_waiter *oldest = NULL;
    while (flight->waiters != NULL) {
        struct flight_waiter *waiter = flight->waiters;
        flight->waiters = waiter->next;
        waiter->next = oldest;
        oldest = waiter;
    }
    free(flight);
    return oldest;
}

size_t flights_count(const struct flights *flights) {
    return flights->count;
}
