// SPDX-License-Identifier: MIT
// The service's edge to its callers: dunlin.v1.Clicks. The two calls are rpc_server's worker_open and
// worker_close; their `arg` is the struct clicks. It needs Postgres alone: statistics are answered with Kafka
// down.
#pragma once

#include "common/rpc/rpc_server.h"

#define CLICKS_DAYS_MAX 3660
#define CLICKS_DAYS_DEFAULT 30

void clicks_rpc_open(void *arg, unsigned index, struct rpc_worker *out);
void clicks_rpc_close(void *arg, struct rpc_worker *worker);

// The days that a request means on the day `today`: `from` alone runs to today, `to` alone covers 30 days,
// neither is the last 30 days with today. A broken rule is added to `why`.
struct clicks_span {
    bool has_from, has_to;
    int32_t from, to; // both inside
};
MUST_CHECK enum status clicks_span_resolve(struct clicks_span *span, int32_t today, struct problem *why);
