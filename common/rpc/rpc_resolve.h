// SPDX-License-Identifier: MIT
// From targets ("tcp://host:port") to addresses. NNG would take the first address of a name only, so we ask
// ourselves.
#pragma once

#include "common/status/status.h"

#define RPC_ADDRESS_MAX 64 // "127.0.0.1:7001", "[::1]:7001"
#define RPC_TARGETS_MAX 8
#define RPC_ADDRESSES_MAX 32
#define RPC_HOST_MAX 253

struct rpc_target {
    char host[RPC_HOST_MAX + 1];
    uint16_t port;
    bool numeric; // its host is an address, so that resolving it asks nobody
};

struct rpc_targets {
    size_t count;
    struct rpc_target items[RPC_TARGETS_MAX];
};

struct rpc_addresses {
    bool complete; // every target was found
    size_t count;
    char items[RPC_ADDRESSES_MAX][RPC_ADDRESS_MAX];
};

// A list separated by ','. INVALID_ARGUMENT for what is no target. No I/O.
MUST_CHECK enum status rpc_resolve_parse(const char *text, struct rpc_targets *out, struct problem *why);
bool rpc_resolve_is_numeric(const struct rpc_targets *targets);
// All addresses of all targets, each once. Blocks for as long as the name service takes.
void rpc_resolve(const struct rpc_targets *targets, struct rpc_addresses *out);
// The address to listen on; INVALID_ARGUMENT unless it is numeric (or "localhost") and loopback. Port 0 is
// fine.
MUST_CHECK enum status rpc_resolve_loopback(
    const char *listen, char out[RPC_ADDRESS_MAX], struct problem *why);
