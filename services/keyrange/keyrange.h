// SPDX-License-Identifier: MIT
// What the service is made of: its settings, its metrics and its state.
#pragma once

#include "common/config/config.h"
#include "common/identity/identity.h"
#include "common/metrics/metrics.h"
#include "common/parts/parts.h"
#include "services/keyrange/memory.h"

#define KEYRANGE_CONFIG(F)                                                                                   \
    F(TEXT, listen, "KEYRANGE_LISTEN", "tcp://127.0.0.1:7001", 1, 255, "address", 0,                         \
        "Where RPC is served. Loopback only, until peers authenticate.")                                     \
    F(TEXT, pg_url, "PG_URL", "", 1, 4096, "URL", CONFIG_SECRET | CONFIG_REQUIRED,                           \
        "Postgres, as role dunlin_keyrange.")                                                                \
    F(INT, workers, "KEYRANGE_WORKERS", "2", 1, 64, "threads", 0,                                            \
        "Threads that serve RPC, each with a Postgres connection of its own.")                               \
    F(INT, queue, "KEYRANGE_QUEUE", "64", 1, 4096, "requests", 0,                                            \
        "Requests that may wait or run; more are refused with QUEUE_FULL.")                                  \
    F(TEXT, memory, "KEYRANGE_MEMORY", "", 0, 4095, "path", 0,                                               \
        "A small file that remembers counters and ceilings across restarts, on a disk that isn't "           \
        "Postgres'.")

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
        "Jumps of all counters because the database was another than before, or behind what is remembered.", \
        "Expected once after a restore or fail-over. Otherwise: find out who swaps the database.")           \
    M(ceilings, GAUGE, "dunlin_keyrange_ceiling", "counter values", "slot",                                  \
        "The slot's published ceiling when it was last asked for; 0: the slot is not used.",                 \
        "Some 2^31 above the counter. Compare the keyranges: they must tell the same.")                      \
    M(not_ready, COUNTER, "dunlin_keyrange_ceiling_waits_total", "claims", NULL,                             \
        "Claims refused because their slot's ceiling was not public for 30 s yet.",                          \
        "Expected when a slot is first used, and after a jump. Otherwise: is Postgres' clock right?")        \
    M(far_behind, COUNTER, "dunlin_keyrange_far_behind_total", "requests", NULL,                             \
        "Requests refused because what is remembered is more than 2^33 past the database's counters.",       \
        "Is it the right database? Then advance its counters by hand: docs/operations.md.")                  \
    M(memory_failures, COUNTER, "dunlin_keyrange_memory_failures_total", "writes", NULL,                     \
        "Writes of KEYRANGE_MEMORY that failed.", "Look at that disk.")

extern const struct metric_family keyrange_metrics[];
extern const size_t keyrange_metrics_count;
enum keyrange_metric {
    KEYRANGE_METRIC_BLOCKS,
    KEYRANGE_METRIC_VALUES,
    KEYRANGE_METRIC_JUMPS,
    KEYRANGE_METRIC_CEILINGS,
    KEYRANGE_METRIC_NOT_READY,
    KEYRANGE_METRIC_FAR_BEHIND,
    KEYRANGE_METRIC_MEMORY_FAILURES,
};

struct keyrange {
    struct keyrange_config config;
    struct parts_postgres postgres;
    struct memory *memory;
    struct parts_rpc rpc;
    struct metric *blocks[KEYRANGE_SLOTS];
    struct metric *values[KEYRANGE_SLOTS];
    struct metric *ceilings[KEYRANGE_SLOTS];
    struct metric *jumped;
    struct metric *not_ready;
    struct metric *far_behind;
    struct metric *memory_failures;
    struct identity identity; // of the watch's connection
};

// Adds the metrics' series and reads the memory; the configuration is loaded already.
MUST_CHECK enum status keyrange_init(struct keyrange *keyrange, struct problem *why);
void keyrange_done(struct keyrange *keyrange);
// The options of every Postgres connection of this service; `identity` is that connection's.
struct db_options keyrange_db_options(const struct keyrange *keyrange, struct identity *identity);
