// SPDX-License-Identifier: MIT
// The addresses of one peer service: which there are, which of them answer, and which one the next call goes
// to. A keeper thread pings, makes sockets anew and follows the name service; calls never wait for it once it
// has begun.
#pragma once

#include "common/rpc/rpc_peer.h"
#include "common/rpc/rpc_resolve.h"

struct rpc_pool;

// An address in use by a call.
struct rpc_member {
    struct rpc_peer *peer;
    uint64_t id; // never used twice
};

// What an earlier attempt of the same call learned; zeroed at first.
struct rpc_avoid {
    uint64_t id; // not this one where there is another
    bool never;  // not this one at all
};

struct rpc_pool *rpc_pool_open(const char *name, const struct rpc_targets *targets);
void rpc_pool_close(struct rpc_pool *pool); // nothing may be borrowed

// The less busy of two serving addresses. NULL at once where none is up; only a pool that has just been
// opened gets a moment to connect, until the deadline at most.
struct rpc_member *rpc_pool_borrow(struct rpc_pool *pool, const struct rpc_avoid *avoid, int64_t deadline_us);
void rpc_pool_give_back(struct rpc_pool *pool, struct rpc_member *member);

bool rpc_pool_is_up(struct rpc_pool *pool);
// Cheap and good enough to spread load and retries; not for secrets.
uint64_t rpc_pool_random(struct rpc_pool *pool);
