// SPDX-License-Identifier: MIT
// Positions are set by assigning the whole list anew, never by rd_kafka_seek(): up to librdkafka 2.0.2 a seek
// is refused for a partition that stopped on an error, and rd_kafka_seek_partitions() waits a thousandth of
// its time-out.
#include "common/bus/bus_handle.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ASK_EVERY_US US_PER_S
#define ASK_MS 500
#define RETRY_FIRST_US (100 * US_PER_MS)
#define RETRY_MAX_US (5 * US_PER_S)
#define WATERMARK_MS 2000

#define SETTLE_US (20 * US_PER_MS)

struct bus_consumer {
    struct bus_handle handle;
    rd_kafka_t *kafka;
    rd_kafka_topic_t *topic; // for metadata alone
    char *topic_name;
    struct bus_consumer_options options;
    rd_kafka_message_t *held; // behind the record that the caller has
    // What the group gave us, with the next offset wanted of each; NULL while nothing is ours.
    rd_kafka_topic_partition_list_t *ours;
    bool waiting; // for positions: nothing is read until retry_at_us
    bool sought;  // a position of ours was changed: assigned before anything else is read
    int64_t assigned_at_us;
    int64_t retry_at_us;
    int64_t retry_us;
    int64_t ask_at_us;
    char *cluster;
    struct metric *consumed, *consumed_bytes, *assigned, *unassigned, *partitions, *out_of_range;
};

// ---- assignment

// librdkafka 2.0.2 aborts when partitions are assigned once more while it is still stopping them for the time
// before.
static void let_settle(const struct bus_consumer *consumer) {
    int64_t left_us = consumer->assigned_at_us + SETTLE_US - base_monotonic_us();
    const struct timespec pause = {.tv_nsec = left_us * 1000};
    if (consumer->assigned_at_us != 0 && left_us > 0)
        (void)nanosleep(&pause, NULL);
}

static void assign(struct bus_consumer *consumer, const rd_kafka_topic_partition_list_t *list) {
    let_settle(consumer);
    consumer->sought = false;
    consumer->assigned_at_us = base_monotonic_us();
    rd_kafka_resp_err_t error = rd_kafka_assign(consumer->kafka, list);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        bus_handle_error(&consumer->handle, "an assignment was refused", error);
    }
}

static void assign_nothing(struct bus_consumer *consumer) {
    rd_kafka_topic_partition_list_t *nothing = rd_kafka_topic_partition_list_new(0);
    assign(consumer, nothing);
    rd_kafka_topic_partition_list_destroy(nothing);
}

static void wait_for_positions(struct bus_consumer *consumer) {
    consumer->retry_us = consumer->retry_us == 0 ? RETRY_FIRST_US : consumer->retry_us * 2;
    if (consumer->retry_us > RETRY_MAX_US) {
        consumer->retry_us = RETRY_MAX_US;
    }
    consumer->retry_at_us = base_monotonic_us() + consumer->retry_us;
    consumer->waiting = true;
}

static bool ask_positions(struct bus_consumer *consumer) {
    for (int i = 0; i < consumer->ours->cnt; i++) {
        rd_kafka_topic_partition_t *partition = &consumer->ours->elems[i];
        int64_t offset = -1;
        if (consumer->options.position(consumer->options.arg, partition->partition, &offset) != STATUS_OK) {
            return false;
        }
        partition->offset = offset < 0 ? RD_KAFKA_OFFSET_BEGINNING : offset;
    }
    return true;
}

// Begins to read what is ours, or nothing of it where a position can't be had: a membership without
// partitions keeps the group calm until the next attempt.
static void begin(struct bus_consumer *consumer) {
    if (!ask_positions(consumer)) {
        metric_inc(consumer->unassigned);
        wait_for_positions(consumer);
        assign_nothing(consumer);
        return;
    }
    consumer->waiting = false;
    consumer->retry_us = 0;
    metric_inc(consumer->assigned);
    assign(consumer, consumer->ours);
}

// Drops what the caller holds of all partitions and begins again from the positions, after a pause.
static void begin_again_later(struct bus_consumer *consumer) {
    consumer->options.revoked(consumer->options.arg);
    wait_for_positions(consumer);
    assign_nothing(consumer);
}

static void forget_ours(struct bus_consumer *consumer) {
    if (consumer->ours != NULL) {
        rd_kafka_topic_partition_list_destroy(consumer->ours);
        consumer->ours = NULL;
    }
    consumer->waiting = false;
    consumer->sought = false;
    metric_set(consumer->partitions, 0);
}

static void on_rebalance(
    rd_kafka_t *kafka, rd_kafka_resp_err_t event, rd_kafka_topic_partition_list_t *list, void *opaque) {
    struct bus_consumer *consumer = bus_handle_of(opaque)->owner;
    if (consumer->ours != NULL) {
        consumer->options.revoked(consumer->options.arg);
    }
    forget_ours(consumer);
    if (event != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        (void)rd_kafka_assign(kafka, NULL);
        return;
    }
    consumer->ours = rd_kafka_topic_partition_list_copy(list);
    metric_set(consumer->partitions, list->cnt);
    log_info("Kafka partitions assigned", log_text("topic", consumer->topic_name),
        log_int("partitions", list->cnt));
    begin(consumer);
}

static void on_commit(
    rd_kafka_t *kafka, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *list, void *opaque) {
    (void)kafka;
    (void)list;
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        bus_handle_error(bus_handle_of(opaque), "a commit for other people's tools failed", error);
    }
}

// ---- open, close

static rd_kafka_conf_t *make_conf(
    struct bus_consumer *consumer, const struct bus_consumer_options *options, struct problem *why) {
    const struct bus_setting settings[] = {
        {"group.id", options->group},
        {"partition.assignment.strategy", "range,roundrobin"},
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"auto.offset.reset", "error"},
        {"session.timeout.ms", "6000"},
        {"heartbeat.interval.ms", "1500"},
        {"max.poll.interval.ms", "60000"},
        {"fetch.wait.max.ms", "100"},
        {"fetch.error.backoff.ms", "100"},
        {"queued.max.messages.kbytes", "16384"},
    };
    rd_kafka_conf_t *conf = bus_handle_conf(
        &consumer->handle, options->brokers, options->client, settings, ARRAY_LEN(settings), why);
    if (conf != NULL) {
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
        rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    }
    return conf;
}

static void add_metrics(struct bus_consumer *consumer) {
    consumer->consumed = metric_add(&bus_metrics[BUS_consumed]);
    consumer->consumed_bytes = metric_add(&bus_metrics[BUS_consumed_bytes]);
    consumer->assigned = metric_add(&bus_metrics[BUS_assignments], "done");
    consumer->unassigned = metric_add(&bus_metrics[BUS_assignments], "failed");
    consumer->partitions = metric_add(&bus_metrics[BUS_partitions]);
    consumer->out_of_range = metric_add(&bus_metrics[BUS_out_of_range]);
}

static enum status subscribe(struct bus_consumer *consumer, struct problem *why) {
    (void)rd_kafka_poll_set_consumer(consumer->kafka);
    consumer->topic = rd_kafka_topic_new(consumer->kafka, consumer->topic_name, NULL);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    (void)rd_kafka_topic_partition_list_add(list, consumer->topic_name, RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t error = rd_kafka_subscribe(consumer->kafka, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (consumer->topic == NULL || error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return problem_set(why, STATUS_INVALID_ARGUMENT, "", "Kafka topic \"%s\" can't be subscribed to: %s",
            consumer->topic_name, rd_kafka_err2name(error));
    }
    return STATUS_OK;
}

enum status bus_consumer_open(
    const struct bus_consumer_options *options, struct bus_consumer **out, struct problem *why) {
    struct bus_consumer *consumer = base_calloc(1, sizeof(*consumer));
    bus_handle_init(&consumer->handle, "consumer", consumer);
    consumer->options = *options;
    consumer->topic_name = base_strdup(options->topic);
    add_metrics(consumer);
    rd_kafka_conf_t *conf = make_conf(consumer, options, why);
    if (conf != NULL) {
        consumer->kafka = bus_handle_new(RD_KAFKA_CONSUMER, conf, why);
    }
    if (consumer->kafka == NULL || subscribe(consumer, why) != STATUS_OK) {
        bus_consumer_close(consumer);
        return STATUS_INVALID_ARGUMENT;
    }
    *out = consumer;
    return STATUS_OK;
}

static void let_go(struct bus_consumer *consumer) {
    if (consumer->held != NULL) {
        rd_kafka_message_destroy(consumer->held);
        consumer->held = NULL;
    }
}

void bus_consumer_close(struct bus_consumer *consumer) {
    if (consumer == NULL) {
        return;
    }
    let_go(consumer); // a message that is kept holds up the close
    if (consumer->topic != NULL) {
        rd_kafka_topic_destroy(consumer->topic);
    }
    if (consumer->kafka != NULL) {
        (void)rd_kafka_consumer_close(consumer->kafka);
        rd_kafka_destroy(consumer->kafka);
    }
    forget_ours(consumer);
    bus_handle_end(&consumer->handle);
    free(consumer->cluster);
    free(consumer->topic_name);
    free(consumer);
}

// ---- reading

static rd_kafka_topic_partition_t *find(struct bus_consumer *consumer, int32_t partition) {
    if (consumer->ours == NULL) {
        return NULL;
    }
    return rd_kafka_topic_partition_list_find(consumer->ours, consumer->topic_name, partition);
}

static enum status take_record(struct bus_consumer *consumer, struct bus_record *out) {
    const rd_kafka_message_t *message = consumer->held;
    rd_kafka_topic_partition_t *partition = find(consumer, message->partition);
    if (partition == NULL || consumer->waiting) {
        return STATUS_NOT_FOUND;
    }
    partition->offset = message->offset + 1;
    bus_handle_set_up(&consumer->handle, true);
    metric_inc(consumer->consumed);
    metric_count(consumer->consumed_bytes, message->len);
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    int64_t at_ms = rd_kafka_message_timestamp(message, &type);
    *out = (struct bus_record){
        .partition = message->partition,
        .offset = message->offset,
        .timestamp_us = type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || at_ms < 0 ? 0 : at_ms * US_PER_MS,
        .bytes = message->payload,
        .len = message->len,
    };
    return STATUS_OK;
}

// With auto.offset.reset=error librdkafka stops a partition whenever it can't tell where to read, not only
// where the position is gone: ask the log itself before anything is skipped.
static enum status restart(struct bus_consumer *consumer, int32_t number, struct bus_record *out) {
    rd_kafka_topic_partition_t *partition = find(consumer, number);
    if (partition == NULL || consumer->waiting) {
        return STATUS_NOT_FOUND;
    }
    int64_t low = 0;
    int64_t high = 0;
    rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
        consumer->kafka, consumer->topic_name, number, &low, &high, WATERMARK_MS);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        bus_handle_error(&consumer->handle, "a partition's ends are unknown", error);
        begin_again_later(consumer);
        return STATUS_UNAVAILABLE;
    }
    if (partition->offset < 0 || (partition->offset >= low && partition->offset <= high)) {
        begin_again_later(consumer);
        return STATUS_NOT_FOUND;
    }
    log_critical("a position is not in the log any more, going on from the earliest record",
        log_text("topic", consumer->topic_name), log_int("partition", number),
        log_int("position", partition->offset), log_int("earliest", low), log_int("end", high));
    metric_inc(consumer->out_of_range);
    *out = (struct bus_record){.partition = number, .offset = low};
    partition->offset = low;
    assign(consumer, consumer->ours);
    return STATUS_OUT_OF_RANGE;
}

static enum status take_error(struct bus_consumer *consumer, struct bus_record *out) {
    const rd_kafka_message_t *message = consumer->held;
    switch ((int)message->err) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
        return restart(consumer, message->partition, out);
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
        return STATUS_NOT_FOUND;
    case RD_KAFKA_RESP_ERR__FATAL:
        atomic_store(&consumer->handle.fatal, true);
        return STATUS_INTERNAL;
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
        bus_handle_error(&consumer->handle, "reading", message->err);
        return STATUS_UNAVAILABLE;
    default:
        bus_handle_error(&consumer->handle, "reading", message->err);
        return STATUS_NOT_FOUND;
    }
}

// librdkafka tells when all brokers are lost and not when one is back.
static void ask(struct bus_consumer *consumer, int timeout_ms) {
    int64_t now = base_monotonic_us();
    if (timeout_ms <= 0 || atomic_load(&consumer->handle.up) || now < consumer->ask_at_us) {
        return;
    }
    (void)bus_handle_ask(
        &consumer->handle, consumer->kafka, consumer->topic, timeout_ms < ASK_MS ? timeout_ms : ASK_MS);
    consumer->ask_at_us = base_monotonic_us() + ASK_EVERY_US;
}

enum status bus_consumer_poll(struct bus_consumer *consumer, int timeout_ms, struct bus_record *out) {
    let_go(consumer);
    if (atomic_load(&consumer->handle.fatal)) {
        return STATUS_INTERNAL;
    }
    int64_t until = base_monotonic_us() + timeout_ms * US_PER_MS;
    ask(consumer, timeout_ms);
    if (consumer->waiting && base_monotonic_us() >= consumer->retry_at_us) {
        begin(consumer);
    }
    if (consumer->sought && !consumer->waiting) {
        assign(consumer, consumer->ours);
    }
    if (consumer->waiting && consumer->retry_at_us < until) {
        until = consumer->retry_at_us;
    }
    int64_t left = (until - base_monotonic_us()) / US_PER_MS;
    consumer->held = rd_kafka_consumer_poll(consumer->kafka, left > 0 ? (int)left : 0);
    if (consumer->held == NULL) {
        return atomic_load(&consumer->handle.up) ? STATUS_NOT_FOUND : STATUS_UNAVAILABLE;
    }
    return consumer->held->err == RD_KAFKA_RESP_ERR_NO_ERROR ? take_record(consumer, out)
                                                             : take_error(consumer, out);
}

enum status bus_consumer_seek(struct bus_consumer *consumer, int32_t partition, int64_t offset) {
    rd_kafka_topic_partition_t *entry = find(consumer, partition);
    if (entry == NULL) {
        return STATUS_NOT_FOUND;
    }
    entry->offset = offset < 0 ? RD_KAFKA_OFFSET_BEGINNING : offset;
    consumer->sought = true;
    return STATUS_OK;
}

void bus_consumer_commit(struct bus_consumer *consumer, int32_t partition, int64_t next_offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, consumer->topic_name, partition)->offset = next_offset;
    (void)rd_kafka_commit(consumer->kafka, list, 1);
    rd_kafka_topic_partition_list_destroy(list);
}

bool bus_consumer_is_up(const struct bus_consumer *consumer) {
    return atomic_load(&consumer->handle.up) && !atomic_load(&consumer->handle.fatal);
}

int64_t bus_consumer_lag(struct bus_consumer *consumer) {
    int64_t lag = 0;
    for (int i = 0; consumer->ours != NULL && i < consumer->ours->cnt; i++) {
        const rd_kafka_topic_partition_t *partition = &consumer->ours->elems[i];
        int64_t low = RD_KAFKA_OFFSET_INVALID;
        int64_t high = RD_KAFKA_OFFSET_INVALID;
        (void)rd_kafka_get_watermark_offsets(
            consumer->kafka, consumer->topic_name, partition->partition, &low, &high);
        int64_t next = partition->offset < 0 ? low : partition->offset;
        if (high >= 0 && next >= 0 && high > next) {
            lag += high - next;
        }
    }
    return lag;
}

const char *bus_consumer_cluster(struct bus_consumer *consumer, int timeout_ms) {
    if (consumer->cluster == NULL) {
        char *cluster = rd_kafka_clusterid(consumer->kafka, timeout_ms);
        if (cluster != NULL) {
            consumer->cluster = base_strdup(cluster);
            rd_kafka_mem_free(consumer->kafka, cluster);
        }
    }
    return consumer->cluster;
}
