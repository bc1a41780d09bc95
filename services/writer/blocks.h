// SPDX-License-Identifier: MIT
// The writer's counter values: the block in use, the next one claimed before the first is used up, and sizes
// that adapt so that a block lasts minutes. Losing one wastes codes and nothing else.
//
// A thread of its own claims; takers never wait for a keyrange service that is known to be away.
#pragma once

#include "common/codes/codes.h"
#include "common/metrics/metrics.h"
#include "common/status/status.h"
#include <protobuf-c/protobuf-c.h>

struct blocks;

struct blocks_options {
    ProtobufCService *keyrange; // a dunlin.v1.Keyrange, remote or not
    unsigned slot;
    uint8_t fingerprint[CODES_FINGERPRINT];
    uint64_t size_min;
    // The counters belong to another permutation key: this process must not go on. On the claiming thread.
    void (*mismatched)(void *arg);
    void *arg;
    struct metric *claimed; // counter of blocks
    struct metric *left;    // gauge of values
};

#define BLOCKS_SIZE_MAX (UINT64_C(1) << 24)
#define BLOCKS_LAST_US (180 * US_PER_S) // how long a block should last

struct blocks *blocks_start(const struct blocks_options *options);
void blocks_stop(struct blocks *blocks); // NULL is fine

// The next value. UNAVAILABLE, reason KEYRANGE_UNAVAILABLE, or CEILING_NOT_READY where the slot is used for
// the first time or its counter jumped far: none is left and none can be had now; waits at most half a second
// for a claim that is under way. Any thread.
MUST_CHECK enum status blocks_take(
    struct blocks *blocks, int64_t deadline_us, uint64_t *counter, struct problem *why);
// The authority says that `counter` is not ours, or its code was taken: forget every value held.
void blocks_drop(struct blocks *blocks);
// Values are held: creates can go on.
bool blocks_is_ready(struct blocks *blocks);

// The next block's size after one of `size` lasted `lasted_us`; within [size_min, BLOCKS_SIZE_MAX]. Pure.
uint64_t blocks_next_size(uint64_t size, int64_t lasted_us, uint64_t size_min);
