// SPDX-License-Identifier: MIT
// One address of a peer: an NNG req socket with one dialer, a pool of contexts, and its ping. It connects and
// reconnects in the background. A peer that stopped answering is not mended but closed and made anew by its
// owner.
#pragma once

#include "common/rpc/rpc_envelope.h"

struct rpc_peer;

enum rpc_peer_state {
    RPC_PEER_DOWN,        // not connected, or pings are missing
    RPC_PEER_NOT_SERVING, // answers its pings with NOT_SERVING
    RPC_PEER_SERVING,
};

enum rpc_sent {
    RPC_SENT_ANSWERED,
    RPC_SENT_NOTHING, // it surely did not run: the request never left
    RPC_SENT_LOST,    // it may have run: the connection went, or the peer was given up
    RPC_SENT_LATE,    // it may have run: no answer by the deadline
};

// The bytes of an answer.
struct rpc_answer {
    const void *bytes;
    size_t len;
    void *message; // owned
};
void rpc_answer_done(struct rpc_answer *answer); // a zeroed one is fine

// `changed` is called on an NNG thread after each change of state and each ping; it must not block nor call
// back here.
struct rpc_peer *rpc_peer_open(const char *address, void (*changed)(void *arg), void *arg);
// No call may be under way.
void rpc_peer_close(struct rpc_peer *peer);

// Any thread, blocks until the deadline at most.
enum rpc_sent rpc_peer_call(struct rpc_peer *peer, const Dunlin__V1__RpcRequest *request, int64_t deadline_us,
    struct rpc_answer *out);
// Ends the calls that are under way with RPC_SENT_LOST, as far as they got; ask again until none is left.
void rpc_peer_abort(struct rpc_peer *peer);

// Starts a ping; false where there is no connection, or another ping.
bool rpc_peer_ping(struct rpc_peer *peer);
enum rpc_peer_state rpc_peer_state(const struct rpc_peer *peer);
bool rpc_peer_is_connected(const struct rpc_peer *peer);
// Pings in a row that got no answer, nor did anything else.
unsigned rpc_peer_misses(const struct rpc_peer *peer);
