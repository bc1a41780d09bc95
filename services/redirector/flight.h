// SPDX-License-Identifier: MIT
// One flight per code: whoever asks for a code that is being fetched waits for that answer instead of
// fetching it again. The table of one worker; no I/O, one thread.
#pragma once

#include "common/codes/codes.h"
#include "services/redirector/l1.h"

struct flights;

// Somebody who waits; the memory is the waiter's until the flight lands.
struct flight_waiter {
    struct flight_waiter *next;
};

struct flight {
    struct flight *next; // in its bucket
    char code[CODES_TEXT];
    struct l1_fetch fetch;         // taken before the read was sent
    struct flight_waiter *waiters; // newest first; NULL for a refresh that nobody waits for
    void *owner;                   // whoever flies it
};

// `key` keeps outsiders from choosing codes that collide.
struct flights *flights_create(const uint8_t key[CRYPTO_SIPHASH_KEY]);
void flights_free(struct flights *flights); // none is under way any more; NULL is fine

struct flight *flights_find(const struct flights *flights, const char *code); // NULL: none
// There is none for this code yet.
struct flight *flights_begin(
    struct flights *flights, const char *code, const struct l1_fetch *fetch, void *owner);
void flight_join(struct flight *flight, struct flight_waiter *waiter);
// Takes the flight out of the table, so that the next to ask begins another, frees it, and gives its waiters,
// oldest first.
struct flight_waiter *flights_land(struct flights *flights, struct flight *flight);
size_t flights_count(const struct flights *flights);
