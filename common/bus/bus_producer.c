// SPDX-License-Identifier: MIT
#include "common/bus/bus_handle.h"

#include <stdlib.h>

#define ASK_EVERY_US (10 * US_PER_S)
#define ASK_AGAIN_US US_PER_S
#define CLOSE_MS 1000
#define NUMBER_TEXT 24
// A record of BUS_RECORD_MAX with its own head; a broker's default limit is 1,048,588.
#define MESSAGE_MAX "1001000"

struct bus_producer {
    struct bus_handle handle;
    rd_kafka_t *kafka;
    rd_kafka_topic_t *topic;
    bus_delivered *delivered;
    void *arg;
    size_t queued; // accepted and not reported yet
    int32_t partitions;
    int64_t ask_at_us;
    struct metric *ok, *failed, *refused;
};

static enum status status_of(rd_kafka_resp_err_t error) {
    switch ((int)error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        return STATUS_OK;
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
    case RD_KAFKA_RESP_ERR__DESTROY:
        return STATUS_CANCELLED;
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
        return STATUS_DEADLINE_EXCEEDED;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return STATUS_INVALID_ARGUMENT;
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
        return STATUS_RESOURCE_EXHAUSTED;
    default:
        return STATUS_UNAVAILABLE;
    }
}

static void on_delivered(rd_kafka_t *kafka, const rd_kafka_message_t *message, void *opaque) {
    (void)kafka;
    struct bus_producer *producer = bus_handle_of(opaque)->owner;
    REQUIRE(producer->queued > 0);
    producer->queued--;
    enum status status = status_of(message->err);
    if (status == STATUS_OK) {
        metric_inc(producer->ok);
        bus_handle_set_up(&producer->handle, true);
    } else {
        metric_inc(producer->failed);
        if (status != STATUS_CANCELLED) {
            bus_handle_error(&producer->handle, "a record was not delivered", message->err);
        }
    }
    producer->delivered(producer->arg, message->_private, status);
}

// zstd where librdkafka was built with it. Up to 2.11.0 it compresses with lz4 only where the broker lists
// Produce v0, which proxies may not; with zstd it asks for no such thing.
static const char *compression(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    REQUIRE(conf != NULL);
    bool zstd = rd_kafka_conf_set(conf, "compression.codec", "zstd", NULL, 0) == RD_KAFKA_CONF_OK;
    rd_kafka_conf_destroy(conf);
    return zstd ? "zstd" : "lz4";
}

static rd_kafka_conf_t *make_conf(
    struct bus_producer *producer, const struct bus_producer_options *options, struct problem *why) {
    char linger[NUMBER_TEXT];
    char queue[NUMBER_TEXT];
    (void)snprintf(linger, sizeof(linger), "%lld", (long long)options->linger_ms);
    (void)snprintf(queue, sizeof(queue), "%zu", options->queue_max);
    // Idempotence implies acks=all, ordered retries and at most 5 requests under way.
    const struct bus_setting settings[] = {
        {"enable.idempotence", "true"},
        {"compression.codec", compression()},
        {"compression.level", "1"},
        {"message.max.bytes", MESSAGE_MAX},
        {"linger.ms", linger},
        {"queue.buffering.max.messages", queue},
    };
    rd_kafka_conf_t *conf = bus_handle_conf(
        &producer->handle, options->brokers, options->client, settings, ARRAY_LEN(settings), why);
    if (conf != NULL) {
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
    }
    return conf;
}

enum status bus_producer_open(
    const struct bus_producer_options *options, struct bus_producer **out, struct problem *why) {
    struct bus_producer *producer = base_calloc(1, sizeof(*producer));
    bus_handle_init(&producer->handle, "producer", producer);
    producer->delivered = options->delivered;
    producer->arg = options->arg;
    producer->ok = metric_add(&bus_metrics[BUS_produced], "delivered");
    producer->failed = metric_add(&bus_metrics[BUS_produced], "failed");
    producer->refused = metric_add(&bus_metrics[BUS_produced], "refused");
    rd_kafka_conf_t *conf = make_conf(producer, options, why);
    if (conf != NULL) {
        producer->kafka = bus_handle_new(RD_KAFKA_PRODUCER, conf, why);
    }
    if (producer->kafka == NULL) {
        free(producer);
        return STATUS_INVALID_ARGUMENT;
    }
    producer->topic = rd_kafka_topic_new(producer->kafka, options->topic, NULL);
    if (producer->topic == NULL) {
        bus_producer_close(producer);
        return problem_set(
            why, STATUS_INVALID_ARGUMENT, "", "Kafka topic \"%s\" is no topic name", options->topic);
    }
    *out = producer;
    return STATUS_OK;
}

void bus_producer_close(struct bus_producer *producer) {
    if (producer == NULL) {
        return;
    }
    (void)rd_kafka_purge(producer->kafka, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    (void)rd_kafka_flush(producer->kafka, CLOSE_MS);
    if (producer->topic != NULL) {
        rd_kafka_topic_destroy(producer->topic);
    }
    rd_kafka_destroy(producer->kafka);
    bus_handle_end(&producer->handle);
    free(producer);
}

int32_t bus_producer_partitions(struct bus_producer *producer) {
    return producer->partitions;
}

enum status bus_produce(
    struct bus_producer *producer, int32_t partition, const void *bytes, size_t len, void *record_arg) {
    if (atomic_load(&producer->handle.fatal)) {
        return STATUS_UNAVAILABLE;
    }
    if (len > BUS_RECORD_MAX) {
        return STATUS_INVALID_ARGUMENT;
    }
    // With F_COPY librdkafka only reads the payload; its signature has no const.
    int failed = rd_kafka_produce(
        producer->topic, partition, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)bytes, len, NULL, 0, record_arg);
    if (failed == 0) {
        producer->queued++;
        return STATUS_OK;
    }
    metric_inc(producer->refused);
    return status_of(rd_kafka_last_error());
}

// There is no call that tells what librdkafka already knows of a topic, so it is asked, within the time that
// the caller gave us anyway.
static void ask(struct bus_producer *producer, int timeout_ms) {
    int64_t now = base_monotonic_us();
    if (timeout_ms <= 0 || now < producer->ask_at_us) {
        return;
    }
    int32_t partitions = bus_handle_ask(&producer->handle, producer->kafka, producer->topic, timeout_ms);
    if (partitions >= 0) {
        producer->partitions = partitions;
    }
    producer->ask_at_us = base_monotonic_us() + (partitions > 0 ? ASK_EVERY_US : ASK_AGAIN_US);
}

void bus_producer_poll(struct bus_producer *producer, int timeout_ms) {
    int64_t until = base_monotonic_us() + timeout_ms * US_PER_MS;
    ask(producer, timeout_ms);
    int64_t left = (until - base_monotonic_us()) / US_PER_MS;
    (void)rd_kafka_poll(producer->kafka, left > 0 ? (int)left : 0);
}

size_t bus_producer_flush(struct bus_producer *producer, int timeout_ms) {
    (void)rd_kafka_flush(producer->kafka, timeout_ms);
    return producer->queued;
}

bool bus_producer_is_up(const struct bus_producer *producer) {
    return atomic_load(&producer->handle.up) && !atomic_load(&producer->handle.fatal);
}
