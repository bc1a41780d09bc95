// SPDX-License-Identifier: MIT
// What the producer, the consumer and the admin call share around librdkafka: its settings, its log, its
// errors. Private to this folder.
#pragma once

#include "common/bus/bus.h"
#include "common/log/log.h"
#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

// The opaque of every librdkafka handle. librdkafka's threads read it: it must not move before the handle is
// gone.
struct bus_handle {
    unsigned magic;
    const char *role; // "producer", "consumer", "admin"
    void *owner;
    atomic_bool up;    // a broker answered since the last time that all were down
    atomic_bool fatal; // librdkafka gave up: only a new handle helps
    struct log_limit limit;
    struct metric *errors;
    struct metric *up_gauge;
};

struct bus_setting {
    const char *name;
    const char *value;
};

enum bus_metric {
    BUS_up,
    BUS_errors,
    BUS_produced,
    BUS_consumed,
    BUS_consumed_bytes,
    BUS_assignments,
    BUS_partitions,
    BUS_out_of_range,
};

// owner NULL: a handle of one call, without metrics.
void bus_handle_init(struct bus_handle *handle, const char *role, void *owner);
// The owner of a handle that librdkafka handed back.
struct bus_handle *bus_handle_of(void *opaque);
// The gauge's last word, before the owner is freed.
void bus_handle_end(struct bus_handle *handle);
void bus_handle_set_up(struct bus_handle *handle, bool up);
// Counts and logs (rate-limited) what went wrong.
void bus_handle_error(struct bus_handle *handle, const char *what, rd_kafka_resp_err_t error);

// The settings that all handles have in common, then the given ones; NULL with `why` where one is refused.
rd_kafka_conf_t *bus_handle_conf(struct bus_handle *handle, const char *brokers, const char *client,
    const struct bus_setting *settings, size_t count, struct problem *why);
// Takes `conf` over, also on failure.
rd_kafka_t *bus_handle_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, struct problem *why);
// Asks the brokers for the topic, waits at most timeout_ms; returns its partitions, 0 where it has none, -1
// where no broker answered. Sets `up` where one did.
int32_t bus_handle_ask(struct bus_handle *handle, rd_kafka_t *kafka, rd_kafka_topic_t *topic, int timeout_ms);
