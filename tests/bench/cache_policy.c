// SPDX-License-Identifier: MIT
// Which entries should a worker's in-process cache give up? Replays request streams, the same ones in each
// run, against cache policies whose entries may be used for 5 s only, as the redirector's may, and prints the
// share of requests that each policy answers. Takes a minute or two.
//
//   bench_cache_policy [requests per second and worker, default 20000]
#include "common/base/base.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODES 1000000U
#define REQUESTS 4000000U
#define FRESH_US (5 * US_PER_S)
#define HOT_RANKS 1000U // the ranks that change hands
#define HOT_PERIOD_US (60 * US_PER_S)
#define SCAN_EVERY 4U // one request in so many is the scanner's
// Numbers of codes: the links of the law, then those that the scanner walks, then the newly hot ones.
#define SCAN_FIRST CODES
#define HOT_FIRST (SCAN_FIRST + REQUESTS / SCAN_EVERY)
#define HOT_CODES 1000000U
#define NUMBERS (HOT_FIRST + HOT_CODES)
#define NONE UINT32_MAX
#define SWEEP_MAX 128 // entries that one eviction may look at, where that is bounded

// ---- request streams

static uint64_t random_state;

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
static uint64_t random_next(void) {
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void zipf_sum(double exponent, double *sums) {
    double sum = 0;
    for (uint32_t rank = 0; rank < CODES; rank++)
        sums[rank] = sum += pow((double)rank + 1, -exponent);
}

static uint32_t zipf_draw(const double *sums) {
    double wanted = (double)(random_next() >> 11) * 0x1p-53 * sums[CODES - 1];
    uint32_t low = 0, high = CODES - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sums[middle] > wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

enum kind { KIND_STEADY, KIND_HOT, KIND_SCAN, KIND_COUNT };
static const char *const kind_names[] = {"steady", "hot set moves", "scan"};

static void make_stream(double exponent, enum kind kind, int64_t step_us, double *sums, uint32_t *out) {
    zipf_sum(exponent, sums);
    random_state = 1;
    uint32_t scanned = 0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        uint32_t period = (uint32_t)(i * step_us / HOT_PERIOD_US);
        if (kind == KIND_SCAN && i % SCAN_EVERY == 0) {
            out[i] = SCAN_FIRST + scanned++;
            continue;
        }
        out[i] = zipf_draw(sums);
        if (kind == KIND_HOT && out[i] < HOT_RANKS)
            out[i] += HOT_FIRST + period * HOT_RANKS % HOT_CODES;
    }
}

// ---- the cache: entries by number, in lists from newest to oldest

enum place { PLACE_NONE, PLACE_MAIN, PLACE_SMALL, PLACE_GHOST, PLACE_COUNT };

struct entry {
    int64_t read_at;
    uint32_t newer, older;
    uint8_t place, hits;
};

struct list {
    uint32_t newest, oldest, count;
};

struct cache {
    uint32_t capacity;
    int64_t now;
    uint32_t hand; // SIEVE's
    struct list lists[PLACE_COUNT];
    struct entry *entries;
};

static void list_push(struct cache *cache, uint32_t number, enum place place) {
    struct list *list = &cache->lists[place];
    struct entry *entry = &cache->entries[number];
    entry->place = (uint8_t)place;
    entry->newer = NONE;
    entry->older = list->newest;
    if (list->newest != NONE)
        cache->entries[list->newest].newer = number;
    else
        list->oldest = number;
    list->newest = number;
    list->count++;
}

static void list_take(struct cache *cache, uint32_t number) {
    struct entry *entry = &cache->entries[number];
    struct list *list = &cache->lists[entry->place];
    *(entry->newer != NONE ? &cache->entries[entry->newer].older : &list->newest) = entry->older;
    *(entry->older != NONE ? &cache->entries[entry->older].newer : &list->oldest) = entry->newer;
    list->count--;
    entry->place = PLACE_NONE;
}

static void list_move(struct cache *cache, uint32_t number, enum place place) {
    list_take(cache, number);
    list_push(cache, number, place);
}

static bool is_fresh(const struct cache *cache, const struct entry *entry) {
    return cache->now - entry->read_at < FRESH_US;
}

// ---- policies

struct policy {
    const char *name;
    void (*used)(struct cache *cache, uint32_t number);
    void (*insert)(struct cache *cache, uint32_t number);
    void (*evict)(struct cache *cache);
};

static void used_not_at_all(struct cache *cache, uint32_t number) {
    (void)cache;
    (void)number;
}

static void used_up_to_3(struct cache *cache, uint32_t number) {
    if (cache->entries[number].hits < 3)
        cache->entries[number].hits++;
}

static void used_moves_up(struct cache *cache, uint32_t number) {
    list_move(cache, number, PLACE_MAIN);
}

static void insert_main(struct cache *cache, uint32_t number) {
    list_push(cache, number, PLACE_MAIN);
}

static void evict_oldest(struct cache *cache) {
    list_take(cache, cache->lists[PLACE_MAIN].oldest);
}

static void evict_at_hand(struct cache *cache, uint32_t at) {
    cache->hand = cache->entries[at].newer;
    list_take(cache, at);
}

static uint32_t hand_of(const struct cache *cache) {
    return cache->hand != NONE ? cache->hand : cache->lists[PLACE_MAIN].oldest;
}

static uint32_t next_of(const struct cache *cache, uint32_t at) {
    return cache->entries[at].newer != NONE ? cache->entries[at].newer : cache->lists[PLACE_MAIN].oldest;
}

// SIEVE (Zhang et al., NSDI 2024).
static void evict_sieve(struct cache *cache) {
    uint32_t at = hand_of(cache);
    for (; cache->entries[at].hits > 0; at = next_of(cache, at))
        cache->entries[at].hits = 0;
    evict_at_hand(cache, at);
}

// As in l1.c: a bit saves only what is still fresh. What is stale has not been asked for since it became so,
// or it would have been read again.
static void evict_sieve_stale(struct cache *cache) {
    uint32_t at = hand_of(cache);
    for (uint32_t step = 0; step < SWEEP_MAX; step++, at = next_of(cache, at)) {
        struct entry *entry = &cache->entries[at];
        if (entry->hits == 0 || !is_fresh(cache, entry))
            break;
        entry->hits = 0;
    }
    evict_at_hand(cache, at);
}

// S3-FIFO (Yang et al., SOSP 2023): a tenth for newcomers, and as many ghosts as the main list may hold.
static void insert_s3(struct cache *cache, uint32_t number) {
    if (cache->entries[number].place == PLACE_GHOST) {
        list_take(cache, number);
        list_push(cache, number, PLACE_MAIN);
    } else {
        list_push(cache, number, PLACE_SMALL);
    }
}

static void add_ghost(struct cache *cache, uint32_t number) {
    struct list *ghosts = &cache->lists[PLACE_GHOST];
    list_push(cache, number, PLACE_GHOST);
    if (ghosts->count > cache->capacity - cache->capacity / 10)
        list_take(cache, ghosts->oldest);
}

static void evict_s3(struct cache *cache) {
    struct list *newcomers = &cache->lists[PLACE_SMALL];
    struct list *others = &cache->lists[PLACE_MAIN];
    while (newcomers->count > 0 && (newcomers->count >= cache->capacity / 10 || others->count == 0)) {
        uint32_t at = newcomers->oldest;
        if (cache->entries[at].hits <= 1) {
            list_take(cache, at);
            add_ghost(cache, at);
            return;
        }
        list_move(cache, at, PLACE_MAIN);
        cache->entries[at].hits = 0;
    }
    while (cache->entries[others->oldest].hits > 0) {
        cache->entries[others->oldest].hits--;
        list_move(cache, others->oldest, PLACE_MAIN);
    }
    list_take(cache, others->oldest);
}

// With what is stale at the end of either list going first, and being remembered.
static void evict_s3_stale(struct cache *cache) {
    for (enum place place = PLACE_MAIN; place <= PLACE_SMALL; place++) {
        uint32_t at = cache->lists[place].oldest;
        if (at != NONE && !is_fresh(cache, &cache->entries[at])) {
            list_take(cache, at);
            add_ghost(cache, at);
            return;
        }
    }
    evict_s3(cache);
}

static const struct policy policies[] = {
    {"no limit", used_not_at_all, insert_main, NULL},
    {"FIFO", used_not_at_all, insert_main, evict_oldest},
    {"LRU", used_moves_up, insert_main, evict_oldest},
    {"SIEVE", used_up_to_3, insert_main, evict_sieve},
    {"SIEVE+", used_up_to_3, insert_main, evict_sieve_stale},
    {"S3-FIFO", used_up_to_3, insert_s3, evict_s3},
    {"S3-FIFO+", used_up_to_3, insert_s3, evict_s3_stale},
};

// ---- replay

static void cache_reset(struct cache *cache, uint32_t capacity) {
    memset(cache->entries, 0, NUMBERS * sizeof *cache->entries);
    cache->capacity = capacity;
    cache->hand = NONE;
    for (size_t i = 0; i < PLACE_COUNT; i++)
        cache->lists[i] = (struct list){.newest = NONE, .oldest = NONE};
}

// True where the request is answered from the cache.
static bool request(struct cache *cache, const struct policy *policy, uint32_t number) {
    struct entry *entry = &cache->entries[number];
    if (entry->place == PLACE_MAIN || entry->place == PLACE_SMALL) {
        policy->used(cache, number);
        if (is_fresh(cache, entry))
            return true;
        entry->read_at = cache->now; // read again, into its place
        return false;
    }
    if (policy->evict != NULL &&
        cache->lists[PLACE_MAIN].count + cache->lists[PLACE_SMALL].count >= cache->capacity)
        policy->evict(cache);
    policy->insert(cache, number);
    entry->read_at = cache->now;
    entry->hits = 0;
    return false;
}

// The share of the visitors' requests that are hits, in percent, after the first tenth. The scanner's own can
// never be.
static double replay(
    struct cache *cache, const struct policy *policy, const uint32_t *stream, int64_t step_us) {
    uint64_t hits = 0, count = 0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        cache->now = i * step_us;
        bool hit = request(cache, policy, stream[i]);
        bool counts = i >= REQUESTS / 10 && (stream[i] < SCAN_FIRST || stream[i] >= HOT_FIRST);
        hits += counts && hit;
        count += counts;
    }
    return 100.0 * (double)hits / (double)count;
}

int main(int argc, char **argv) {
    static const double exponents[] = {0.7, 0.9, 1.0, 1.1};
    static const uint32_t per_mille[] = {1, 10, 100};
    long rate = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
    if (rate < 1 || rate > 1000000) {
        (void)fprintf(stderr, "usage: %s [requests per second, 1 to 1000000]\n", argv[0]);
        return 2;
    }
    int64_t step_us = US_PER_S / rate;
    double *sums = base_calloc(CODES, sizeof *sums);
    uint32_t *stream = base_calloc(REQUESTS, sizeof *stream);
    struct cache cache = {.entries = base_calloc(NUMBERS, sizeof *cache.entries)};
    printf("%u codes, %u requests at %ld/s, fresh for 5 s; %% of the visitors' requests\n\n", CODES, REQUESTS,
        rate);
    printf("| Zipf | stream | entries ");
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        printf("| %s ", policies[i].name);
    printf("|\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < ARRAY_LEN(exponents); i++)
        for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
            make_stream(exponents[i], kind, step_us, sums, stream);
            for (size_t j = 0; j < ARRAY_LEN(per_mille); j++) {
                printf("| %.1f | %s | %.1f %% ", exponents[i], kind_names[kind], per_mille[j] / 10.0);
                for (size_t k = 0; k < ARRAY_LEN(policies); k++) {
                    cache_reset(&cache, CODES / 1000 * per_mille[j]);
                    printf("| %.2f ", replay(&cache, &policies[k], stream, step_us));
                }
                printf("|\n");
                (void)fflush(stdout);
            }
        }
    free(cache.entries);
    free(stream);
    free(sums);
    return 0;
}
