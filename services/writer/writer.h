// SPDX-License-Identifier: MIT
// What the service is made of: its settings, its metrics and its state.
#pragma once

#include "common/codes/codes.h"
#include "common/config/config.h"
#include "common/identity/identity.h"
#include "common/metrics/metrics.h"
#include "common/parts/parts.h"
#include "common/rpc/rpc_client.h"
#include "common/target/target.h"
#include "services/writer/blocks.h"

#define WRITER_CONFIG(F)                                                                                     \
    F(TEXT, listen, "WRITER_LISTEN", "tcp://127.0.0.1:7002", 1, 255, "address", 0,                           \
        "Where RPC is served. Loopback only, until peers authenticate.")                                     \
    F(TEXT, pg_url, "PG_URL", "", 1, 4096, "URL", CONFIG_SECRET | CONFIG_REQUIRED,                           \
        "Postgres, as role dunlin_writer.")                                                                  \
    F(TEXT, redis_url, "REDIS_URL", "", 0, 4096, "URL", CONFIG_SECRET,                                       \
        "Redis: redis://[:PASSWORD@]HOST:PORT[/DB]. Empty: the fleet runs without it.")                      \
    F(TEXT, keyrange, "KEYRANGE_TARGET", "tcp://127.0.0.1:7001", 1, 4096, "addresses", 0,                    \
        "The keyrange services, separated by commas.")                                                       \
    F(TEXT, permutation_key, "PERMUTATION_KEY", "", 32, 32, "hex digits", CONFIG_SECRET | CONFIG_REQUIRED,   \
        "The key of the permutation behind the codes. Never change it: it belongs to the counters.")         \
    F(TEXT, public_url, "PUBLIC_URL", "http://127.0.0.1:8080", 8, 300, "URL", 0,                             \
        "What short URLs begin with: scheme, host and port.")                                                \
    F(TEXT, allowed_hosts, "ALLOWED_HOSTS", "", 0, 4096, "hosts", 0,                                         \
        "Our other short hosts, separated by commas; targets on them are refused.")                          \
    F(INT, slot, "REGION_SLOT", "0", 0, 6, "slot", 0,                                                        \
        "The region's slot: its counter makes this writer's codes.")                                         \
    F(INT, block_min, "BLOCK_SIZE_MIN", "1000", 1, 16777216, "counter values", 0,                            \
        "The first block's size; later ones adapt so that one lasts minutes.")                               \
    F(INT, workers, "WRITER_WORKERS", "8", 1, 64, "threads", 0,                                              \
        "Threads that serve RPC, each with a Postgres connection of its own.")                               \
    F(INT, queue, "WRITER_QUEUE", "256", 1, 4096, "requests", 0,                                             \
        "Requests that may wait or run; more are refused with QUEUE_FULL.")

struct writer_config {
    WRITER_CONFIG(CONFIG_MEMBER)
};
extern const struct config_field writer_config_fields[];
extern const size_t writer_config_count;

#define WRITER_METRICS(M)                                                                                    \
    M(created, COUNTER, "dunlin_links_created_total", "links", "source", "Links created.",                   \
        "Tells the load.")                                                                                   \
    M(collisions, COUNTER, "dunlin_code_collisions_total", "codes", "source",                                \
        "Generated codes that were taken already.",                                                          \
        "For source range this must stay 0: the counter went backwards. See docs/operations.md.")            \
    M(unknown, COUNTER, "dunlin_create_outcome_unknown_total", "creates", NULL,                              \
        "Commits whose outcome was unknown and that were asked for again.",                                  \
        "Look at Postgres' connections.")                                                                    \
    M(jumps, COUNTER, "dunlin_writer_jumps_total", "jumps", NULL,                                            \
        "Jumps of all counters that this writer made because the database was another than before.",         \
        "As dunlin_keyrange_jumps_total.")                                                                   \
    M(cache_failures, COUNTER, "dunlin_cache_write_failures_total", "writes", NULL,                          \
        "Writes to Redis after a commit that failed; the first redirect fills the cache instead.",           \
        "Is Redis reachable from the writers?")                                                              \
    M(blocks, COUNTER, "dunlin_blocks_claimed_total", "blocks", NULL, "Blocks of counter values claimed.",   \
        "A steep rise beside steady creates: blocks are being dropped.")                                     \
    M(values_left, GAUGE, "dunlin_block_values_left", "counter values", NULL,                                \
        "Counter values that this writer still holds.", "At 0 creates fail: is keyrange reachable?")

extern const struct metric_family writer_metrics[];
extern const size_t writer_metrics_count;
enum writer_metric {
    WRITER_METRIC_CREATED,
    WRITER_METRIC_COLLISIONS,
    WRITER_METRIC_UNKNOWN,
    WRITER_METRIC_JUMPS,
    WRITER_METRIC_CACHE_FAILURES,
    WRITER_METRIC_BLOCKS,
    WRITER_METRIC_VALUES_LEFT,
};

struct writer {
    struct writer_config config;
    struct codes_key key;
    struct target_rules rules;
    char public_url[304]; // without a slash at its end
    struct parts_postgres postgres;
    struct parts_rpc rpc;
    struct identity identity; // of the watch's connection
    struct rpc_client *keyrange;
    struct blocks *blocks;
    struct metric *created_range, *created_alias;
    struct metric *collisions_range;
    struct metric *unknown;
    struct metric *jumped;
    struct metric *cache_failures;
};

// Derives the state from the loaded configuration; FAILED_PRECONDITION names the setting that is no good.
MUST_CHECK enum status writer_init(struct writer *writer, struct problem *why);
void writer_done(struct writer *writer);
// The options of every Postgres connection of this service; `identity` is that connection's.
struct db_options writer_db_options(const struct writer *writer, struct identity *identity);
