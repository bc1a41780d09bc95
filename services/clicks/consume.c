// SPDX-License-Identifier: MIT
#include "services/clicks/consume.h"

#include "common/log/log.h"
#include "services/clicks/clicks_sql.h"
#include "services/clicks/count.h"

#include <stdio.h>
#include <stdlib.h>

#define TOPIC_TEXT 256
#define TOPIC_MS 3000
#define CLUSTER_MS 2000
#define WAIT_KAFKA_US US_PER_S
#define MONTHS_EVERY_US (3600 * US_PER_S)
#define MONTHS_AGAIN_US (30 * US_PER_S)
#define LAG_EVERY_US US_PER_S
#define DEAD_PARTITIONS 1

struct consume {
    const struct clicks_config *config;
    struct clicks_series *series;
    char dead_topic[TOPIC_TEXT];
    pthread_t thread;
    struct pause pause;
    atomic_bool up;
    struct db *db;
    struct dead *dead;
    struct bus_consumer *bus; // NULL until the topics are there, and after a fatal error
    struct count count;
    bool topics_made;
    int64_t months_at_us;
    int64_t lag_at_us;
    struct log_limit limit;
};

// ---- what the bus asks for

static enum status position(void *arg, int32_t partition, int64_t *offset) {
    struct consume *consume = arg;
    const char *stream = bus_consumer_cluster(consume->bus, CLUSTER_MS);
    enum status status =
        stream == NULL ? STATUS_UNAVAILABLE : count_begin(&consume->count, stream, partition, offset);
    int64_t suppressed = 0;
    if (status != STATUS_OK && log_allowed(&consume->limit, &suppressed))
        log_warn("waiting for a position", log_int("partition", partition),
            log_text("status", status_name(status)), log_text("error", db_error_text(consume->db)),
            log_int("suppressed", suppressed));
    return status;
}

static void revoked(void *arg) {
    struct consume *consume = arg;
    count_forget(&consume->count);
}

// ---- getting ready

static enum status ensure_topic(const struct consume *consume, const char *topic, int64_t partitions) {
    struct problem why = {0};
    const struct clicks_config *config = consume->config;
    enum status status = bus_topic_ensure(config->brokers, topic, (int)partitions, (int)config->replication,
        config->retention_h * 3600 * 1000, TOPIC_MS, &why);
    if (status == STATUS_OK)
        return status;
    if (status == STATUS_UNAVAILABLE)
        log_warn("waiting for Kafka", log_text("topic", topic), log_text("why", why.message));
    else // where somebody else makes the topics, it is there all the same
        log_error("a topic can't be made", log_text("topic", topic), log_text("why", why.message));
    return status;
}

static bool ensure_topics(struct consume *consume) {
    if (!consume->topics_made)
        consume->topics_made =
            ensure_topic(consume, consume->config->topic, consume->config->partitions) !=
                STATUS_UNAVAILABLE &&
            ensure_topic(consume, consume->dead_topic, DEAD_PARTITIONS) != STATUS_UNAVAILABLE;
    return consume->topics_made;
}

static bool open_bus(struct consume *consume) {
    const struct bus_consumer_options options = {
        .brokers = consume->config->brokers,
        .topic = consume->config->topic,
        .group = consume->config->group,
        .client = "dunlin-clicks",
        .position = position,
        .revoked = revoked,
        .arg = consume,
    };
    struct problem why = {0};
    if (bus_consumer_open(&options, &consume->bus, &why) == STATUS_OK)
        return true;
    log_error("the click stream can't be read", log_text("why", why.message));
    return false;
}

static void close_bus(struct consume *consume) {
    bus_consumer_close(consume->bus);
    consume->bus = NULL;
    count_forget(&consume->count);
}

// ---- the loop

// Reads until enough clicks wait or the time is over.
static void read_window(struct consume *consume) {
    int64_t until = base_monotonic_us() + consume->config->fold_ms * US_PER_MS;
    while (consume->count.clicks < (uint64_t)consume->config->fold_max) {
        int64_t left = (until - base_monotonic_us() + US_PER_MS - 1) / US_PER_MS;
        if (left <= 0)
            return;
        struct bus_record record;
        switch ((int)bus_consumer_poll(consume->bus, (int)left, &record)) {
        case STATUS_OK:
            count_record(&consume->count, &record);
            break;
        case STATUS_OUT_OF_RANGE:
            count_jump(&consume->count, record.partition, record.offset);
            return;
        case STATUS_INTERNAL:
            close_bus(consume);
            return;
        default: // nothing came, or no broker: polling goes on
            break;
        }
    }
}

static void ensure_months(struct consume *consume) {
    int64_t now = base_monotonic_us();
    if (now < consume->months_at_us)
        return;
    int64_t made = 0;
    enum status status = clicks_sql_months(consume->db, &made);
    consume->months_at_us = now + (status == STATUS_OK ? MONTHS_EVERY_US : MONTHS_AGAIN_US);
    if (status != STATUS_OK)
        log_warn("months of clicks_daily can't be made now", log_text("status", status_name(status)),
            log_text("error", db_error_text(consume->db)));
    else if (made > 0)
        log_info("made months of clicks_daily", log_int("months", made));
}

static void tell_lag(struct consume *consume) {
    int64_t now = base_monotonic_us();
    if (now < consume->lag_at_us)
        return;
    consume->lag_at_us = now + LAG_EVERY_US;
    metric_set(consume->series->lag, bus_consumer_lag(consume->bus));
}

static void *run(void *arg) {
    struct consume *consume = arg;
    while (!pause_is_stopping(&consume->pause)) {
        ensure_months(consume);
        if (consume->bus == NULL && (!ensure_topics(consume) || !open_bus(consume))) {
            (void)pause_wait(&consume->pause, WAIT_KAFKA_US);
            continue;
        }
        read_window(consume);
        if (consume->bus != NULL) {
            count_apply(&consume->count, consume->bus);
            tell_lag(consume);
        }
        atomic_store(&consume->up, consume->bus != NULL && bus_consumer_is_up(consume->bus));
    }
    atomic_store(&consume->up, false);
    close_bus(consume);
    return NULL;
}

// ---- start, stop

static void release(struct consume *consume) {
    count_done(&consume->count);
    dead_close(consume->dead);
    db_free(consume->db);
    pause_done(&consume->pause);
    free(consume);
}

enum status consume_start(const struct clicks_config *config, struct clicks_series *series,
    struct consume **out, struct problem *why) {
    struct consume *consume = base_calloc(1, sizeof *consume);
    consume->config = config;
    consume->series = series;
    (void)snprintf(consume->dead_topic, sizeof consume->dead_topic, "%s.dead", config->topic);
    pause_init(&consume->pause);
    const struct db_options options = clicks_db_options(config);
    consume->db = db_create(&options);
    enum status status = dead_open(config->brokers, consume->dead_topic, &consume->dead, why);
    count_init(&consume->count, consume->db, consume->dead, &consume->pause, series, config->topic);
    if (status != STATUS_OK) {
        release(consume);
        return status;
    }
    REQUIRE(pthread_create(&consume->thread, NULL, run, consume) == 0);
    *out = consume;
    return STATUS_OK;
}

void consume_stop(struct consume *consume) {
    if (consume == NULL)
        return;
    pause_stop(&consume->pause);
    (void)pthread_join(consume->thread, NULL);
    release(consume);
}

bool consume_is_up(const struct consume *consume) {
    return atomic_load(&consume->up);
}
