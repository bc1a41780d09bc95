// SPDX-License-Identifier: MIT
// The metrics of both ends. Series of calls are bounded: services and methods come from descriptors alone.
#pragma once

#include "common/metrics/metrics.h"
#include "common/status/status.h"

enum {
    RPC_SERVER_HANDLED,
    RPC_SERVER_SECONDS,
    RPC_SERVER_QUEUE,
    RPC_SERVER_REFUSED,
    RPC_SERVER_MALFORMED,
    RPC_SERVER_REBUILDS,
};

enum {
    RPC_CLIENT_HANDLED,
    RPC_CLIENT_SECONDS,
    RPC_CLIENT_PEER_UP,
    RPC_CLIENT_REBUILDS,
    RPC_CLIENT_RETRIES,
};

// One method's series; a code gets its series when it first happens. Any thread.
struct rpc_method_stats {
    const struct metric_family *handled;
    const char *service;
    const char *method;
    struct metric *seconds;
    struct metric *_Atomic codes[STATUS_COUNT];
};

// `families`: handled, then seconds. The names must outlive it.
void rpc_method_stats_init(struct rpc_method_stats *stats, const struct metric_family families[2],
    const char *service, const char *method);
void rpc_method_stats_count(struct rpc_method_stats *stats, enum status status, int64_t took_us);
