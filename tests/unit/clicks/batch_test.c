// SPDX-License-Identifier: MIT
// Records as a hostile or broken producer writes them; sanitizers watch.
#include "services/clicks/batch.h"

#include "common/crypto/crypto.h"
#include "dunlin/v1/link.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW INT64_C(1796000000000000)

static struct batch_reader reader;

static int open_reader(void **state) {
    (void)state;
    batch_reader_init(&reader);
    return 0;
}

static int close_reader(void **state) {
    (void)state;
    batch_reader_done(&reader);
    return 0;
}

static size_t pack_sample(unsigned char out[256]) {
    Dunlin__V1__Click first = DUNLIN__V1__CLICK__INIT;
    first.at_us = NOW;
    first.code = (char[]){"aZ09_-x"};
    first.user_agent = (char[]){"Mozilla/5.0 \xc3\xa9"};
    first.has_visitor = 1;
    first.visitor = 42;
    Dunlin__V1__Click second = DUNLIN__V1__CLICK__INIT;
    second.at_us = NOW - 1;
    second.code = (char[]){"bbbbbbb"};
    Dunlin__V1__ClickBatch batch = DUNLIN__V1__CLICK_BATCH__INIT;
    batch.producer = 7;
    batch.lane = 3;
    batch.sequence = 99;
    batch.clicks = (Dunlin__V1__Click *[]){&first, &second};
    batch.n_clicks = 2;
    assert_true(dunlin__v1__click_batch__get_packed_size(&batch) <= 256);
    return dunlin__v1__click_batch__pack(&batch, out);
}

static void reads_what_was_packed(void **state) {
    (void)state;
    unsigned char bytes[256];
    size_t len = pack_sample(bytes);
    Dunlin__V1__ClickBatch *batch = batch_read(&reader, bytes, len);
    assert_non_null(batch);
    assert_int_equal(batch->producer, 7);
    assert_int_equal(batch->lane, 3);
    assert_int_equal(batch->sequence, 99);
    assert_int_equal(batch->n_clicks, 2);
    assert_string_equal(batch->clicks[0]->code, "aZ09_-x");
    assert_int_equal(batch_judge(batch->clicks[0], NOW), BATCH_FAULT_NONE);
    assert_int_equal(batch_judge(batch->clicks[1], NOW), BATCH_FAULT_NONE);
}

// A cut between two clicks leaves a shorter batch that is whole in itself; every other one leaves nothing.
static void a_truncated_record_is_none(void **state) {
    (void)state;
    unsigned char bytes[256];
    size_t len = pack_sample(bytes);
    size_t whole = 0;
    for (size_t cut = 0; cut < len; cut++) {
        unsigned char *copy = malloc(cut + 1); // its own block, so that a read past the end is seen
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        Dunlin__V1__ClickBatch *batch = batch_read(&reader, cut > 0 ? copy : (void *)"", cut);
        if (batch != NULL) {
            assert_true(batch->n_clicks < 2);
            whole++;
        }
        free(copy);
    }
    assert_int_equal(whole, 2);
}

static void flipped_bytes_never_crash(void **state) {
    (void)state;
    unsigned char bytes[256];
    size_t len = pack_sample(bytes);
    for (size_t at = 0; at < len; at++)
        for (unsigned value = 0; value < 256; value++) {
            unsigned char kept = bytes[at];
            bytes[at] = (unsigned char)value;
            Dunlin__V1__ClickBatch *batch = batch_read(&reader, bytes, len);
            for (size_t i = 0; batch != NULL && i < batch->n_clicks; i++)
                assert_in_range(batch_judge(batch->clicks[i], NOW), 0, BATCH_FAULT_COUNT - 1);
            bytes[at] = kept;
        }
}

static void assert_no_batch(const void *bytes, size_t len) {
    assert_null(batch_read(&reader, bytes, len));
}

static void other_schemas_are_none(void **state) {
    (void)state;
    assert_no_batch(NULL, 0);
    assert_no_batch("", 0);
    assert_no_batch("\x00", 1);
    assert_no_batch("{\"code\":\"aaaaaaa\"}", 18);
    Dunlin__V1__Link link = DUNLIN__V1__LINK__INIT;
    unsigned char packed[256];
    link.code = (char[]){"aaaaaaa"};
    link.owner = (char[]){"owner"};
    link.url.data = (uint8_t *)"https://dest.example/";
    link.url.len = 21;
    assert_true(dunlin__v1__link__get_packed_size(&link) <= sizeof packed);
    assert_no_batch(packed, dunlin__v1__link__pack(&link, packed));
    // producer, lane, sequence; then a click whose length says 0xFFFFFFFF
    assert_no_batch("\x09\x07\0\0\0\0\0\0\0\x10\x03\x18\x63\x22\xff\xff\xff\xff\x0f\x08\x01", 21);
    // a click without its code, and one without its time
    assert_no_batch("\x09\x07\0\0\0\0\0\0\0\x10\x03\x18\x63\x22\x02\x08\x01", 17);
    assert_no_batch("\x09\x07\0\0\0\0\0\0\0\x10\x03\x18\x63\x22\x06\x12\x04"
                    "aaaa",
        21);
    // the sequence as bytes instead of a number
    assert_no_batch("\x09\x07\0\0\0\0\0\0\0\x10\x03\x1a\x01\x63", 14);
}

static void unknown_and_repeated_fields_are_let_through(void **state) {
    (void)state;
    // sequence twice (the last one holds), then unknown field 15
    static const char bytes[] = "\x09\x07\0\0\0\0\0\0\0\x10\x03\x18\x63\x18\x64\x7a\x02hi";
    const Dunlin__V1__ClickBatch *batch = batch_read(&reader, bytes, sizeof bytes - 1);
    assert_non_null(batch);
    assert_int_equal(batch->sequence, 100);
    assert_int_equal(batch->n_clicks, 0);
}

// Groups and lengths can nest as deep as the bytes last; none of it is a message of ours.
static void deep_nesting_is_harmless(void **state) {
    (void)state;
    unsigned char bytes[4000];
    for (size_t i = 0; i < sizeof bytes; i += 4)
        memcpy(bytes + i, (const unsigned char[]){0x22, 0xff, 0x0f, 0x22}, 4);
    assert_no_batch(bytes, sizeof bytes);
    memset(bytes, 0x0b, sizeof bytes);
    assert_no_batch(bytes, sizeof bytes);
}

// The most clicks that a record can hold: the memory is bounded, and a larger record is none at all.
static void giant_records_are_bounded(void **state) {
    (void)state;
    static const unsigned char head[] = {9, 7, 0, 0, 0, 0, 0, 0, 0, 0x10, 3, 0x18, 0x63};
    static const unsigned char click[] = {0x22, 4, 8, 1, 0x12, 0};
    size_t head_len = sizeof head;
    size_t clicks = (BATCH_BYTES_MAX - head_len) / 6;
    size_t len = head_len + clicks * 6;
    unsigned char *bytes = calloc(1, BATCH_BYTES_MAX + 1);
    assert_non_null(bytes);
    memcpy(bytes, head, head_len);
    for (size_t i = 0; i < clicks; i++)
        memcpy(bytes + head_len + i * 6, click, 6);
    const Dunlin__V1__ClickBatch *batch = batch_read(&reader, bytes, len);
    assert_non_null(batch);
    assert_int_equal(batch->n_clicks, clicks);
    assert_true(reader.arena.total <= BATCH_MEMORY_MAX);
    assert_int_equal(batch_judge(batch->clicks[0], NOW), BATCH_FAULT_CODE);
    assert_no_batch(bytes, BATCH_BYTES_MAX + 1);
    free(bytes);
}

// Judges one click after it went through a record.
static enum batch_fault judge(int64_t at_us, const char *code, const char *user_agent) {
    Dunlin__V1__Click click = DUNLIN__V1__CLICK__INIT;
    click.at_us = at_us;
    click.code = (char *)(uintptr_t)code;
    click.user_agent = (char *)(uintptr_t)user_agent;
    Dunlin__V1__ClickBatch batch = DUNLIN__V1__CLICK_BATCH__INIT;
    batch.clicks = (Dunlin__V1__Click *[]){&click};
    batch.n_clicks = 1;
    unsigned char packed[256];
    assert_true(dunlin__v1__click_batch__get_packed_size(&batch) <= sizeof packed);
    Dunlin__V1__ClickBatch *read = batch_read(&reader, packed, dunlin__v1__click_batch__pack(&batch, packed));
    assert_non_null(read);
    return batch_judge(read->clicks[0], NOW);
}

static void judges_the_time_by_itself(void **state) {
    (void)state;
    assert_int_equal(judge(NOW - 400 * US_PER_DAY, "aaaaaaa", NULL), BATCH_FAULT_NONE);
    assert_int_equal(judge(NOW - 400 * US_PER_DAY - 1, "aaaaaaa", NULL), BATCH_FAULT_TIME);
    assert_int_equal(judge(NOW + 3600 * US_PER_S, "aaaaaaa", NULL), BATCH_FAULT_NONE);
    assert_int_equal(judge(NOW + 3600 * US_PER_S + 1, "aaaaaaa", NULL), BATCH_FAULT_TIME);
    assert_int_equal(judge(INT64_MIN, "aaaaaaa", NULL), BATCH_FAULT_TIME);
    assert_int_equal(judge(INT64_MAX, "aaaaaaa", NULL), BATCH_FAULT_TIME);
    assert_int_equal(judge(0, "aaaaaaa", NULL), BATCH_FAULT_TIME);
}

static void judges_the_code(void **state) {
    (void)state;
    assert_int_equal(judge(NOW, "abcd", NULL), BATCH_FAULT_NONE);
    assert_int_equal(judge(NOW, "123456789012345678901234567890", NULL), BATCH_FAULT_NONE);
    assert_int_equal(judge(NOW, "1234567890123456789012345678901", NULL), BATCH_FAULT_CODE);
    assert_int_equal(judge(NOW, "abc", NULL), BATCH_FAULT_CODE);
    assert_int_equal(judge(NOW, "", NULL), BATCH_FAULT_CODE);
    assert_int_equal(judge(NOW, "aaa aaa", NULL), BATCH_FAULT_CODE);
    assert_int_equal(judge(NOW, "\xff\xfe\xfd\xfc", NULL), BATCH_FAULT_CODE);
    assert_int_equal(judge(NOW, "aaaaaa\xc3\xa9", NULL), BATCH_FAULT_CODE);
}

static void judges_the_texts(void **state) {
    (void)state;
    assert_int_equal(judge(NOW, "aaaaaaa", ""), BATCH_FAULT_NONE);
    assert_int_equal(judge(NOW, "aaaaaaa", "curl/8 \xe2\x82\xac"), BATCH_FAULT_NONE);
    assert_int_equal(judge(NOW, "aaaaaaa", "\xff"), BATCH_FAULT_TEXT);
    assert_int_equal(judge(NOW, "aaaaaaa", "\xc0\x80"), BATCH_FAULT_TEXT);
    assert_int_equal(judge(NOW, "aaaaaaa", "\xed\xa0\x80"), BATCH_FAULT_TEXT);
}

// In C a text ends at its first NUL, on the wire it does not.
static void a_nul_inside_a_text_is_seen(void **state) {
    (void)state;
    static const char code[] = "\x09\x07\0\0\0\0\0\0\0\x10\x03\x18\x63\x22\x0b\x08\x01\x12\x07"
                               "aaaa\0bb";
    Dunlin__V1__ClickBatch *batch = batch_read(&reader, code, sizeof code - 1);
    assert_non_null(batch);
    assert_int_equal(batch_judge(batch->clicks[0], 1), BATCH_FAULT_CODE);
    static const char agent[] = "\x09\x07\0\0\0\0\0\0\0\x10\x03\x18\x63\x22\x0d\x08\x01\x12\x04"
                                "aaaa\x22\x03"
                                "b\0c";
    batch = batch_read(&reader, agent, sizeof agent - 1);
    assert_non_null(batch);
    assert_int_equal(batch_judge(batch->clicks[0], 1), BATCH_FAULT_TEXT);
}

int main(void) {
    crypto_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_packed),
        cmocka_unit_test(a_truncated_record_is_none),
        cmocka_unit_test(flipped_bytes_never_crash),
        cmocka_unit_test(other_schemas_are_none),
        cmocka_unit_test(unknown_and_repeated_fields_are_let_through),
        cmocka_unit_test(deep_nesting_is_harmless),
        cmocka_unit_test(giant_records_are_bounded),
        cmocka_unit_test(judges_the_time_by_itself),
        cmocka_unit_test(judges_the_code),
        cmocka_unit_test(judges_the_texts),
        cmocka_unit_test(a_nul_inside_a_text_is_seen),
    };
    return cmocka_run_group_tests(tests, open_reader, close_reader);
}
