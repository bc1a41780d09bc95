// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/json/json.h"
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text_case {
    const char *text;
    size_t len;
};
#define TEXT(literal)                                                                                        \
    { literal, sizeof(literal) - 1 }

static const struct text_case malformed[] = {
    TEXT(""),
    TEXT("   "),
    TEXT("{"),
    TEXT("{} x"),
    TEXT("{}{}"),
    TEXT("{\"a\":1,}"),
    TEXT("[1,]"),
    TEXT("{a:1}"),
    TEXT("{'a':1}"),
    TEXT("nul"),
    TEXT("NaN"),
    TEXT("Infinity"),
    TEXT("// x\n1"),
    TEXT("\xEF\xBB\xBF{}"), // a BOM
    TEXT("\xFF\xFE{\0}\0"), // UTF-16
    TEXT("{\"a\":1,\"a\":2}"),
    TEXT("{\"x\":{\"a\":1,\"\\u0061\":2}}"),
    TEXT("\"\\uD800\""),
    TEXT("\"\\uD800x\""),
    TEXT("\"\\uD800\\u0041\""),
    TEXT("\"\\uDC00\""),
    TEXT("\"\\uDC00\\uD800\""),
    TEXT("\"\xC0\xAF\""),
    TEXT("\"\xE2\x28\""),
    TEXT("\"\xFF\""),
    TEXT("\"\xE9t\xE9\""),        // Latin-1
    TEXT("\"\xED\xA0\x80\""),     // a surrogate in UTF-8
    TEXT("\"\xF4\x90\x80\x80\""), // past U+10FFFF
    TEXT("\"\xE2\x82"),           // cut
    TEXT("{\"\xFF\":1}"),         // in a key
    TEXT("\"a\nb\""),             // a raw control
    TEXT("\"a\0b\""),
    TEXT("{\"a\":1}\0"),
    TEXT("\"\\x41\""),
    TEXT("\"\\u00g0\""),
    TEXT("9223372036854775808"),
    TEXT("-9223372036854775809"),
    TEXT("1e400"),
    TEXT("-1e400"),
    TEXT("01"),
    TEXT("+1"),
    TEXT(".5"),
    TEXT("1."),
    TEXT("0x10"),
    TEXT("]"),
    TEXT("[}"),
};

static void test_refuses_malformed(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
        // An exact copy, so that a sanitizer sees reads past the end.
        char *copy = malloc(malformed[i].len + 1);
        memcpy(copy, malformed[i].text, malformed[i].len);
        copy = realloc(copy, malformed[i].len > 0 ? malformed[i].len : 1);
        struct json_doc *doc = NULL;
        struct problem why = {0};
        enum status status = json_parse(copy, malformed[i].len, &doc, &why);
        free(copy);
        if (status != STATUS_INVALID_ARGUMENT)
            fail_msg("case %zu was let through: %s", i, malformed[i].text);
        assert_null(doc);
        assert_string_equal(why.reason, "MALFORMED_JSON");
        assert_non_null(strstr(why.message, "line "));
        assert_null(strstr(why.message, "near '"));
    }
}

static void test_says_where(void **state) {
    (void)state;
    struct json_doc *doc = NULL;
    struct problem why = {0};
    const char twice[] = "{\n  \"a\": 1,\n  \"a\": 2\n}";
    assert_int_equal(json_parse(twice, strlen(twice), &doc, &why), STATUS_INVALID_ARGUMENT);
    assert_string_equal(why.message, "Duplicate object key, at line 3, column 5.");
    const char bom[] = "\xEF\xBB\xBF{}";
    assert_int_equal(json_parse(bom, strlen(bom), &doc, &why), STATUS_INVALID_ARGUMENT);
    assert_string_equal(why.message, "A byte order mark is not allowed, at line 1, column 1.");
    assert_int_equal(json_parse("x", 1, &doc, NULL), STATUS_INVALID_ARGUMENT);
}

// `depth` brackets, closed again where `closed`.
static enum status parse_nested(size_t depth, bool closed, bool in_member, struct problem *why) {
    struct buf text;
    buf_init(&text, 4 * depth + 64);
    size_t open = depth;
    if (in_member) {
        buf_puts(&text, "{\"url\":");
        open--;
    }
    for (size_t i = 0; i < open; i++)
        buf_putc(&text, '[');
    for (size_t i = 0; closed && i < open; i++)
        buf_putc(&text, ']');
    if (in_member && closed)
        buf_putc(&text, '}');
    assert_true(buf_ok(&text));
    struct json_doc *doc = NULL;
    enum status status = json_parse(text.data, text.len, &doc, why);
    json_doc_free(doc);
    buf_done(&text);
    return status;
}

static void *parse_depths(void *arg) {
    (void)arg;
    assert_int_equal(parse_nested(32, true, false, NULL), STATUS_OK);
    assert_int_equal(parse_nested(32, true, true, NULL), STATUS_OK);
    static const size_t depths[] = {33, 64, 2048, 10000, 1000000};
    for (size_t i = 0; i < ARRAY_LEN(depths); i++) {
        for (int form = 0; form < 4; form++) {
            struct problem why = {0};
            assert_int_equal(
                parse_nested(depths[i], (form & 1) != 0, (form & 2) != 0, &why), STATUS_INVALID_ARGUMENT);
            assert_string_equal(why.reason, "MALFORMED_JSON");
            assert_non_null(strstr(why.message, "32 levels"));
        }
    }
    return NULL;
}

static void test_bounds_depth_on_a_small_stack(void **state) {
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)64 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, parse_depths, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&attr), 0);
}

static void test_counts_no_brackets_in_strings(void **state) {
    (void)state;
    struct buf text;
    buf_init(&text, 4096);
    buf_puts(&text, "\"\\\"");
    for (int i = 0; i < 100; i++)
        buf_puts(&text, "[{");
    buf_puts(&text, "\\\\\"");
    struct json_doc *doc = NULL;
    assert_int_equal(json_parse(text.data, text.len, &doc, NULL), STATUS_OK);
    size_t len = 0;
    assert_non_null(json_text(json_root(doc), &len));
    assert_int_equal(len, 202);
    json_doc_free(doc);
    // Siblings don't add up.
    buf_clear(&text);
    buf_puts(&text, "[0");
    for (int i = 0; i < 100; i++)
        buf_puts(&text, ",[{}]");
    buf_putc(&text, ']');
    assert_int_equal(json_parse(text.data, text.len, &doc, NULL), STATUS_OK);
    assert_int_equal(json_size(json_root(doc)), 101);
    json_doc_free(doc);
    buf_done(&text);
}

static void test_reads_any_root(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum json_type type;
        const char *name;
    } cases[] = {
        {"null", JSON_NULL, "null"},
        {"true", JSON_TRUE, "boolean"},
        {" false\n", JSON_FALSE, "boolean"},
        {"12", JSON_NUMBER, "number"},
        {"1.5", JSON_NUMBER, "number"},
        {"\"x\"", JSON_STRING, "string"},
        {"[]", JSON_ARRAY, "array"},
        {"{}", JSON_OBJECT, "object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_doc *doc = NULL;
        assert_int_equal(json_parse(cases[i].text, strlen(cases[i].text), &doc, NULL), STATUS_OK);
        const struct json_value *root = json_root(doc);
        assert_int_equal(json_type(root), cases[i].type);
        assert_string_equal(json_type_name(json_type(root)), cases[i].name);
        assert_null(json_member(root, "url"));
        assert_int_equal(json_size(root), 0);
        assert_int_equal(json_text(root, NULL) != NULL, cases[i].type == JSON_STRING);
        json_doc_free(doc);
    }
    json_doc_free(NULL);
}

static void test_reads_members_in_order(void **state) {
    (void)state;
    const char text[] = "{\"z\":{\"deep\":[1,[2,{\"x\":null}]]},\"a\":true,\"m\":\"v\",\"\":0}";
    struct json_doc *doc = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), STATUS_OK);
    const struct json_value *root = json_root(doc);
    assert_int_equal(json_size(root), 4);
    assert_string_equal(json_key_at(root, 0), "z");
    assert_string_equal(json_key_at(root, 1), "a");
    assert_string_equal(json_key_at(root, 2), "m");
    assert_string_equal(json_key_at(root, 3), "");
    assert_ptr_equal(json_at(root, 2), json_member(root, "m"));
    assert_string_equal(json_text(json_member(root, "m"), NULL), "v");
    assert_null(json_member(root, "M"));
    const struct json_value *deep = json_member(json_member(root, "z"), "deep");
    assert_int_equal(json_type(deep), JSON_ARRAY);
    int64_t number = 0;
    assert_true(json_int64(json_at(json_at(deep, 1), 0), &number));
    assert_int_equal(number, 2);
    assert_int_equal(json_type(json_member(json_at(json_at(deep, 1), 1), "x")), JSON_NULL);
    json_doc_free(doc);
}

static void test_lets_an_escaped_nul_through(void **state) {
    (void)state;
    const char text[] = "[\"https://dest.example/\\u0000x\",\"plain\"]";
    struct json_doc *doc = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), STATUS_OK);
    size_t len = 0;
    const char *url = json_text(json_at(json_root(doc), 0), &len);
    assert_int_equal(len, 23);
    assert_memory_equal(url, "https://dest.example/\0x", len);
    assert_true(json_has_nul(json_at(json_root(doc), 0)));
    assert_false(json_has_nul(json_at(json_root(doc), 1)));
    json_doc_free(doc);
    const char key[] = "{\"a\\u0000b\":1}";
    struct problem why;
    assert_int_equal(json_parse(key, strlen(key), &doc, &why), STATUS_INVALID_ARGUMENT);
    assert_string_equal(why.reason, "INVALID_FIELD");
    assert_int_equal(why.violation_count, 1);
    assert_string_equal(why.violations[0].field, "body");
}

static void test_reads_whole_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_whole;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"302", true, 302},
        {"302.0", true, 302},
        {"3e2", true, 300},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"1.5", false, 0},
        {"1e300", false, 0},
        {"9223372036854775807.0", false, 0},
        {"\"5\"", false, 0},
        {"true", false, 0},
        {"null", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_doc *doc = NULL;
        assert_int_equal(json_parse(cases[i].text, strlen(cases[i].text), &doc, NULL), STATUS_OK);
        int64_t value = 77;
        assert_int_equal(json_int64(json_root(doc), &value), cases[i].is_whole);
        assert_true(value == (cases[i].is_whole ? cases[i].value : 77));
        json_doc_free(doc);
    }
}

static void assert_written(const char *text, size_t len, const char *expected) {
    struct buf out;
    struct json_writer json;
    buf_init(&out, 4096);
    json_begin(&json, &out);
    json_put_text(&json, text, len);
    assert_true(buf_ok(&out));
    assert_string_equal(buf_text(&out), expected);
    buf_done(&out);
}

static void test_escapes_text(void **state) {
    (void)state;
    static const struct {
        struct text_case in;
        const char *out;
    } cases[] = {
        {TEXT(""), "\"\""},
        {TEXT("plain / text"), "\"plain / text\""},
        {TEXT("\"\\"), "\"\\\"\\\\\""},
        {TEXT("\r\n\t"), "\"\\r\\n\\t\""},
        {TEXT("\x1b[31m\x7f\b\f"), "\"\\u001b[31m\\u007f\\u0008\\u000c\""},
        {TEXT("a\0b"), "\"a\\u0000b\""},
        {TEXT("h\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80"), "\"h\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {TEXT("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {TEXT("\xE2\x28"), "\"\xEF\xBF\xBD(\""},
        {TEXT("\xFF"), "\"\xEF\xBF\xBD\""},
        {TEXT("x\xE2\x82"), "\"x\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {TEXT("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {TEXT("\xF4\x90\x80\x80!"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD!\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_written(cases[i].in.text, cases[i].in.len, cases[i].out);
}

static void test_writes_nested(void **state) {
    (void)state;
    struct buf out;
    struct json_writer json;
    buf_init(&out, 4096);
    json_begin(&json, &out);
    json_object_begin(&json);
    json_key(&json, "list");
    json_array_begin(&json);
    json_put_int64(&json, INT64_MIN);
    json_put_uint64(&json, UINT64_MAX);
    json_object_begin(&json);
    json_object_end(&json);
    json_array_begin(&json);
    json_array_end(&json);
    json_array_end(&json);
    json_key(&json, "q\"k");
    json_put_string(&json, NULL);
    json_key(&json, "t");
    json_put_bool(&json, true);
    json_key(&json, "o");
    json_object_begin(&json);
    json_key(&json, "d");
    json_put_double(&json, 0.1);
    json_key(&json, "n");
    json_put_double(&json, (double)NAN);
    json_object_end(&json);
    json_key(&json, "e");
    json_put_null(&json);
    json_object_end(&json);
    assert_string_equal(buf_text(&out),
        "{\"list\":[-9223372036854775808,18446744073709551615,{},[]],\"q\\\"k\":null,"
        "\"t\":true,\"o\":{\"d\":0.1,\"n\":null},\"e\":null}");
    buf_done(&out);
}

// Every byte on its own and in front of every other reads back, and stays on one line.
static void test_any_bytes_read_back(void **state) {
    (void)state;
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        const char bytes[2] = {(char)(pair >> 8), (char)(pair & 0xFF)};
        struct buf out;
        struct json_writer json;
        buf_init(&out, 256);
        json_begin(&json, &out);
        json_put_text(&json, bytes, sizeof bytes);
        for (size_t i = 0; i < out.len; i++)
            assert_true((unsigned char)out.data[i] >= 0x20 && out.data[i] != 0x7F);
        struct json_doc *doc = NULL;
        assert_int_equal(json_parse(out.data, out.len, &doc, NULL), STATUS_OK);
        if (pair < 0x8000 && (pair & 0x80) == 0) {
            size_t len = 0;
            assert_memory_equal(json_text(json_root(doc), &len), bytes, 2);
            assert_int_equal(len, 2);
        }
        json_doc_free(doc);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses_malformed),
        cmocka_unit_test(test_says_where),
        cmocka_unit_test(test_bounds_depth_on_a_small_stack),
        cmocka_unit_test(test_counts_no_brackets_in_strings),
        cmocka_unit_test(test_reads_any_root),
        cmocka_unit_test(test_reads_members_in_order),
        cmocka_unit_test(test_lets_an_escaped_nul_through),
        cmocka_unit_test(test_reads_whole_numbers),
        cmocka_unit_test(test_escapes_text),
        cmocka_unit_test(test_writes_nested),
        cmocka_unit_test(test_any_bytes_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
