// SPDX-License-Identifier: MIT
// What the service is made of: its settings, its metrics and its state.
#pragma once

#include "common/config/config.h"
#include "common/db/db_watch.h"
#include "common/identity/identity.h"
#include "common/metrics/metrics.h"
#include "common/rpc/rpc_server.h"

#define KEYRANGE_CONFIG(F)                                                                                   \
    F(TEXT, listen, "KEYRANGE_LISTEN", "tcp://127.0.0.1:7001", 1, 255, "address", 0,                         \
        "Where RPC is served. Loopback only, until peers authenticate.")                                     \
    F(TEXT, pg_url, "PG_URL", "", 1, 4096, "URL", CONFIG_SECRET | CONFIG_REQUIRED,                           \
        "Postgres, as role dunlin_keyrange.")                                                                \
    F(INT, workers, "KEYRANGE_WORKERS", "2", 1, 64, "threads", 0,                                            \
        "Threads that serve RPC, each with a Postgres connection of its own.")                               \
    F(INT, queue, "KEYRANGE_QUEUE", "64", 1, 4096, "requests", 0,                                            \
        "Requests that may wait or run; more are refused with QUEUE_FULL.")

struct keyrange_config {
    KEYRANGE_CONFIG(CONFIG_MEMBER)
};
extern const struct config_field keyrange_config_fields[];
extern const size_t keyrange_config_count;

#define KEYRANGE_METRICS(M)                                                                                  \
    M(blocks, COUNTER, "dunlin_keyrange_blocks_total", "blocks", "slot", "Blocks handed out.",               \
        "A steep rise: writers restart often, or their block size is too small for the load.")               \
    M(values, COUNTER, "dunlin_keyrange_values_total", "counter values", "slot",                             \
        "Counter values handed out; a slot holds 440,201,825,776 of 7 characters.",                          \
        "Compare with links created: the rest is lost in restarts.")                                         \
    M(jumps, COUNTER, "dunlin_keyrange_jumps_total", "jumps", NULL,                                          \
        "Jumps of all counters because the database was another than before.",                               \
        "Expected once after a restore or fail-over. Otherwise: find out who swaps the database.")

extern const struct metric_family keyrange_metrics[];
extern const size_t keyrange_metrics_count;
enum keyrange_metric { KEYRANGE_METRIC_BLOCKS, KEYRANGE_METRIC_VALUES, KEYRANGE_METRIC_JUMPS };

#define KEYRANGE_SLOTS 7 // slots that have a counter; the eighth is for codes made otherwise

struct keyrange {
    struct keyrange_config config;
    struct db_watch *watch;
    struct rpc_server *server;
    struct metric *blocks[KEYRANGE_SLOTS];
    struct metric *values[KEYRANGE_SLOTS];
    struct metric *jumped;
    struct identity identity; // of the watch's connection
};

// Adds the metrics' series; the configuration is loaded already.
void keyrange_init(struct keyrange *keyrange);
// The options of every Postgres connection of this service; `identity` is that connection's.
struct db_options keyrange_db_options(const struct keyrange *keyrange, struct identity *identity);
