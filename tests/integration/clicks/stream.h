// SPDX-License-Identifier: MIT
// What the tests of counting share: a stream of a test's own on the real Kafka, the service's consumer, and
// waits for what it counts. Header only; include after cmocka's needs.
#pragma once

#include "common/bus/bus.h"
#include "common/codes/codes.h"
#include "dunlin/v1/click.pb-c.h"
#include "services/clicks/consume.h"
#include "tests/support/test_db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_US (40 * US_PER_S)
#define NAME_TEXT 64
#define PARTITIONS 4
#define HOUR_MS INT64_C(3600000)
#define CODES 20
#define PER_BATCH INT64_C(40) // clicks of put_many()
#define NOWHERE "127.0.0.1:1" // a port that nothing listens on

static const char *brokers;
static struct test_db *test_db;
static struct db *superuser;

// ---- a stream of a test's own

struct stream {
    char topic[NAME_TEXT];
    char dead[NAME_TEXT + 8];
    char groups[2][NAME_TEXT];
    struct bus_producer *producer;
    size_t undelivered;
    uint64_t sequence;
};

static void delivered(void *arg, void *record_arg, enum status status) {
    (void)record_arg;
    struct stream *stream = arg;
    assert_int_equal(status, STATUS_OK);
    stream->undelivered--;
}

static void open_stream(struct stream *stream) {
    *stream = (struct stream){0};
    long long now = (long long)base_wall_us();
    (void)snprintf(stream->topic, sizeof stream->topic, "clicks-test-%lld-%d", now, (int)getpid());
    (void)snprintf(stream->dead, sizeof stream->dead, "%s.dead", stream->topic);
    for (int i = 0; i < 2; i++)
        (void)snprintf(stream->groups[i], sizeof stream->groups[i], "clicks-test-%lld-%d", now, i);
    assert_int_equal(
        bus_topic_ensure(brokers, stream->topic, PARTITIONS, 1, HOUR_MS, 20000, NULL), STATUS_OK);
    const struct bus_producer_options options = {
        .brokers = brokers,
        .topic = stream->topic,
        .client = "clicks-test",
        .linger_ms = 5,
        .queue_max = 100000,
        .delivered = delivered,
        .arg = stream,
    };
    assert_int_equal(bus_producer_open(&options, &stream->producer, NULL), STATUS_OK);
}

static void close_stream(struct stream *stream) {
    bus_producer_close(stream->producer);
    test_db_run(superuser, "TRUNCATE dunlin.clicks_daily, dunlin.click_offsets");
}

static void put(struct stream *stream, int32_t partition, const void *bytes, size_t len) {
    assert_int_equal(bus_produce(stream->producer, partition, bytes, len, NULL), STATUS_OK);
    stream->undelivered++;
}

static void flush(struct stream *stream) {
    assert_int_equal(bus_producer_flush(stream->producer, 30000), 0);
    assert_int_equal(stream->undelivered, 0);
}

struct click {
    int64_t at_us;
    const char *code;
    const char *user_agent;
};

#define CLICKS_MAX 64
static void put_batch(struct stream *stream, int32_t partition, const struct click *clicks, size_t count) {
    Dunlin__V1__Click list[CLICKS_MAX];
    Dunlin__V1__Click *pointers[CLICKS_MAX];
    assert_true(count <= CLICKS_MAX);
    for (size_t i = 0; i < count; i++) {
        dunlin__v1__click__init(&list[i]);
        list[i].at_us = clicks[i].at_us;
        list[i].code = (char *)(uintptr_t)clicks[i].code;
        list[i].user_agent = (char *)(uintptr_t)clicks[i].user_agent;
        pointers[i] = &list[i];
    }
    Dunlin__V1__ClickBatch batch = DUNLIN__V1__CLICK_BATCH__INIT;
    batch.producer = 1;
    batch.lane = (uint32_t)partition;
    batch.sequence = stream->sequence++;
    batch.clicks = pointers;
    batch.n_clicks = count;
    unsigned char packed[8192];
    assert_true(dunlin__v1__click_batch__get_packed_size(&batch) <= sizeof packed);
    put(stream, partition, packed, dunlin__v1__click_batch__pack(&batch, packed));
}

// `batches` of CODES * 2 clicks: every code once today and once yesterday.
static void put_many(struct stream *stream, int batches) {
    static char codes[CODES][CODES_TEXT];
    struct click clicks[CODES * 2];
    int64_t now = base_wall_us();
    for (int i = 0; i < CODES; i++) {
        (void)snprintf(codes[i], sizeof codes[i], "code%03d", i);
        clicks[i] = (struct click){now, codes[i], "Mozilla/5.0"};
        clicks[CODES + i] = (struct click){now - US_PER_DAY, codes[i], NULL};
    }
    for (int i = 0; i < batches; i++)
        put_batch(stream, i % PARTITIONS, clicks, ARRAY_LEN(clicks));
}

// ---- the service's consumer

struct consumer {
    struct clicks clicks;
    struct consume *consume;
};

// Its metrics live as long as the process, and so do these.
static struct consumer *start(const char *at, const struct stream *stream, int group) {
    struct consumer *consumer = base_calloc(1, sizeof *consumer);
    consumer->clicks.config = (struct clicks_config){
        .pg_url = test_db_conninfo(test_db, "clicks"),
        .brokers = at,
        .topic = stream->topic,
        .group = stream->groups[group],
        .partitions = PARTITIONS,
        .replication = 1,
        .retention_h = 1,
        .fold_max = 500,
        .fold_ms = 50,
    };
    clicks_init(&consumer->clicks);
    assert_int_equal(
        consume_start(&consumer->clicks.config, &consumer->clicks.series, &consumer->consume, NULL),
        STATUS_OK);
    return consumer;
}

static void stop(struct consumer *consumer) {
    consume_stop(consumer->consume);
}

static int64_t total(void) {
    return test_db_int64(superuser, "SELECT coalesce(sum(clicks), 0)::bigint FROM dunlin.clicks_daily");
}

static void await_total(int64_t wanted) {
    int64_t until = base_monotonic_us() + PATIENCE_US;
    while (total() < wanted && base_monotonic_us() < until)
        (void)usleep(10 * 1000);
    assert_int_equal(total(), wanted);
}

static void await_metric(const struct metric *metric, int64_t least) {
    int64_t until = base_monotonic_us() + PATIENCE_US;
    while (metric_value(metric) < least && base_monotonic_us() < until)
        (void)usleep(10 * 1000);
    assert_true(metric_value(metric) >= least);
}

static void assert_even(int64_t each) {
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "%d %lld %lld", CODES * 2, (long long)each, (long long)each);
    assert_string_equal(
        test_db_text(
            superuser, "SELECT concat_ws(' ', count(*), min(clicks), max(clicks)) FROM dunlin.clicks_daily"),
        wanted);
}
