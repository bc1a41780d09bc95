// SPDX-License-Identifier: MIT
// What the service is made of: its settings, its metrics and its state.
#pragma once

#include "common/config/config.h"
#include "common/metrics/metrics.h"
#include "common/parts/parts.h"
#include "services/clicks/batch.h"

#include <stdatomic.h>

#define CLICKS_CONFIG(F)                                                                                     \
    F(TEXT, listen, "CLICKS_LISTEN", "tcp://127.0.0.1:7003", 1, 255, "address", 0,                           \
        "Where RPC is served. Loopback only, until peers authenticate.")                                     \
    F(TEXT, pg_url, "PG_URL", "", 1, 4096, "URL", CONFIG_SECRET | CONFIG_REQUIRED,                           \
        "Postgres, as role dunlin_clicks.")                                                                  \
    F(INT, workers, "CLICKS_WORKERS", "2", 1, 64, "threads", 0,                                              \
        "Threads that serve RPC, each with a Postgres connection of its own.")                               \
    F(INT, queue, "CLICKS_QUEUE", "64", 1, 4096, "requests", 0,                                              \
        "Requests that may wait or run; more are refused with QUEUE_FULL.")                                  \
    F(TEXT, brokers, "KAFKA_BROKERS", "", 1, 4096, "host:port,…", CONFIG_REQUIRED,                           \
        "Kafka brokers to ask first for all the others.")                                                    \
    F(TEXT, topic, "CLICKS_TOPIC", "clicks", 1, 200, "topic", 0,                                             \
        "The click stream. Its dead letters go to the topic of that name with \".dead\" behind. Both are "   \
        "made where they are missing.")                                                                      \
    F(TEXT, group, "CLICKS_GROUP", "dunlin-clicks", 1, 200, "group", 0,                                      \
        "The consumer group, whose members share the partitions.")                                           \
    F(INT, partitions, "CLICKS_PARTITIONS", "8", 1, 10000, "partitions", 0,                                  \
        "Of the click stream, where it is made.")                                                            \
    F(INT, replication, "CLICKS_REPLICATION", "1", 1, 32, "brokers", 0,                                      \
        "That keep each record, where a topic is made.")                                                     \
    F(INT, retention_h, "CLICKS_RETENTION_HOURS", "168", 1, 876000, "hours", 0,                              \
        "That records are kept, where a topic is made.")                                                     \
    F(INT, fold_max, "CLICKS_FOLD_MAX", "10000", 1, 1000000, "clicks", 0,                                    \
        "Clicks that are folded into one transaction a partition before they are applied.")                  \
    F(INT, fold_ms, "CLICKS_FOLD_MS", "200", 1, 5000, "ms", 0,                                               \
        "The longest that a click waits for others before it is applied.")

struct clicks_config {
    CLICKS_CONFIG(CONFIG_MEMBER)
};
extern const struct config_field clicks_config_fields[];
extern const size_t clicks_config_count;

#define CLICKS_METRICS(M)                                                                                    \
    M(records, COUNTER, "dunlin_clicks_records_total", "records", NULL,                                      \
        "Records of the stream that the position moved past.",                                               \
        "Standing still with lag: read the log; is Postgres or Kafka away?")                                 \
    M(counted, COUNTER, "dunlin_clicks_counted_total", "clicks", NULL, "Clicks added to clicks_daily.",      \
        "Compare with the redirectors' clicks.")                                                             \
    M(dead, COUNTER, "dunlin_clicks_dead_letters_total", "letters", "reason",                                \
        "What went to the dead-letter topic: whole records (record), or clicks with a bad code, time or "    \
        "text.",                                                                                             \
        "Read the topic: who writes such records? Clocks that are off show as time.")                        \
    M(applies, COUNTER, "dunlin_clicks_applies_total", "transactions", "outcome",                            \
        "Folds by what became of them: applied; lost (another consumer had moved the position); failed "     \
        "(tried again).",                                                                                    \
        "lost: expected around a rebalance only. failed: is Postgres away?")                                 \
    M(apply_time, HISTOGRAM, "dunlin_clicks_apply_seconds", "seconds", NULL,                                 \
        "Time of one clicks_apply transaction.", "Rising: look at Postgres, or at CLICKS_FOLD_MAX.")         \
    M(letters_failed, COUNTER, "dunlin_clicks_dead_letters_failed_total", "attempts", NULL,                  \
        "Times that dead letters could not be delivered and their records were read again.",                 \
        "Is the dead-letter topic there and writable?")                                                      \
    M(lag, GAUGE, "dunlin_clicks_lag", "records", NULL, "Records of our partitions that were not read yet.", \
        "Rising for long: start more clicks processes, up to one a partition.")                              \
    M(age, GAUGE, "dunlin_clicks_apply_age_seconds", "seconds", NULL,                                        \
        "Since the last fold was applied, or since the start.", "With lag: counting stands still.")

extern const struct metric_family clicks_metrics[];
extern const size_t clicks_metrics_count;

struct clicks_series {
    struct metric *records, *counted, *applied, *lost, *failed, *apply_time, *letters_failed, *lag;
    struct metric *dead[BATCH_FAULT_COUNT];
    _Atomic int64_t applied_at_us; // CLOCK_MONOTONIC
};

struct consume;

struct clicks {
    struct clicks_config config;
    struct clicks_series series;
    struct parts_postgres postgres;
    struct parts_rpc rpc;
    struct consume *consume;
};

// Adds the metrics' series; the configuration is loaded already.
void clicks_init(struct clicks *clicks);
// The options of every Postgres connection of this service.
struct db_options clicks_db_options(const struct clicks_config *config);
