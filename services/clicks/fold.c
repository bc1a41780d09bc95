// SPDX-License-Identifier: MIT
#include "services/clicks/fold.h"

#include <stdlib.h>
#include <string.h>

#define CAP_FIRST 256U
#define CAP_KEPT 65536U // a larger table is given back when it is cleared

static size_t slot_count(const struct fold *fold) {
    return fold->cap * 2;
}

void fold_init(struct fold *fold) {
    *fold = (struct fold){0};
    crypto_random(fold->key, sizeof fold->key);
}

static void release(struct fold *fold) {
    free(fold->entries);
    free(fold->slots);
    fold->entries = NULL;
    fold->slots = NULL;
    fold->cap = 0;
}

void fold_done(struct fold *fold) {
    release(fold);
    *fold = (struct fold){0};
}

void fold_clear(struct fold *fold) {
    fold->count = 0;
    fold->clicks = 0;
    fold->sorted = false;
    if (fold->cap > CAP_KEPT)
        release(fold);
    else if (fold->cap > 0)
        memset(fold->slots, 0, slot_count(fold) * sizeof *fold->slots);
}

// Where the entry is, or the empty slot where it belongs. There is one: slots are half empty at least.
static uint32_t *find(const struct fold *fold, const struct fold_entry *key) {
    size_t mask = slot_count(fold) - 1;
    for (size_t at = key->hash & mask;; at = (at + 1) & mask) {
        uint32_t index = fold->slots[at];
        if (index == 0)
            return &fold->slots[at];
        const struct fold_entry *entry = &fold->entries[index - 1];
        if (entry->hash == key->hash && entry->day == key->day && entry->len == key->len &&
            memcmp(entry->code, key->code, key->len) == 0)
            return &fold->slots[at];
    }
}

static void grow(struct fold *fold) {
    size_t cap = fold->cap == 0 ? CAP_FIRST : fold->cap * 2;
    REQUIRE(cap < UINT32_MAX / 2);
    struct fold_entry *entries = base_calloc(cap, sizeof *entries);
    if (fold->count > 0)
        memcpy(entries, fold->entries, fold->count * sizeof *entries);
    release(fold);
    fold->entries = entries;
    fold->cap = cap;
    fold->slots = base_calloc(slot_count(fold), sizeof *fold->slots);
    for (size_t i = 0; i < fold->count; i++)
        *find(fold, &entries[i]) = (uint32_t)i + 1;
}

void fold_add(struct fold *fold, const char *code, int32_t day, uint64_t clicks) {
    REQUIRE(!fold->sorted);
    size_t len = strlen(code);
    REQUIRE(len > 0 && len < CODES_TEXT);
    if (fold->count == fold->cap)
        grow(fold);
    struct fold_entry key = {.clicks = clicks, .day = day, .len = (uint8_t)len};
    memcpy(key.code, code, len);
    key.hash = crypto_siphash(fold->key, code, len) + (uint64_t)(uint32_t)day * UINT64_C(0x9E3779B97F4A7C15);
    fold->clicks += clicks;
    uint32_t *slot = find(fold, &key);
    if (*slot != 0) {
        fold->entries[*slot - 1].clicks += clicks;
        return;
    }
    fold->entries[fold->count++] = key;
    *slot = (uint32_t)fold->count;
}

static int compare(const void *left, const void *right) {
    const struct fold_entry *a = left;
    const struct fold_entry *b = right;
    int order = strcmp(a->code, b->code);
    return order != 0 ? order : (a->day > b->day) - (a->day < b->day);
}

void fold_sort(struct fold *fold) {
    if (!fold->sorted && fold->count > 1)
        qsort(fold->entries, fold->count, sizeof *fold->entries, compare);
    fold->sorted = true;
}
