// SPDX-License-Identifier: MIT
// Kafka, as the click path needs it: a producer that never blocks, and a consumer in a group whose positions
// come from elsewhere. The only includer of librdkafka.
#pragma once

#include "common/base/base.h"
#include "common/metrics/metrics.h"
#include "common/status/status.h"
#include <stdbool.h>

extern const struct metric_family bus_metrics[];
extern const size_t bus_metrics_count;

#define BUS_RECORD_MAX 1000000U // bytes

// ---- producer: idempotent, acks=all, compressed. One thread.
struct bus_producer;

// `delivered` is called from bus_producer_poll() or _flush() once per accepted record.
typedef void bus_delivered(void *arg, void *record_arg, enum status status);
struct bus_producer_options {
    const char *brokers; // "host:port,host:port"
    const char *topic;
    const char *client; // client.id
    int64_t linger_ms;  // how long a batch may wait for company
    size_t queue_max;   // records not yet delivered
    bus_delivered *delivered;
    void *arg;
};
MUST_CHECK enum status bus_producer_open(
    const struct bus_producer_options *options, struct bus_producer **out, struct problem *why);
// What is not delivered yet is dropped (reported first, as CANCELLED). NULL is fine.
void bus_producer_close(struct bus_producer *producer);

// Partitions of the topic as the brokers last said, 0 while they are unknown. Asked for by
// bus_producer_poll(), within its time-out: at first, and every 10 s.
int32_t bus_producer_partitions(struct bus_producer *producer);
// Copies the bytes. RESOURCE_EXHAUSTED: queue full; UNAVAILABLE: the producer hit a fatal error, open
// another; INVALID_ARGUMENT: no such partition, or over BUS_RECORD_MAX. Then `delivered` is never called for
// it. A delivery report says the same by the same words; CANCELLED: the producer was closed;
// DEADLINE_EXCEEDED: undelivered for 5 minutes.
MUST_CHECK enum status bus_produce(
    struct bus_producer *producer, int32_t partition, const void *bytes, size_t len, void *record_arg);
// Serves delivery reports for at most timeout_ms.
void bus_producer_poll(struct bus_producer *producer, int timeout_ms);
// Waits until all is delivered or the time is over; returns how many records are left.
size_t bus_producer_flush(struct bus_producer *producer, int timeout_ms);
// A broker answered last. Any thread.
bool bus_producer_is_up(const struct bus_producer *producer);

// ---- consumer: one topic, one group, the eager assignor, no automatic commit. One thread.
struct bus_consumer;

struct bus_record {
    int32_t partition;
    int64_t offset;
    int64_t timestamp_us; // the record's own, 0 where unknown
    const void *bytes;    // NULL for a record without a value
    size_t len;
};

struct bus_consumer_options {
    const char *brokers;
    const char *topic;
    const char *group;
    const char *client;
    // Where to begin with a partition that was just assigned: sets *offset to the next offset wanted, or to
    // -1 for the beginning. On a failure the assignment is tried again later. Called from
    // bus_consumer_poll().
    enum status (*position)(void *arg, int32_t partition, int64_t *offset);
    // Nothing that was read before is ours any more: drop all that is held of it. Called from
    // bus_consumer_poll() and _close(), before the positions are asked for again.
    void (*revoked)(void *arg);
    void *arg;
};
MUST_CHECK enum status bus_consumer_open(
    const struct bus_consumer_options *options, struct bus_consumer **out, struct problem *why);
void bus_consumer_close(struct bus_consumer *consumer); // leaves the group; NULL is fine

// Waits at most timeout_ms for a record. OK: `out` is valid until the next call. NOT_FOUND: nothing came.
// OUT_OF_RANGE: the position of out->partition is not in the log any more; reading goes on from the earliest
// record, at out->offset. UNAVAILABLE: no broker; keep calling. INTERNAL: fatal, open another consumer.
MUST_CHECK enum status bus_consumer_poll(
    struct bus_consumer *consumer, int timeout_ms, struct bus_record *out);
// Goes to an offset of a partition that is still assigned (after a lost compare-and-set), -1 for the
// beginning. The other partitions go on where they are. NOT_FOUND: it is not ours any more.
MUST_CHECK enum status bus_consumer_seek(struct bus_consumer *consumer, int32_t partition, int64_t offset);
// Tells other people's tools how far we are; never where we begin.
void bus_consumer_commit(struct bus_consumer *consumer, int32_t partition, int64_t next_offset);
// A broker answered last. Any thread.
bool bus_consumer_is_up(const struct bus_consumer *consumer);
// Records in our partitions that were not read yet, as far as the last answers told.
int64_t bus_consumer_lag(struct bus_consumer *consumer);
// The cluster's id, part of a stored position's key; NULL while unknown. Waits at most timeout_ms.
const char *bus_consumer_cluster(struct bus_consumer *consumer, int timeout_ms);

// Makes a topic where there is none. OK also where it exists.
MUST_CHECK enum status bus_topic_ensure(const char *brokers, const char *topic, int partitions,
    int replication, int64_t retention_ms, int timeout_ms, struct problem *why);
