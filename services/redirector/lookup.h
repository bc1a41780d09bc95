// SPDX-License-Identifier: MIT
// Finds a link for a redirect, for one worker: the in-process cache first, then one fetch from storage for
// all who ask for the code meanwhile. Hot links are fetched again in the background before they end, while
// requests go on being served from the cache. On one loop.
#pragma once

#include "services/redirector/fetch.h"
#include "services/redirector/flight.h"

struct lookup;

struct lookup_options {
    struct fetch *fetch; // outlives the lookup
    size_t cache_bytes;
};
struct lookup *lookup_create(const struct lookup_options *options);
// Close the fetch first, so that no flight is under way. NULL is fine.
void lookup_free(struct lookup *lookup);

enum lookup_result { LOOKUP_NOT_CACHED, LOOKUP_FOUND, LOOKUP_ABSENT };

// From the in-process cache alone, at once. `link` is set for LOOKUP_FOUND and borrowed until the next call
// here.
enum lookup_result lookup_cached(
    struct lookup *lookup, const char *code, int64_t now_us, const struct cached_link **link);

// Who waits for a fetch: the first member of the caller's own struct, which stays where it is until `done` is
// called. OK with the link (borrowed), NOT_FOUND, DATA_LOSS for a link that must not be sent, or UNAVAILABLE:
// what is not known is never told as absent.
struct lookup_waiter {
    struct flight_waiter link; // first
    void (*done)(struct lookup_waiter *waiter, enum status status, const struct cached_link *link,
        enum link_source source);
};
// After lookup_cached() had nothing. `done` is called once, from within or later.
void lookup_find(struct lookup *lookup, const char *code, int64_t now_us, struct lookup_waiter *waiter);
