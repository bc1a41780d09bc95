// SPDX-License-Identifier: MIT
// The bus against the real Kafka that DUNLIN_TEST_KAFKA names ("host:port").
#include "common/bus/bus.h"
#include "tests/integration/bus/raw_fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_US (30 * US_PER_S)
#define NAME_TEXT 64
#define PARTITIONS 4
#define HOUR_MS INT64_C(3600000)
#define NOWHERE "127.0.0.1:1" // a port that nothing listens on

static const char *brokers;

// A topic or group that no earlier run knows.
static void make_name(char out[NAME_TEXT], const char *what) {
    (void)snprintf(out, NAME_TEXT, "bus-test-%s-%lld-%d", what, (long long)base_wall_us(), (int)getpid());
}

static void make_topic(char out[NAME_TEXT], int partitions) {
    make_name(out, "topic");
    struct problem why = {0};
    enum status status = bus_topic_ensure(brokers, out, partitions, 1, HOUR_MS, 20000, &why);
    if (status != STATUS_OK)
        fail_msg("topic: %s", why.message);
}

// ---- a producer that counts its reports

struct reports {
    size_t count[STATUS_COUNT];
    size_t total;
    uintptr_t sum; // of the records' numbers
};

static void delivered(void *arg, void *record_arg, enum status status) {
    struct reports *reports = arg;
    reports->count[status]++;
    reports->total++;
    reports->sum += (uintptr_t)record_arg;
}

static struct bus_producer *open_producer(
    const char *at, const char *topic, size_t queue_max, struct reports *reports) {
    const struct bus_producer_options options = {
        .brokers = at,
        .topic = topic,
        .client = "bus-test",
        .linger_ms = 20,
        .queue_max = queue_max,
        .delivered = delivered,
        .arg = reports,
    };
    struct bus_producer *producer = NULL;
    assert_int_equal(bus_producer_open(&options, &producer, NULL), STATUS_OK);
    return producer;
}

// Records "0", "1", … in turn over the partitions.
static void produce(const char *topic, int partitions, int count) {
    struct reports reports = {0};
    struct bus_producer *producer = open_producer(brokers, topic, 10000, &reports);
    for (int i = 0; i < count; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", i);
        assert_int_equal(
            bus_produce(producer, i % partitions, text, strlen(text), (void *)(uintptr_t)i), STATUS_OK);
    }
    assert_int_equal(bus_producer_flush(producer, 30000), 0);
    assert_int_equal(reports.count[STATUS_OK], count);
    assert_int_equal(reports.sum, (uintptr_t)count * (uintptr_t)(count - 1) / 2);
    bus_producer_close(producer);
    assert_int_equal(reports.total, count);
}

// ---- a consumer with positions of its own

struct reader {
    struct bus_consumer *consumer;
    int64_t begin[PARTITIONS]; // the positions that are told
    int64_t next[PARTITIONS];  // checked: records come in order, without a gap
    int failures;              // position lookups that still are to fail
    int asked, revoked, out_of_range;
    int records;
};

static enum status position(void *arg, int32_t partition, int64_t *offset) {
    struct reader *reader = arg;
    reader->asked++;
    if (reader->failures > 0) {
        reader->failures--;
        return STATUS_UNAVAILABLE;
    }
    *offset = reader->begin[partition];
    reader->next[partition] = *offset < 0 ? 0 : *offset;
    return STATUS_OK;
}

static void revoked(void *arg) {
    ((struct reader *)arg)->revoked++;
}

static void open_reader(struct reader *reader, const char *topic, const char *group) {
    const struct bus_consumer_options options = {
        .brokers = brokers,
        .topic = topic,
        .group = group,
        .client = "bus-test",
        .position = position,
        .revoked = revoked,
        .arg = reader,
    };
    assert_int_equal(bus_consumer_open(&options, &reader->consumer, NULL), STATUS_OK);
}

// One poll; the record's partition and order are checked here.
static enum status read_one(struct reader *reader, struct bus_record *record) {
    enum status status = bus_consumer_poll(reader->consumer, 100, record);
    if (status == STATUS_OUT_OF_RANGE) {
        reader->out_of_range++;
        reader->next[record->partition] = record->offset;
    }
    if (status == STATUS_OK) {
        assert_in_range(record->partition, 0, PARTITIONS - 1);
        assert_int_equal(record->offset, reader->next[record->partition]);
        assert_true(record->timestamp_us > base_wall_us() - 3600 * US_PER_S);
        reader->next[record->partition]++;
        reader->records++;
    }
    return status;
}

static void read_many(struct reader *reader, int count) {
    int64_t until = base_monotonic_us() + PATIENCE_US;
    struct bus_record record;
    while (reader->records < count) {
        assert_true(base_monotonic_us() < until);
        (void)read_one(reader, &record);
    }
}

// Nothing more comes.
static void assert_drained(struct reader *reader) {
    struct bus_record record;
    int count = reader->records;
    for (int i = 0; i < 5; i++)
        (void)read_one(reader, &record);
    assert_int_equal(reader->records, count);
}

// ---- tests

static void a_topic_is_made_once(void **state) {
    (void)state;
    char topic[NAME_TEXT];
    make_topic(topic, PARTITIONS);
    assert_int_equal(bus_topic_ensure(brokers, topic, PARTITIONS, 1, 1000, 20000, NULL), STATUS_OK);
    struct problem why = {0};
    assert_int_equal(
        bus_topic_ensure(brokers, "no topic's name", 1, 1, 1000, 20000, &why), STATUS_FAILED_PRECONDITION);
    assert_non_null(strstr(why.message, "no topic's name"));
    int64_t begun = base_monotonic_us();
    assert_int_equal(bus_topic_ensure(NOWHERE, topic, 1, 1, 1000, 1000, NULL), STATUS_UNAVAILABLE);
    assert_true(base_monotonic_us() - begun < 5 * US_PER_S);
}

static void the_producer_learns_the_partitions(void **state) {
    (void)state;
    char topic[NAME_TEXT];
    make_topic(topic, PARTITIONS);
    struct reports reports = {0};
    struct bus_producer *producer = open_producer(brokers, topic, 10, &reports);
    assert_int_equal(bus_producer_partitions(producer), 0);
    int64_t until = base_monotonic_us() + PATIENCE_US;
    while (bus_producer_partitions(producer) == 0 && base_monotonic_us() < until)
        bus_producer_poll(producer, 200);
    assert_int_equal(bus_producer_partitions(producer), PARTITIONS);
    assert_true(bus_producer_is_up(producer));
    bus_producer_close(producer);
    assert_int_equal(reports.total, 0);
}

static void what_goes_in_comes_out(void **state) {
    (void)state;
    char topic[NAME_TEXT];
    make_topic(topic, PARTITIONS);
    produce(topic, PARTITIONS, 400);
    struct reader reader = {.begin = {-1, -1, 40, 99}};
    char group[NAME_TEXT];
    make_name(group, "group");
    open_reader(&reader, topic, group);
    bool seen[400] = {false};
    int64_t until = base_monotonic_us() + PATIENCE_US;
    while (reader.records < 261) {
        assert_true(base_monotonic_us() < until);
        struct bus_record record;
        if (read_one(&reader, &record) != STATUS_OK)
            continue;
        char text[16] = "";
        assert_in_range(record.len, 1, sizeof text - 1);
        memcpy(text, record.bytes, record.len);
        long number = strtol(text, NULL, 10);
        assert_int_equal(number, record.offset * PARTITIONS + record.partition);
        assert_false(seen[number]);
        seen[number] = true;
    }
    assert_drained(&reader);
    assert_int_equal(reader.asked, PARTITIONS);
    assert_true(bus_consumer_is_up(reader.consumer));
    assert_int_equal(bus_consumer_lag(reader.consumer), 0);
    const char *cluster = bus_consumer_cluster(reader.consumer, 5000);
    assert_non_null(cluster);
    assert_true(strlen(cluster) > 10);
    bus_consumer_close(reader.consumer);
    assert_int_equal(reader.revoked, 1);
}

// What was committed to Kafka is never where a consumer begins.
static void positions_come_from_elsewhere(void **state) {
    (void)state;
    char topic[NAME_TEXT];
    char group[NAME_TEXT];
    make_topic(topic, 1);
    make_name(group, "group");
    produce(topic, 1, 20);
    struct reader first = {.begin = {-1}};
    open_reader(&first, topic, group);
    read_many(&first, 20);
    bus_consumer_commit(first.consumer, 0, 20);
    bus_consumer_close(first.consumer);
    struct reader second = {.begin = {13}, .failures = 2};
    open_reader(&second, topic, group);
    read_many(&second, 7);
    assert_drained(&second);
    assert_int_equal(second.asked, 3);
    bus_consumer_close(second.consumer);
}

static void a_position_that_is_gone_is_told(void **state) {
    (void)state;
    char topic[NAME_TEXT];
    char group[NAME_TEXT];
    make_topic(topic, 2);
    make_name(group, "group");
    produce(topic, 2, 20);
    struct reader reader = {.begin = {1000, 4}};
    open_reader(&reader, topic, group);
    read_many(&reader, 10 + 6);
    assert_drained(&reader);
    assert_int_equal(reader.out_of_range, 1);
    assert_int_equal(reader.next[0], 10);
    assert_int_equal(reader.next[1], 10);
    bus_consumer_close(reader.consumer);
}

static void seeking_moves_one_partition(void **state) {
    (void)state;
    char topic[NAME_TEXT];
    char group[NAME_TEXT];
    make_topic(topic, 2);
    make_name(group, "group");
    produce(topic, 2, 2000);
    struct reader reader = {.begin = {-1, -1}};
    open_reader(&reader, topic, group);
    read_many(&reader, 500); // with more of both already fetched
    int64_t again = reader.next[1] - 100 > 0 ? 100 : reader.next[1];
    reader.next[1] -= again;
    assert_int_equal(bus_consumer_seek(reader.consumer, 1, reader.next[1]), STATUS_OK);
    read_many(&reader, 2000 + (int)again);
    assert_drained(&reader);
    reader.next[0] = 0;
    assert_int_equal(bus_consumer_seek(reader.consumer, 0, -1), STATUS_OK);
    read_many(&reader, 3000 + (int)again);
    assert_drained(&reader);
    assert_int_equal(bus_consumer_seek(reader.consumer, 7, 0), STATUS_NOT_FOUND);
    bus_consumer_close(reader.consumer);
}

static void a_second_member_takes_its_share(void **state) {
    (void)state;
    char topic[NAME_TEXT];
    char group[NAME_TEXT];
    make_topic(topic, 2);
    make_name(group, "group");
    produce(topic, 2, 20);
    struct reader readers[2] = {{.begin = {-1, -1}}, {.begin = {-1, -1}}};
    open_reader(&readers[0], topic, group);
    read_many(&readers[0], 20);
    open_reader(&readers[1], topic, group);
    // The first one's positions are asked for again, so that it reads its partition once more.
    int64_t until = base_monotonic_us() + PATIENCE_US;
    struct bus_record record;
    while (readers[1].records < 10 || readers[0].records < 30) {
        assert_true(base_monotonic_us() < until);
        (void)read_one(&readers[0], &record);
        (void)read_one(&readers[1], &record);
    }
    assert_int_equal(readers[0].revoked, 1);
    assert_int_equal(readers[0].asked, 3);
    assert_int_equal(readers[1].asked, 1);
    bus_consumer_close(readers[0].consumer);
    bus_consumer_close(readers[1].consumer);
}

static void batches_arrive_compressed(void **state) {
    (void)state;
    char topic[NAME_TEXT];
    make_topic(topic, 1);
    struct reports reports = {0};
    struct bus_producer *producer = open_producer(brokers, topic, 1000, &reports);
    char record[1000];
    memset(record, 'a', sizeof record);
    for (int i = 0; i < 200; i++)
        assert_int_equal(bus_produce(producer, 0, record, sizeof record, NULL), STATUS_OK);
    assert_int_equal(bus_producer_flush(producer, 30000), 0);
    assert_int_equal(reports.count[STATUS_OK], 200);
    bus_producer_close(producer);
    struct raw_batch batch = raw_fetch_first_batch(brokers, topic);
    assert_int_equal(batch.magic, 2);
    assert_int_equal(batch.compression, RAW_ZSTD);
    assert_true(batch.producer >= 0); // an idempotent producer's id
    assert_true(batch.records > 1);
    assert_true(batch.bytes < (int64_t)batch.records * 200);
}

static void an_unreachable_broker_never_blocks(void **state) {
    (void)state;
    struct reports reports = {0};
    struct bus_producer *producer = open_producer(NOWHERE, "clicks", 50, &reports);
    int64_t begun = base_monotonic_us();
    size_t accepted = 0;
    size_t refused = 0;
    for (int i = 0; i < 1000; i++) {
        enum status status = bus_produce(producer, 0, "x", 1, NULL);
        accepted += status == STATUS_OK;
        refused += status == STATUS_RESOURCE_EXHAUSTED;
        bus_producer_poll(producer, 0);
    }
    assert_true(base_monotonic_us() - begun < US_PER_S);
    assert_int_equal(accepted, 50);
    assert_int_equal(refused, 950);
    assert_int_equal(bus_producer_flush(producer, 200), 50);
    assert_int_equal(bus_producer_partitions(producer), 0);
    assert_false(bus_producer_is_up(producer));
    assert_int_equal(bus_produce(producer, 0, "x", 1, NULL), STATUS_RESOURCE_EXHAUSTED);
    begun = base_monotonic_us();
    bus_producer_close(producer);
    assert_true(base_monotonic_us() - begun < 5 * US_PER_S);
    assert_int_equal(reports.total, 50);
    assert_int_equal(reports.count[STATUS_CANCELLED], 50);
}

static void a_record_that_is_too_large_is_refused(void **state) {
    (void)state;
    struct reports reports = {0};
    struct bus_producer *producer = open_producer(NOWHERE, "clicks", 50, &reports);
    char *record = calloc(1, BUS_RECORD_MAX + 1);
    assert_non_null(record);
    assert_int_equal(bus_produce(producer, 0, record, BUS_RECORD_MAX + 1, NULL), STATUS_INVALID_ARGUMENT);
    assert_int_equal(bus_produce(producer, 0, record, BUS_RECORD_MAX, NULL), STATUS_OK);
    free(record);
    bus_producer_close(producer);
    assert_int_equal(reports.total, 1);
}

static void a_consumer_without_a_broker_says_so(void **state) {
    (void)state;
    const char *kept = brokers;
    brokers = NOWHERE;
    struct reader reader = {0};
    open_reader(&reader, "clicks", "group");
    brokers = kept;
    struct bus_record record;
    int64_t begun = base_monotonic_us();
    for (int i = 0; i < 5; i++)
        assert_int_equal(bus_consumer_poll(reader.consumer, 100, &record), STATUS_UNAVAILABLE);
    assert_in_range(base_monotonic_us() - begun, 300 * US_PER_MS, 3 * US_PER_S);
    assert_false(bus_consumer_is_up(reader.consumer));
    assert_null(bus_consumer_cluster(reader.consumer, 100));
    bus_consumer_close(reader.consumer);
}

int main(void) {
    brokers = getenv("DUNLIN_TEST_KAFKA");
    if (brokers == NULL || *brokers == '\0') {
        (void)fprintf(stderr, "DUNLIN_TEST_KAFKA is not set: this test needs a real Kafka (host:port)\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_topic_is_made_once),
        cmocka_unit_test(the_producer_learns_the_partitions),
        cmocka_unit_test(what_goes_in_comes_out),
        cmocka_unit_test(positions_come_from_elsewhere),
        cmocka_unit_test(a_position_that_is_gone_is_told),
        cmocka_unit_test(seeking_moves_one_partition),
        cmocka_unit_test(a_second_member_takes_its_share),
        cmocka_unit_test(batches_arrive_compressed),
        cmocka_unit_test(an_unreachable_broker_never_blocks),
        cmocka_unit_test(a_record_that_is_too_large_is_refused),
        cmocka_unit_test(a_consumer_without_a_broker_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
