// SPDX-License-Identifier: MIT
// From the bytes of a request to an answer: checks, finds the method, sets the context, calls the handler.
// One per worker thread, since its services are; one without a worker may answer pings from any thread. Knows
// no sockets.
#pragma once

#include "common/rpc/rpc_envelope.h"
#include "common/rpc/rpc_server.h"
#include "common/rpc/rpc_stats.h"

struct rpc_dispatch {
    const struct rpc_worker *worker;
    int64_t timeout_us;         // rpc_server_options.timeout_us
    bool (*serving)(void *arg); // for Health.Check
    void *arg;
    struct metric *malformed;
    struct rpc_method_stats unknown;
    struct rpc_method_stats health;
    struct rpc_method_stats *methods[RPC_SERVICES_MAX]; // by service, then by method
};

// init/done: the struct is the caller's and must not move in between. `worker` may be NULL: then there is
// Health alone.
void rpc_dispatch_init(struct rpc_dispatch *dispatch, const struct rpc_worker *worker, int64_t timeout_us,
    bool (*serving)(void *arg), void *arg);
void rpc_dispatch_done(struct rpc_dispatch *dispatch);

// `arena` is empty and takes what is unpacked. `response` is initialized; the caller sends it and releases
// it.
void rpc_dispatch_run(struct rpc_dispatch *dispatch, struct rpc_arena *arena, const void *bytes, size_t len,
    int64_t received_us, struct rpc_response *response);

// True for a request that looks like a well-formed Health.Check, which may be run at once instead of being
// queued.
bool rpc_dispatch_is_ping(const void *bytes, size_t len);
