// SPDX-License-Identifier: MIT
// Counters, gauges and histograms for Prometheus (text format 0.0.4), declared in one table per module and
// kept in one registry per process. Series are added at start, bumped without a lock from any thread, and
// summed at scrape: a worker that adds the same series again gets a shard of its own, on its own cache line.
//
// A module declares:
//     #define RING_METRICS(M)
//         M(dropped, COUNTER, "dunlin_clicks_lost_total", "clicks", NULL, "Clicks given up.", "Is Kafka up?")
//     enum ring_metric { RING_METRIC_DROPPED };          // the rows' indices, in order
//     extern const struct metric_family ring_metrics[];  extern const size_t ring_metrics_count;
#pragma once

#include "common/base/base.h"
#include "common/buf/buf.h"
#include <stdbool.h>
#include <stdio.h>

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name; // a counter ends in _total, a histogram of time in _seconds
    enum metric_kind kind;
    const char *unit;
    const char *labels; // names separated by ',', NULL for none; their values must come from a bounded set
    const char *help;   // what it counts
    const char *action; // what to do when it moves
};

#define METRIC_ROW(member, kind, name, unit, labels, help, action)                                           \
    {name, METRIC_##kind, unit, labels, help, action},

struct metric; // one series, or a shard of one; lives as long as the process

// Adds a series: one value (const char *) per label of the family, in order. Thread-safe. Never NULL.
struct metric *metric_add(const struct metric_family *family, ...);
// A series without labels whose value is asked for at scrape, on the scraping thread, under the registry's
// lock: `read` must not add series. `arg` is used until the process ends, or in a service until its parts
// stop.
void metric_add_read(const struct metric_family *family, int64_t (*read)(void *arg), void *arg);

void metric_inc(struct metric *counter);
void metric_count(struct metric *counter, uint64_t more);
void metric_set(struct metric *gauge, int64_t value);
void metric_move(struct metric *gauge, int64_t delta);
void metric_observe_us(struct metric *histogram, int64_t us);
// The value of a counter or gauge shard: for tests and for decisions.
int64_t metric_value(const struct metric *metric);

// All that was added, families sorted by name, each HELP and TYPE once.
void metrics_render(struct buf *out);

// For docs/metrics.md: one row per family.
struct metric_section {
    const char *title;
    const struct metric_family *families;
    size_t count;
};
void metrics_print_markdown(FILE *out, const struct metric_section *sections, size_t count);
