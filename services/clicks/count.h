// SPDX-License-Identifier: MIT
// Counting: from records of the stream to counts in Postgres, each record once. Per assigned partition it
// keeps the stored position, the next offset and the fold between the two; a fold and its position are
// applied in one transaction that compares the position first, so that of two consumers of one partition one
// does nothing.
//
// Belongs to the consumer thread.
#pragma once

#include "common/bus/bus.h"
#include "common/log/log.h"
#include "services/clicks/clicks.h"
#include "services/clicks/dead.h"
#include "services/clicks/fold.h"
#include "services/clicks/pause.h"

struct share; // what is ours of one partition

struct count {
    struct db *db;
    struct dead *dead;
    struct pause *pause;
    struct clicks_series *series;
    const char *topic;
    char *stream; // the cluster's id
    struct batch_reader reader;
    struct share *shares;
    size_t share_count;
    size_t share_cap;
    uint64_t clicks;  // in all folds
    uint64_t letters; // dead letters put and not confirmed yet
    struct log_limit limit;
};

// init/done: the struct is the caller's and must not move in between; what the members above `stream` point
// at is too.
void count_init(struct count *count, struct db *db, struct dead *dead, struct pause *pause,
    struct clicks_series *series, const char *topic);
void count_done(struct count *count);

// Begins with a partition: *offset is where to read, -1 for the beginning. Failures are the database's.
MUST_CHECK enum status count_begin(
    struct count *count, const char *stream, int32_t partition, int64_t *offset);
// Nothing is ours any more; folds that were not applied are dropped, for whoever has the partitions next.
void count_forget(struct count *count);

void count_record(struct count *count, const struct bus_record *record);
// The log does not hold what comes next; it goes on at `offset`. Apply before the next record.
void count_jump(struct count *count, int32_t partition, int64_t offset);
// Applies all folds. Returns when each is applied, given up for another consumer's, or cut short by the stop
// sign; meanwhile it waits for Postgres and Kafka as long as it takes. May move positions of `bus` back.
void count_apply(struct count *count, struct bus_consumer *bus);
