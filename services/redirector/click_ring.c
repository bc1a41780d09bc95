// SPDX-License-Identifier: MIT
#include "services/redirector/click_ring.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

struct click_ring {
    // A cache line for each end, and what both only read on that of the producer, who comes by more often.
    _Alignas(CACHE_LINE) _Atomic size_t head; // next to be written
    size_t mask;
    struct click *slots;
    _Alignas(CACHE_LINE) _Atomic size_t tail; // next to be taken
};

struct click_ring *click_ring_create(size_t capacity) {
    size_t size = 1;
    while (size < capacity)
        size *= 2;
    struct click_ring *ring = aligned_alloc(CACHE_LINE, sizeof *ring);
    REQUIRE(ring != NULL);
    memset(ring, 0, sizeof *ring);
    ring->mask = size - 1;
    ring->slots = base_calloc(size, sizeof *ring->slots);
    return ring;
}

void click_ring_free(struct click_ring *ring) {
    if (ring == NULL)
        return;
    free(ring->slots);
    free(ring);
}

bool click_ring_push(struct click_ring *ring, int64_t at_us, const char *code) {
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) > ring->mask)
        return false;
    struct click *slot = &ring->slots[head & ring->mask];
    slot->at_us = at_us;
    memcpy(slot->code, code, strlen(code) + 1);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

size_t click_ring_take(struct click_ring *ring, struct click *out, size_t max) {
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t count = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
    if (count > max)
        count = max;
    for (size_t i = 0; i < count; i++)
        out[i] = ring->slots[(tail + i) & ring->mask];
    atomic_store_explicit(&ring->tail, tail + count, memory_order_release);
    return count;
}

size_t click_ring_count(const struct click_ring *ring) {
    // The tail first: what moves in between can only make the difference too large, never negative.
    size_t tail = atomic_load(&ring->tail);
    size_t count = atomic_load(&ring->head) - tail;
    return count <= ring->mask ? count : ring->mask + 1;
}
