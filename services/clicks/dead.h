// SPDX-License-Identifier: MIT
// The dead-letter topic: what can't be counted is kept there before the position moves past it. A letter may
// arrive more than once, never not at all. One thread.
#pragma once

#include "common/bus/bus.h"
#include "common/status/status.h"
#include <stdbool.h>

struct dead;

// No I/O. INVALID_ARGUMENT for bad brokers or a bad topic.
MUST_CHECK enum status dead_open(
    const char *brokers, const char *topic, struct dead **out, struct problem *why);
void dead_close(struct dead *dead); // NULL is fine

// Sends a letter; what became of it, dead_confirm() tells. More than the topic takes is cut to
// DEAD_BYTES_MAX.
#define DEAD_BYTES_MAX BUS_RECORD_MAX
void dead_put(struct dead *dead, const void *bytes, size_t len);
// True when all letters since the last call were delivered. On false they must be put again.
MUST_CHECK bool dead_confirm(struct dead *dead, int timeout_ms);
