// SPDX-License-Identifier: MIT
// An index with open addressing over entries that are one allocation each, URL included. Beside each cell
// stands one byte of the hash, so that a probe rarely looks at an entry that is not the one.
//
// Eviction is SIEVE (Zhang et al., NSDI 2024) with the stale going first: see
// docs/decisions/0006-l1-policy.md.
#include "services/redirector/l1.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH_MASK (L1_EPOCHS - 1)
#define CELL_SHARE 192 // bytes of the limit for each cell of the index
#define ALLOCATOR_BYTES 8
#define WAYS 4        // of the absent table
#define SWEEP_MAX 128 // entries that one eviction looks at: bounds what a put may cost

// XFetch's delta is what the read took, within these bounds. The lower one: reads take some 0.2 ms, which
// would make early refresh all but vanish, and it must outlast a storage that stutters just then. The upper
// one: a slow storage must not be read without pause.
#define DELTA_MIN_US (50 * US_PER_MS)
#define DELTA_MAX_US (500 * US_PER_MS)
#define LN_MAX 37 // -ln(2^-53) is less: no random number asks earlier than this many deltas before the end

// What a hit looks at stands together.
struct entry {
    int64_t read_at;
    uint32_t epoch; // l1->epoch when it was put, as far as it fits
    unsigned visited : 1;
    unsigned cost_us : 31;
    struct cached_link link; // its url is NULL or the one below
    uint64_t hash;
    struct entry *newer, *older;
    char url[];
};

struct absent {
    char code[CODES_TEXT]; // "": free
    int64_t read_at;
    uint32_t ttl_us;
};

struct l1 {
    uint8_t key[CRYPTO_SIPHASH_KEY];
    size_t limit, bytes; // bytes: in use, with all that is fixed
    size_t count, count_max;
    size_t mask;   // cells - 1
    uint8_t *tags; // 0: the cell is free
    struct entry **cells;
    struct entry *newest, *oldest, *hand; // hand NULL: at the oldest
    size_t absent_mask;                   // buckets - 1
    struct absent (*absent)[WAYS];
    uint64_t epoch; // of everything
    uint64_t epochs[L1_EPOCHS];
};

static size_t power_of_two(size_t at_least) {
    size_t power = 1;
    while (power < at_least)
        power *= 2;
    return power;
}

struct l1 *l1_create(const struct l1_options *options) {
    REQUIRE(options->bytes >= L1_BYTES_MIN && options->absent <= options->bytes);
    struct l1 *l1 = base_calloc(1, sizeof *l1);
    memcpy(l1->key, options->key, sizeof l1->key);
    size_t buckets = power_of_two((options->absent + WAYS - 1) / WAYS);
    size_t cells = power_of_two(options->bytes / CELL_SHARE);
    l1->limit = options->bytes;
    l1->count_max = cells / 8 * 7; // some free cells end each search
    l1->mask = cells - 1;
    l1->tags = base_calloc(cells, sizeof *l1->tags);
    l1->cells = base_calloc(cells, sizeof(struct entry *));
    l1->absent_mask = buckets - 1;
    l1->absent = base_calloc(buckets, sizeof *l1->absent);
    size_t absent_bytes = buckets * sizeof *l1->absent;
    REQUIRE(absent_bytes <= options->bytes / 2);
    l1->bytes = sizeof *l1 + cells * (sizeof *l1->tags + sizeof(struct entry *)) + absent_bytes;
    REQUIRE(l1->bytes < l1->limit);
    return l1;
}

void l1_free(struct l1 *l1) {
    if (l1 == NULL)
        return;
    for (struct entry *entry = l1->oldest, *next; entry != NULL; entry = next) {
        next = entry->newer;
        free(entry);
    }
    free(l1->tags);
    free(l1->cells);
    free(l1->absent);
    free(l1);
}

static size_t code_len(const char *code) {
    size_t len = strnlen(code, CODES_TEXT);
    REQUIRE(len < CODES_TEXT);
    return len;
}

static uint64_t hash_of(const struct l1 *l1, const char *code) {
    return crypto_siphash(l1->key, code, code_len(code));
}

static uint8_t tag_of(uint64_t hash) {
    uint8_t tag = (uint8_t)(hash >> 56);
    return tag != 0 ? tag : 1;
}

static bool is_fresh(const struct l1 *l1, const struct entry *entry, int64_t now_us) {
    return now_us - entry->read_at < L1_FRESH_US && entry->epoch == (uint32_t)l1->epoch;
}

// What an entry takes of the allocator: glibc's pieces are multiples of 16, of which 8 are its own; others
// are close to that. Entries are allocated to the full, so that a URL of another length may fit.
static size_t entry_bytes(size_t url_len) {
    return (sizeof(struct entry) + url_len + 1 + ALLOCATOR_BYTES + 15) / 16 * 16;
}

// ---- the index

// The cell of the code, or the free one that ended the search.
static size_t find_cell(const struct l1 *l1, uint64_t hash, const char *code) {
    uint8_t tag = tag_of(hash);
    size_t at = hash & l1->mask;
    while (l1->tags[at] != 0 && !(l1->tags[at] == tag && strcmp(l1->cells[at]->link.code, code) == 0))
        at = (at + 1) & l1->mask;
    return at;
}

static struct entry *find(const struct l1 *l1, uint64_t hash, const char *code) {
    size_t at = find_cell(l1, hash, code);
    return l1->tags[at] != 0 ? l1->cells[at] : NULL;
}

// Moves up what stood behind only because this cell was taken: so the index needs no marks of what was there.
static void free_cell(struct l1 *l1, size_t hole) {
    for (size_t at = (hole + 1) & l1->mask; l1->tags[at] != 0; at = (at + 1) & l1->mask) {
        size_t home = l1->cells[at]->hash & l1->mask;
        if (((at - home) & l1->mask) < ((at - hole) & l1->mask))
            continue;
        l1->tags[hole] = l1->tags[at];
        l1->cells[hole] = l1->cells[at];
        hole = at;
    }
    l1->tags[hole] = 0;
}

// ---- entries and their order

static void drop(struct l1 *l1, struct entry *entry) {
    free_cell(l1, find_cell(l1, entry->hash, entry->link.code));
    if (l1->hand == entry)
        l1->hand = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &l1->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &l1->oldest) = entry->newer;
    l1->count--;
    l1->bytes -= entry_bytes(entry->link.url_len);
    free(entry);
}

static void insert(struct l1 *l1, struct entry *entry) {
    size_t at = find_cell(l1, entry->hash, entry->link.code);
    l1->tags[at] = tag_of(entry->hash);
    l1->cells[at] = entry;
    entry->older = l1->newest;
    *(l1->newest != NULL ? &l1->newest->newer : &l1->oldest) = entry;
    l1->newest = entry;
    l1->count++;
    l1->bytes += entry_bytes(entry->link.url_len);
}

static void evict(struct l1 *l1, int64_t now_us) {
    struct entry *entry = l1->hand != NULL ? l1->hand : l1->oldest;
    for (size_t step = 0; step < SWEEP_MAX && entry->visited && is_fresh(l1, entry, now_us); step++) {
        entry->visited = 0;
        entry = entry->newer != NULL ? entry->newer : l1->oldest;
    }
    l1->hand = entry;
    drop(l1, entry); // which moves the hand on
}

// ---- absent codes

static struct absent *find_absent(const struct l1 *l1, uint64_t hash, const char *code) {
    struct absent *bucket = l1->absent[hash & l1->absent_mask];
    for (size_t i = 0; i < WAYS; i++)
        if (strcmp(bucket[i].code, code) == 0)
            return &bucket[i];
    return NULL;
}

static int64_t absent_until(const struct absent *absent) {
    return absent->code[0] != '\0' ? absent->read_at + absent->ttl_us : INT64_MIN;
}

// A free place, or that of the one in the bucket that ends first.
static struct absent *absent_place(const struct l1 *l1, uint64_t hash) {
    struct absent *bucket = l1->absent[hash & l1->absent_mask];
    struct absent *place = &bucket[0];
    for (size_t i = 1; i < WAYS; i++)
        if (absent_until(&bucket[i]) < absent_until(place))
            place = &bucket[i];
    return place;
}

// ---- reading

enum l1_result l1_get(struct l1 *l1, const char *code, int64_t now_us, struct l1_hit *out) {
    uint64_t hash = hash_of(l1, code);
    struct entry *entry = find(l1, hash, code);
    if (entry == NULL) {
        const struct absent *absent = find_absent(l1, hash, code);
        return absent != NULL && now_us < absent_until(absent) ? L1_ABSENT : L1_MISS;
    }
    if (!entry->visited) // what is not written need not be carried back to memory
        entry->visited = 1;
    if (!is_fresh(l1, entry, now_us))
        return L1_STALE;
    *out = (struct l1_hit){.link = &entry->link, .read_at = entry->read_at, .cost_us = entry->cost_us};
    return L1_HIT;
}

bool l1_wants_refresh(const struct l1_hit *hit, int64_t now_us, uint64_t random) {
    int64_t delta = hit->cost_us < DELTA_MIN_US ? DELTA_MIN_US : hit->cost_us;
    if (delta > DELTA_MAX_US)
        delta = DELTA_MAX_US;
    int64_t left = hit->read_at + L1_FRESH_US - now_us;
    if (left > LN_MAX * delta)
        return false;
    double uniform = (double)((random >> 11) + 1) * 0x1p-53; // in (0, 1]
    return -log(uniform) * (double)delta >= (double)left;
}

// ---- fetches

// Both only grow, so that the sum differs as soon as one has.
static uint64_t epoch_of(const struct l1 *l1, uint64_t hash) {
    return l1->epoch + l1->epochs[hash >> 32 & EPOCH_MASK];
}

struct l1_fetch l1_fetch(const struct l1 *l1, const char *code, int64_t now_us) {
    return (struct l1_fetch){.read_at = now_us, .epoch = epoch_of(l1, hash_of(l1, code))};
}

// Is this still the latest word on the code?
static bool is_good(
    const struct l1 *l1, const struct l1_fetch *fetch, uint64_t hash, const char *code, int64_t now_us) {
    if (fetch->epoch != epoch_of(l1, hash) || now_us - fetch->read_at >= L1_FRESH_US)
        return false;
    const struct entry *entry = find(l1, hash, code);
    const struct absent *absent = find_absent(l1, hash, code);
    return (entry == NULL || entry->read_at <= fetch->read_at) &&
           (absent == NULL || absent->read_at <= fetch->read_at);
}

static void write_entry(const struct l1 *l1, struct entry *entry, const struct l1_fetch *fetch,
    const struct cached_link *link, int64_t now_us) {
    int64_t cost_us = now_us - fetch->read_at; // below L1_FRESH_US: is_good()
    entry->link = *link;
    entry->epoch = (uint32_t)l1->epoch;
    entry->read_at = fetch->read_at;
    entry->cost_us = (unsigned)(cost_us > 0 ? cost_us : 0) & INT32_MAX;
    entry->link.url = NULL;
    if (link->url == NULL)
        return;
    memcpy(entry->url, link->url, link->url_len);
    entry->url[link->url_len] = '\0';
    entry->link.url = entry->url;
}

static void forget_absent(struct l1 *l1, uint64_t hash, const char *code) {
    struct absent *absent = find_absent(l1, hash, code);
    if (absent != NULL)
        absent->code[0] = '\0';
}

// Drops the code's entry, unless the new one fits into its place: then it is written there and keeps its
// turn.
static bool replace(struct l1 *l1, uint64_t hash, const struct l1_fetch *fetch,
    const struct cached_link *link, int64_t now_us) {
    struct entry *old = find(l1, hash, link->code);
    if (old == NULL)
        return false;
    if (!link->strict && entry_bytes(old->link.url_len) == entry_bytes(link->url_len)) {
        write_entry(l1, old, fetch, link, now_us);
        return true;
    }
    drop(l1, old);
    return false;
}

bool l1_put(struct l1 *l1, const struct l1_fetch *fetch, const struct cached_link *link, int64_t now_us) {
    uint64_t hash = hash_of(l1, link->code);
    REQUIRE(link->url != NULL || link->url_len == 0);
    if (!is_good(l1, fetch, hash, link->code, now_us))
        return false;
    forget_absent(l1, hash, link->code);
    if (replace(l1, hash, fetch, link, now_us))
        return true;
    size_t need = entry_bytes(link->url_len);
    if (link->strict || need > l1->limit)
        return false;
    while (l1->count > 0 && (l1->count >= l1->count_max || need > l1->limit - l1->bytes))
        evict(l1, now_us);
    if (need > l1->limit - l1->bytes)
        return false;
    struct entry *entry = base_calloc(1, need - ALLOCATOR_BYTES);
    entry->hash = hash;
    write_entry(l1, entry, fetch, link, now_us);
    insert(l1, entry);
    return true;
}

bool l1_put_absent(
    struct l1 *l1, const struct l1_fetch *fetch, const char *code, int64_t ttl_us, int64_t now_us) {
    uint64_t hash = hash_of(l1, code);
    REQUIRE(code[0] != '\0' && ttl_us >= 0);
    if (!is_good(l1, fetch, hash, code, now_us))
        return false;
    struct entry *entry = find(l1, hash, code);
    if (entry != NULL)
        drop(l1, entry);
    struct absent *absent = find_absent(l1, hash, code);
    if (absent == NULL)
        absent = absent_place(l1, hash);
    memcpy(absent->code, code, code_len(code) + 1);
    absent->read_at = fetch->read_at;
    absent->ttl_us = (uint32_t)(ttl_us < L1_FRESH_US ? ttl_us : L1_FRESH_US);
    return true;
}

// ---- invalidations

void l1_remove(struct l1 *l1, const char *code) {
    uint64_t hash = hash_of(l1, code);
    l1->epochs[hash >> 32 & EPOCH_MASK]++;
    forget_absent(l1, hash, code);
    struct entry *entry = find(l1, hash, code);
    if (entry != NULL)
        drop(l1, entry);
}

// Entries of an older epoch are as good as stale, and go as those do: freeing hundreds of thousands at once
// would hold up the worker.
void l1_clear(struct l1 *l1) {
    l1->epoch++;
    memset(l1->absent, 0, (l1->absent_mask + 1) * sizeof *l1->absent);
}

size_t l1_count(const struct l1 *l1) {
    return l1->count;
}

size_t l1_bytes(const struct l1 *l1) {
    return l1->bytes;
}
