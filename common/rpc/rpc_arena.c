// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_arena.h"

#include <stdalign.h>
#include <stdlib.h>

#define FIRST_CHUNK 4096
#define LARGEST_STEP (256 * 1024)
#define ALIGNMENT alignof(max_align_t)

struct rpc_arena_chunk {
    struct rpc_arena_chunk *older;
    size_t size; // of bytes[]
    size_t used;
    alignas(max_align_t) unsigned char bytes[];
};

struct header {
    alignas(max_align_t) size_t size;
};

static size_t round_up(size_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// Chunks double up to LARGEST_STEP, so that the memory held stays near the memory used.
static struct rpc_arena_chunk *grow(struct rpc_arena *arena, size_t need) {
    size_t size = arena->chunks == NULL ? FIRST_CHUNK : arena->chunks->size * 2;
    if (size > LARGEST_STEP)
        size = LARGEST_STEP;
    size_t left = arena->limit - arena->total;
    if (size > left)
        size = left;
    if (size < need)
        size = need;
    if (size > left)
        return NULL;
    struct rpc_arena_chunk *chunk = malloc(sizeof *chunk + size);
    if (chunk == NULL)
        return NULL;
    *chunk = (struct rpc_arena_chunk){.older = arena->chunks, .size = size};
    arena->chunks = chunk;
    arena->total += size;
    return chunk;
}

static void *allocate(void *data, size_t size) {
    struct rpc_arena *arena = data;
    if (size > arena->limit) { // keeps the sums below from wrapping
        arena->exhausted = true;
        return NULL;
    }
    size_t need = sizeof(struct header) + round_up(size);
    struct rpc_arena_chunk *chunk = arena->chunks;
    if (chunk == NULL || need > chunk->size - chunk->used)
        chunk = grow(arena, need);
    if (chunk == NULL) {
        arena->exhausted = true;
        return NULL;
    }
    struct header *header = (struct header *)(void *)(chunk->bytes + chunk->used);
    chunk->used += need;
    header->size = size;
    return header + 1;
}

static void keep(void *data, void *allocation) {
    (void)data;
    (void)allocation;
}

void rpc_arena_init(struct rpc_arena *arena, size_t limit) {
    *arena = (struct rpc_arena){.allocator = {allocate, keep, arena}, .limit = limit};
}

static void free_until(struct rpc_arena *arena, const struct rpc_arena_chunk *stop) {
    while (arena->chunks != stop) {
        struct rpc_arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->older;
        arena->total -= chunk->size;
        free(chunk);
    }
}

void rpc_arena_done(struct rpc_arena *arena) {
    free_until(arena, NULL);
}

void rpc_arena_clear(struct rpc_arena *arena) {
    struct rpc_arena_chunk *oldest = arena->chunks;
    while (oldest != NULL && oldest->older != NULL)
        oldest = oldest->older;
    if (oldest != NULL && oldest->size > FIRST_CHUNK)
        oldest = NULL; // a large first message must not be held for ever
    free_until(arena, oldest);
    if (oldest != NULL)
        oldest->used = 0;
    arena->exhausted = false;
}

size_t rpc_arena_size_of(const void *allocation) {
    return ((const struct header *)allocation - 1)->size;
}
