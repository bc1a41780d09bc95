// SPDX-License-Identifier: MIT
// What the blocking connection and the pipelined one share. For this folder alone.
#pragma once

#include "common/cache/cache.h"

#define CACHE_URL_RULE "The Redis URL is not of the form redis://[:password@]host[:port][/database]."

struct redisReply;

// OK for +PONG and the like, an integer or a string; NOT_FOUND for nil; UNAVAILABLE for an error or anything
// else.
enum status cache_status_of(const struct redisReply *reply);
// The pause before the next attempt: from 100 ms, doubled to 2 s, the last half of it random, so that a fleet
// does not come back as one. `backoff_us` is the state; 0 starts over.
int64_t cache_backoff_us(int64_t *backoff_us);
