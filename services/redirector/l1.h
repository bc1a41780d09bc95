// SPDX-License-Identifier: MIT
// The in-process cache (L1) of one worker: links by code, bounded in bytes, and apart from them the codes
// that are absent, bounded in number. No I/O, no clock of its own; one thread.
//
// What was read is good for L1_FRESH_US from when its read was sent. Nothing prolongs that but another read.
// Whoever reads a link takes a `struct l1_fetch` before it sends, and shows it with the answer: an answer
// that an invalidation overtook is refused.
//
//     struct l1_fetch fetch = l1_fetch(l1, code, now);
//     ... the read ...
//     (void)l1_put(l1, &fetch, &link, now);
//
// Whether a link that is kept has expired is for the caller to judge, on each hit.
#pragma once

#include "common/linkcache/linkcache.h"

struct l1;

#define L1_FRESH_US (5 * US_PER_S)
#define L1_BYTES_MIN ((size_t)64 * 1024)

struct l1_options {
    size_t bytes;  // for everything: entries, URLs, index, the absent; at least L1_BYTES_MIN
    size_t absent; // absent codes; rounded up to a power of two, 4 at least; 48 bytes each, half of `bytes`
                   // at most
    uint8_t key[CRYPTO_SIPHASH_KEY]; // secret, so that nobody can choose codes that collide
};
struct l1 *l1_create(const struct l1_options *options);
void l1_free(struct l1 *l1); // NULL is fine

// L1_STALE is a miss too: there is an entry, but it is too old.
enum l1_result { L1_MISS, L1_STALE, L1_HIT, L1_ABSENT };

struct l1_hit {
    const struct cached_link *link; // borrowed until the next call that is not l1_get()
    int64_t read_at;                // when its read was sent
    int64_t cost_us;                // what its read took
};
// `out` is set for L1_HIT alone. Codes have less than CODES_TEXT bytes, here and below.
enum l1_result l1_get(struct l1 *l1, const char *code, int64_t now_us, struct l1_hit *out);

// Should this hit begin a read in the background, before the entry ends? XFetch (Vattani et al., VLDB 2015):
// with a chance that grows towards the end, so that many workers don't all read at once. `random` is uniform
// over 64 bits.
bool l1_wants_refresh(const struct l1_hit *hit, int64_t now_us, uint64_t random);

struct l1_fetch {
    int64_t read_at;
    uint64_t epoch;
};
struct l1_fetch l1_fetch(const struct l1 *l1, const char *code, int64_t now_us);

// Copies the link. False where it is not kept: the code was invalidated since the fetch began, the answer
// took L1_FRESH_US or more, an answer to a later read is here already, or the link is strict or larger than
// the cache; of these two an older entry goes as well.
bool l1_put(struct l1 *l1, const struct l1_fetch *fetch, const struct cached_link *link, int64_t now_us);
// The code is absent, for `ttl_us` from when the read was sent, cut to L1_FRESH_US. Takes the code's entry
// away. False as above.
bool l1_put_absent(
    struct l1 *l1, const struct l1_fetch *fetch, const char *code, int64_t ttl_us, int64_t now_us);

// Invalidations, of one code and of everything. Fetches under way are barred, of some other codes too: epochs
// are kept for L1_EPOCHS groups of codes, not for each. After l1_clear() entries are stale; their memory is
// used for what comes.
#define L1_EPOCHS 1024
void l1_remove(struct l1 *l1, const char *code);
void l1_clear(struct l1 *l1);

size_t l1_count(const struct l1 *l1); // entries, stale ones too
size_t l1_bytes(const struct l1 *l1); // never above the options' `bytes`
