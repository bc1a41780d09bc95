// SPDX-License-Identifier: MIT
#include "cli/migrate/migrate.h"

// cmocka.h needs these before it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void test_names(void **state) {
    (void)state;
    unsigned number = 77;
    assert_true(migrate_parse_name("0001_a.sql", &number));
    assert_int_equal(1, number);
    assert_true(migrate_parse_name("0942_links_2.sql", &number));
    assert_int_equal(942, number);
    static const char *const wrong[] = {"", ".sql", "0001.sql", "0001_.sql", "001_a.sql", "00001_a.sql",
        "0001_A.sql", "0001-a.sql", "0001_a.sql~", "a001_a.sql", "0001_a'.sql"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_false(migrate_parse_name(wrong[i], &number));
    }
    assert_int_equal(942, number);
}

// The statements of `sql` as "line:text|line:text".
static const char *split(const char *sql) {
    static char out[1024];
    char text[512];
    (void)snprintf(text, sizeof text, "%s", sql);
    struct migrate_file file = {.sql = text, .sql_len = strlen(sql)};
    struct migrate_statement statement;
    size_t len = 0;
    out[0] = '\0';
    for (size_t at = 0; migrate_next(&file, &at, &statement);) {
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%u:%.*s", len > 0 ? "|" : "", statement.line,
            (int)statement.len, statement.text);
    }
    return out;
}

static void test_statements_end_at_semicolons(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {" \n ; ;; -- nothing\n", ""},
        {"a", "1:a"},
        {"a; b\n;\n\nc", "1:a|1:b\n|4:c"},
        {"-- a;\n/* b; /* c; */ d; */ e;", "2:e"},
        {"a -- b; c\nd; e", "1:a -- b; c\nd|2:e"},
        {"a 'b;''c;' \"d;\"; e", "1:a 'b;''c;' \"d;\"|1:e"},
        {"a '\\'; b", "1:a '\\'|1:b"},
        {"a E'\\';' ; b", "1:a E'\\';' |1:b"},
        {"a namee'\\'; b", "1:a namee'\\'|1:b"},
        {"a $$b;$c$;$$; d", "1:a $$b;$c$;$$|1:d"},
        {"a $t1$b;$$;$t1$; d", "1:a $t1$b;$$;$t1$|1:d"},
        {"a $1; b$c$; d", "1:a $1|1:b$c$|1:d"},
        {"rule (a; b); c", "1:rule (a; b)|1:c"},
        {"f begin atomic a; case b end; end; c", "1:f begin atomic a; case b end; end|1:c"},
        {"begin; a; end; b", "1:begin|1:a|1:end|1:b"},
        {"a 'open; b", "1:a 'open; b"},
        {"a $$open; b", "1:a $$open; b"},
        {"/* open; a", ""},
        {"a - b / c;", "1:a - b / c"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(cases[i][1], split(cases[i][0]));
    }
}

static void test_transaction_words(void **state) {
    (void)state;
    static const char *const control[] = {"BEGIN", "commit ", "Rollback to x", "START TRANSACTION", "end"};
    static const char *const other[] = {"CREATE TABLE begin (x int)", "committed", "SELECT 1", ""};
    for (size_t i = 0; i < ARRAY_LEN(control); i++) {
        assert_true(migrate_is_transaction_control(
            &(struct migrate_statement){.text = control[i], .len = strlen(control[i])}));
    }
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        assert_false(migrate_is_transaction_control(
            &(struct migrate_statement){.text = other[i], .len = strlen(other[i])}));
    }
}

static void test_plan(void **state) {
    (void)state;
    struct migrate_file files[] = {{.number = 1, .name = "0001_a.sql", .checksum = "aa"},
        {.number = 2, .name = "0002_b.sql", .checksum = "bb"}};
    struct migrate_set set = {.files = files, .count = 2};
    struct migrate_applied applied[] = {{1, "aa"}, {2, "bb"}, {3, "cc"}};
    struct buf why;
    buf_init(&why, MIGRATE_WHY_MAX);
    size_t done = 77;
    assert_true(migrate_plan(&set, applied, 0, &done, &why));
    assert_int_equal(0, done);
    assert_true(migrate_plan(&set, applied, 2, &done, &why));
    assert_int_equal(2, done);
    assert_int_equal(0, why.len);

    assert_false(migrate_plan(&set, applied, 3, &done, &why));
    assert_string_equal("the database has migration 0003, which these files don't: it is newer than they are",
        buf_text(&why));
    buf_clear(&why);
    assert_false(migrate_plan(&set, applied + 1, 1, &done, &why));
    assert_string_equal("the database has migration 0002, but not 0001", buf_text(&why));
    buf_clear(&why);
    applied[0].checksum[0] = 'x';
    assert_false(migrate_plan(&set, applied, 1, &done, &why));
    assert_non_null(strstr(buf_text(&why), "0001_a.sql was changed after it was applied"));
    assert_int_equal(2, done);
    buf_done(&why);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_statements_end_at_semicolons),
        cmocka_unit_test(test_transaction_words),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
