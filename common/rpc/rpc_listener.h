// SPDX-License-Identifier: MIT
// The server's socket: NNG rep on a loopback address, one slot per request that may be held at once, and the
// watch that notices when the listener went deaf.
#pragma once

#include "common/metrics/metrics.h"
#include "common/rpc/rpc_envelope.h"

struct rpc_listener;

// One request between its arrival and its answer.
struct rpc_slot {
    const void *bytes;
    size_t len;
    int64_t received_us;
    struct rpc_slot *next; // the holder's
};

struct rpc_listener_options {
    const char *listen;
    size_t slots;
    // A request arrived; whoever gets the slot answers it once. On an NNG thread: it must not block.
    void (*arrived)(void *arg, struct rpc_slot *slot);
    void *arg;
};

MUST_CHECK enum status rpc_listener_open(
    const struct rpc_listener_options *options, struct rpc_listener **out, struct problem *why);
// No slot may be held by then. Answers that are under way get a moment to leave.
void rpc_listener_close(struct rpc_listener *listener);
uint16_t rpc_listener_port(const struct rpc_listener *listener);

// Sends the answer and lets the slot receive again. Any thread, does not block.
void rpc_slot_answer(struct rpc_slot *slot, const Dunlin__V1__RpcResponse *answer);
