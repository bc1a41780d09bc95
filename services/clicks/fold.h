// SPDX-License-Identifier: MIT
// Clicks as counts per (code, UTC day), gathered until they are applied in one transaction. Memory grows with
// the different (code, day) pairs since the last clear; the caller bounds the clicks that it adds. No I/O;
// one thread.
#pragma once

#include "common/codes/codes.h"

struct fold_entry {
    uint64_t clicks;
    uint64_t hash;
    int32_t day; // days since 1970-01-01
    uint8_t len;
    char code[CODES_TEXT];
};

struct fold {
    struct fold_entry *entries;
    size_t count;
    size_t cap;
    uint32_t *slots; // index into entries + 1, 0 for empty; twice as many as `cap`
    uint64_t clicks; // the sum over the entries
    bool sorted;
    uint8_t key[CRYPTO_SIPHASH_KEY]; // random: who chooses codes must not choose collisions
};

// init/done: the struct is the caller's.
void fold_init(struct fold *fold);
void fold_done(struct fold *fold);
void fold_clear(struct fold *fold);

// `code` is plausible (codes_is_plausible). Not after fold_sort() until the next clear.
void fold_add(struct fold *fold, const char *code, int32_t day, uint64_t clicks);
// Brings the entries into the order of (code by bytes, day): rows are locked in one order by everybody.
void fold_sort(struct fold *fold);
