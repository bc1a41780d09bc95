// SPDX-License-Identifier: MIT
// Counting against a real Kafka (DUNLIN_TEST_KAFKA) and a real Postgres (DUNLIN_TEST_PG): what is in the
// table equals what went into the stream.
#include "tests/integration/clicks/stream.h"

#include "common/instant/instant.h"

// ---- tests

static void counts_equal_what_went_in(void **state) {
    (void)state;
    struct stream stream;
    open_stream(&stream);
    put_many(&stream, 200);
    flush(&stream);
    struct consumer *consumer = start(brokers, &stream, 0);
    await_total(200 * PER_BATCH);
    assert_even(200);
    assert_true(consume_is_up(consumer->consume));
    int64_t begun = base_monotonic_us();
    put_many(&stream, 1);
    await_total(201 * PER_BATCH);
    assert_true(base_monotonic_us() - begun < 5 * US_PER_S);
    print_message(
        "a click was visible after %lld ms\n", (long long)((base_monotonic_us() - begun) / US_PER_MS));
    assert_int_equal(metric_value(consumer->clicks.series.counted), 201 * PER_BATCH);
    assert_int_equal(metric_value(consumer->clicks.series.records), 201);
    assert_int_equal(metric_value(consumer->clicks.series.lost), 0);
    stop(consumer);
    assert_int_equal(
        test_db_int64(superuser, "SELECT sum(next_offset)::bigint FROM dunlin.click_offsets"), 201);
    close_stream(&stream);
}

// A click's day is the UTC day of its own time.
static void a_click_belongs_to_its_own_day(void **state) {
    (void)state;
    struct stream stream;
    open_stream(&stream);
    int32_t today = instant_day(base_wall_us());
    int64_t midnight = (int64_t)(today - 100) * US_PER_DAY;
    const struct click clicks[] = {{midnight - 1, "aaaaaaa", NULL}, {midnight, "aaaaaaa", NULL},
        {midnight + 1, "aaaaaaa", NULL}, {midnight + US_PER_DAY, "aaaaaaa", NULL}};
    put_batch(&stream, 0, clicks, ARRAY_LEN(clicks));
    flush(&stream);
    struct consumer *consumer = start(brokers, &stream, 0);
    await_total(4);
    stop(consumer);
    assert_string_equal(
        test_db_text(superuser, "SELECT string_agg(clicks::text, ' ' ORDER BY day) FROM dunlin.clicks_daily"),
        "1 2 1");
    assert_int_equal(
        test_db_int64(superuser, "SELECT (min(day) - date '1970-01-01')::bigint FROM dunlin.clicks_daily"),
        today - 101);
    close_stream(&stream);
}

// ---- dead letters

#define LETTERS_MAX 16
struct letters {
    size_t count;
    size_t len[LETTERS_MAX];
    unsigned char bytes[LETTERS_MAX][256];
};

static enum status from_the_beginning(void *arg, int32_t partition, int64_t *offset) {
    (void)arg;
    (void)partition;
    *offset = -1;
    return STATUS_OK;
}

static void ignore(void *arg) {
    (void)arg;
}

static void read_letters(const struct stream *stream, size_t wanted, struct letters *out) {
    const struct bus_consumer_options options = {.brokers = brokers,
        .topic = stream->dead,
        .group = stream->groups[1],
        .client = "clicks-test",
        .position = from_the_beginning,
        .revoked = ignore};
    struct bus_consumer *consumer = NULL;
    assert_int_equal(bus_consumer_open(&options, &consumer, NULL), STATUS_OK);
    int64_t until = base_monotonic_us() + PATIENCE_US;
    int idle = 0;
    while (idle < 3 && base_monotonic_us() < until) {
        struct bus_record record;
        if (bus_consumer_poll(consumer, 100, &record) != STATUS_OK) {
            idle += out->count >= wanted;
            continue;
        }
        assert_true(out->count < LETTERS_MAX && record.len <= sizeof out->bytes[0]);
        memcpy(out->bytes[out->count], record.bytes, record.len);
        out->len[out->count++] = record.len;
    }
    bus_consumer_close(consumer);
    assert_int_equal(out->count, wanted);
}

static void assert_letter_is_batch(
    const struct letters *letters, size_t index, uint64_t sequence, size_t clicks) {
    Dunlin__V1__ClickBatch *batch =
        dunlin__v1__click_batch__unpack(NULL, letters->len[index], letters->bytes[index]);
    assert_non_null(batch);
    assert_int_equal(batch->sequence, sequence);
    assert_int_equal(batch->n_clicks, clicks);
    dunlin__v1__click_batch__free_unpacked(batch, NULL);
}

static void what_can_not_be_counted_is_a_dead_letter(void **state) {
    (void)state;
    struct stream stream;
    open_stream(&stream);
    int64_t now = base_wall_us();
    const struct click mixed[] = {{now, "aaaaaaa", NULL}, {now + 2 * HOUR_MS * US_PER_MS, "aaaaaaa", NULL},
        {now - 401 * US_PER_DAY, "aaaaaaa", NULL}, {now, "no code", NULL}, {now, "aaaaaaa", "\xff\xfe"},
        {now, "aaaaaaa", NULL}};
    const struct click fine[] = {{now, "bbbbbbb", NULL}};
    put_batch(&stream, 0, fine, 1);
    put(&stream, 0, "{\"json\":true}", 13);
    put_batch(&stream, 0, mixed, ARRAY_LEN(mixed));
    put(&stream, 0, "", 0);
    put_batch(&stream, 0, fine, 1);
    flush(&stream);
    struct consumer *consumer = start(brokers, &stream, 0);
    await_total(4);
    await_metric(consumer->clicks.series.records, 5);
    const struct clicks_series *series = &consumer->clicks.series;
    assert_int_equal(metric_value(series->dead[BATCH_FAULT_RECORD]), 2);
    assert_int_equal(metric_value(series->dead[BATCH_FAULT_TIME]), 2);
    assert_int_equal(metric_value(series->dead[BATCH_FAULT_CODE]), 1);
    assert_int_equal(metric_value(series->dead[BATCH_FAULT_TEXT]), 1);
    struct letters letters = {0};
    read_letters(&stream, 3, &letters);
    assert_int_equal(letters.len[0], 13);
    assert_memory_equal(letters.bytes[0], "{\"json\":true}", 13);
    assert_letter_is_batch(&letters, 1, 1, 4);
    assert_int_equal(letters.len[2], 0);
    stop(consumer);
    assert_int_equal(total(), 4);
    close_stream(&stream);
}

// ---- positions

static void another_group_goes_on_and_a_replay_counts_the_same(void **state) {
    (void)state;
    struct stream stream;
    open_stream(&stream);
    put_many(&stream, 100);
    flush(&stream);
    struct consumer *consumer = start(brokers, &stream, 0);
    await_total(100 * PER_BATCH);
    stop(consumer);

    // A group that Kafka knows nothing of: the position is Postgres' all the same.
    put_many(&stream, 40);
    flush(&stream);
    consumer = start(brokers, &stream, 1);
    await_total(140 * PER_BATCH);
    await_metric(consumer->clicks.series.records, 40);
    assert_int_equal(metric_value(consumer->clicks.series.records), 40);
    stop(consumer);
    assert_even(140);

    test_db_run(superuser, "TRUNCATE dunlin.clicks_daily, dunlin.click_offsets");
    consumer = start(brokers, &stream, 0);
    await_total(140 * PER_BATCH);
    stop(consumer);
    assert_even(140);
    close_stream(&stream);
}

// Two groups read every partition, as a consumer that was taken for dead and its heir do.
static void a_rival_counts_nothing_twice(void **state) {
    (void)state;
    struct stream stream;
    open_stream(&stream);
    struct consumer *first = start(brokers, &stream, 0);
    struct consumer *second = start(brokers, &stream, 1);
    int64_t until = base_monotonic_us() + PATIENCE_US;
    int batches = 0;
    // Both are to count, and at least one is to be late.
    while (metric_value(first->clicks.series.applied) == 0 ||
           metric_value(second->clicks.series.applied) == 0 ||
           metric_value(first->clicks.series.lost) + metric_value(second->clicks.series.lost) == 0) {
        assert_true(base_monotonic_us() < until);
        put_many(&stream, 20);
        batches += 20;
        flush(&stream);
        (void)usleep(20 * 1000);
    }
    await_total(batches * PER_BATCH);
    stop(first);
    stop(second);
    assert_even(batches);
    assert_int_equal(metric_value(first->clicks.series.counted) + metric_value(second->clicks.series.counted),
        batches * PER_BATCH);
    close_stream(&stream);
}

// A topic that was made anew, as far as the position can tell: it lies past the end.
static void a_position_past_the_end_goes_on_from_the_earliest(void **state) {
    (void)state;
    struct stream stream;
    open_stream(&stream);
    put_many(&stream, PARTITIONS);
    flush(&stream);
    struct consumer *consumer = start(brokers, &stream, 0);
    await_total(PARTITIONS * PER_BATCH);
    stop(consumer);
    test_db_run(
        superuser, "TRUNCATE dunlin.clicks_daily; UPDATE dunlin.click_offsets SET next_offset = 1000");
    consumer = start(brokers, &stream, 0);
    await_total(PARTITIONS * PER_BATCH);
    stop(consumer);
    assert_int_equal(test_db_int64(superuser, "SELECT max(next_offset) FROM dunlin.click_offsets"), 1);
    close_stream(&stream);
}

// ---- trouble

static void lost_connections_lose_and_double_nothing(void **state) {
    (void)state;
    struct stream stream;
    open_stream(&stream);
    struct consumer *consumer = start(brokers, &stream, 0);
    int64_t until = base_monotonic_us() + 5 * US_PER_S;
    int batches = 0;
    while (base_monotonic_us() < until) {
        put_many(&stream, 50);
        batches += 50;
        flush(&stream);
        (void)test_db_int64(superuser,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE application_name = 'dunlin-clicks' AND datname = current_database()");
        (void)usleep(30 * 1000);
    }
    await_total(batches * PER_BATCH);
    print_message("%d batches, %lld attempts failed, %lld positions lost\n", batches,
        (long long)metric_value(consumer->clicks.series.failed),
        (long long)metric_value(consumer->clicks.series.lost));
    assert_true(metric_value(consumer->clicks.series.failed) > 0);
    stop(consumer);
    assert_even(batches);
    close_stream(&stream);
}

#define MONTHS "SELECT count(*) FROM pg_class WHERE relname LIKE 'clicks\\_daily\\_2%' AND relkind = 'r'"

static void waits_for_kafka_and_stops_at_once(void **state) {
    (void)state;
    struct stream stream;
    open_stream(&stream);
    test_db_run(superuser,
        "DO $$ DECLARE name text; BEGIN FOR name IN SELECT relname FROM pg_class WHERE relname "
        "LIKE 'clicks\\_daily\\_2%' AND relkind = 'r' LOOP EXECUTE format('DROP TABLE dunlin.%I', "
        "name); END LOOP; END $$");
    assert_int_equal(test_db_int64(superuser, MONTHS), 0);
    struct consumer *consumer = start(NOWHERE, &stream, 0);
    // Meanwhile it looks after the months of clicks_daily.
    int64_t until = base_monotonic_us() + PATIENCE_US;
    while (test_db_int64(superuser, MONTHS) < 3 && base_monotonic_us() < until)
        (void)usleep(10 * 1000);
    assert_int_equal(test_db_int64(superuser, MONTHS), 3);
    assert_false(consume_is_up(consumer->consume));
    int64_t begun = base_monotonic_us();
    stop(consumer);
    assert_true(base_monotonic_us() - begun < 8 * US_PER_S);
    close_stream(&stream);
}

static int open_db(void **state) {
    (void)state;
    test_db = test_db_create();
    superuser = test_db_open(test_db, "superuser");
    return 0;
}

static int close_db(void **state) {
    (void)state;
    db_free(superuser);
    test_db_drop(test_db);
    return 0;
}

int main(void) {
    brokers = getenv("DUNLIN_TEST_KAFKA");
    if (brokers == NULL || *brokers == '\0') {
        (void)fprintf(stderr, "DUNLIN_TEST_KAFKA is not set: this test needs a real Kafka (host:port)\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_equal_what_went_in),
        cmocka_unit_test(a_click_belongs_to_its_own_day),
        cmocka_unit_test(what_can_not_be_counted_is_a_dead_letter),
        cmocka_unit_test(another_group_goes_on_and_a_replay_counts_the_same),
        cmocka_unit_test(a_rival_counts_nothing_twice),
        cmocka_unit_test(a_position_past_the_end_goes_on_from_the_earliest),
        cmocka_unit_test(lost_connections_lose_and_double_nothing),
        cmocka_unit_test(waits_for_kafka_and_stops_at_once),
    };
    return cmocka_run_group_tests(tests, open_db, close_db);
}
