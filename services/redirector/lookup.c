// SPDX-License-Identifier: MIT
#include "services/redirector/lookup.h"
#include "services/redirector/redirector.h"

#include <stdlib.h>
#include <string.h>

// A code of generated shape is made by a counter and nobody tells us when: its absence is believed for so
// long only. Other codes' absence is not kept: somebody may be about to wish for one.
#define ABSENT_US US_PER_S
#define ABSENT_CODES 4096

struct lookup {
    struct fetch *fetch;
    struct l1 *l1;
    struct flights *flights;
    uint64_t random; // state of a xorshift generator: refreshes need no better
    struct metric *hits, *absents, *misses;
    struct metric *joined;
    struct metric *refreshes;
};

struct lookup *lookup_create(const struct lookup_options *options) {
    struct lookup *lookup = base_calloc(1, sizeof *lookup);
    lookup->fetch = options->fetch;
    struct l1_options l1 = {.bytes = options->cache_bytes, .absent = ABSENT_CODES};
    crypto_random(l1.key, sizeof l1.key);
    lookup->l1 = l1_create(&l1);
    lookup->flights = flights_create(l1.key);
    lookup->random = crypto_random_u64() | 1;
    lookup->hits = metric_add(&redirector_metrics[REDIRECTOR_METRIC_LOOKUPS], "memory", "hit");
    lookup->absents = metric_add(&redirector_metrics[REDIRECTOR_METRIC_LOOKUPS], "memory", "absent");
    lookup->misses = metric_add(&redirector_metrics[REDIRECTOR_METRIC_LOOKUPS], "memory", "miss");
    lookup->joined = metric_add(&redirector_metrics[REDIRECTOR_METRIC_FLIGHTS_JOINED]);
    lookup->refreshes = metric_add(&redirector_metrics[REDIRECTOR_METRIC_REFRESHES]);
    return lookup;
}

void lookup_free(struct lookup *lookup) {
    if (lookup == NULL)
        return;
    flights_free(lookup->flights);
    l1_free(lookup->l1);
    free(lookup);
}

// ---- flights

static void keep(
    struct lookup *lookup, const struct flight *flight, enum status status, const struct cached_link *link) {
    int64_t now = base_monotonic_us();
    if (status == STATUS_OK)
        (void)l1_put(lookup->l1, &flight->fetch, link, now);
    else if (status == STATUS_NOT_FOUND && codes_is_generated_shape(flight->code, strlen(flight->code)))
        (void)l1_put_absent(lookup->l1, &flight->fetch, flight->code, ABSENT_US, now);
    else if (status == STATUS_NOT_FOUND)
        l1_remove(lookup->l1, flight->code);
}

static void landed(void *arg, enum status status, const struct cached_link *link, enum link_source source) {
    struct flight *flight = arg;
    struct lookup *lookup = flight->owner;
    keep(lookup, flight, status, link);
    struct flight_waiter *waiter = flights_land(lookup->flights, flight);
    while (waiter != NULL) {
        struct flight_waiter *next = waiter->next;
        struct lookup_waiter *lookup_waiter = (struct lookup_waiter *)waiter;
        lookup_waiter->done(lookup_waiter, status, link, source);
        waiter = next;
    }
}

static struct flight *begin(struct lookup *lookup, const char *code, int64_t now_us) {
    struct l1_fetch fetch = l1_fetch(lookup->l1, code, now_us);
    return flights_begin(lookup->flights, code, &fetch, lookup);
}

void lookup_find(struct lookup *lookup, const char *code, int64_t now_us, struct lookup_waiter *waiter) {
    struct flight *flight = flights_find(lookup->flights, code);
    if (flight != NULL) {
        metric_inc(lookup->joined);
        flight_join(flight, &waiter->link);
        return;
    }
    flight = begin(lookup, code, now_us);
    flight_join(flight, &waiter->link);
    fetch_find(lookup->fetch, flight->code, landed, flight);
}

// ---- the cache

static uint64_t next_random(struct lookup *lookup) {
    lookup->random ^= lookup->random << 13;
    lookup->random ^= lookup->random >> 7;
    lookup->random ^= lookup->random << 17;
    return lookup->random;
}

static void refresh(struct lookup *lookup, const char *code, int64_t now_us) {
    if (flights_find(lookup->flights, code) != NULL)
        return;
    metric_inc(lookup->refreshes);
    struct flight *flight = begin(lookup, code, now_us);
    fetch_find(lookup->fetch, flight->code, landed, flight);
}

enum lookup_result lookup_cached(
    struct lookup *lookup, const char *code, int64_t now_us, const struct cached_link **link) {
    struct l1_hit hit;
    switch (l1_get(lookup->l1, code, now_us, &hit)) {
    case L1_HIT:
        metric_inc(lookup->hits);
        *link = hit.link;
        // A fetch that fails at once changes nothing in the cache, and one that answers does so later: the
        // hit stays.
        if (l1_wants_refresh(&hit, now_us, next_random(lookup)))
            refresh(lookup, code, now_us);
        return LOOKUP_FOUND;
    case L1_ABSENT:
        metric_inc(lookup->absents);
        return LOOKUP_ABSENT;
    default:
        metric_inc(lookup->misses);
        return LOOKUP_NOT_CACHED;
    }
}
