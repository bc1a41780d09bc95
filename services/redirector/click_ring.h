// SPDX-License-Identifier: MIT
// The clicks of one worker on their way to the sender: a bounded ring with one producer and one consumer, and
// no lock. A full ring drops the new click and says so.
#pragma once

#include "common/codes/codes.h"

struct click_ring;

struct click {
    int64_t at_us; // instant
    char code[CODES_TEXT];
};

// `capacity` is rounded up to a power of two.
struct click_ring *click_ring_create(size_t capacity);
void click_ring_free(struct click_ring *ring); // NULL is fine
// The worker's thread. False where the ring is full.
bool click_ring_push(struct click_ring *ring, int64_t at_us, const char *code);
// The sender's thread: takes up to `max` of the oldest.
size_t click_ring_take(struct click_ring *ring, struct click *out, size_t max);
// Any thread; a moment's truth.
size_t click_ring_count(const struct click_ring *ring);
