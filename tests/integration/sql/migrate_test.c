// SPDX-License-Identifier: MIT
// The program dunlin-migrate, found in DUNLIN_BIN.
#include "tests/support/test_db.h"

// cmocka.h needs these before it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct test_db *test;
static struct db *superuser;
static char dir[64];
static char output[16384];

static void write_file(const char *name, const char *text) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(0, fclose(file));
}

static FILE *start(const char *arguments) {
    const char *bin = getenv("DUNLIN_BIN");
    if (bin == NULL) {
        fail_msg("DUNLIN_BIN is not set: it names the folder of the built programs");
    }
    char command[2048];
    int len = snprintf(command, sizeof command, "PG_URL='%s' timeout 60 '%s/dunlin-migrate' %s 2>&1",
        test_db_conninfo(test, "owner"), bin, arguments);
    assert_true(len > 0 && (size_t)len < sizeof command);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    return pipe;
}

// The exit code; what it printed is in `output`.
static int finish(FILE *pipe) {
    size_t len = fread(output, 1, sizeof output - 1, pipe);
    output[len] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int run(void) {
    char arguments[128];
    (void)snprintf(arguments, sizeof arguments, "--sql %s", dir);
    return finish(start(arguments));
}

static int64_t applied(void) {
    return test_db_int64(superuser, "SELECT count(*) FROM dunlin.schema_migrations");
}

static void expect_output(const char *part) {
    if (strstr(output, part) == NULL) {
        fail_msg("\"%s\" is not in the output: %s", part, output);
    }
}

static void test_usage(void **state) {
    (void)state;
    assert_int_equal(0, finish(start("--help")));
    expect_output("--database URI");
    assert_int_equal(2, finish(start("--nonsense")));
    assert_int_equal(2, finish(start("--wait x")));
    assert_int_equal(2, finish(start("extra")));
    assert_int_equal(2, finish(start("--database ''")));
}

static void test_applies_once(void **state) {
    (void)state;
    write_file("0001_one.sql", "CREATE TABLE dunlin.one (x int);\n");
    write_file("0002_two.sql", "-- two\nCREATE TABLE dunlin.two (x int);\nINSERT INTO dunlin.two VALUES (1)");
    char arguments[128];
    (void)snprintf(arguments, sizeof arguments, "--status --sql %s", dir);
    assert_int_equal(0, finish(start(arguments)));
    assert_string_equal("pending  0001_one.sql\npending  0002_two.sql\n", output);
    assert_string_equal("NULL", test_db_text(superuser, "SELECT to_regnamespace('dunlin')::text"));

    assert_int_equal(0, run());
    assert_string_equal("applied 0001_one.sql\napplied 0002_two.sql\n", output);
    assert_int_equal(0, run());
    assert_string_equal("nothing to do: 2 migrations are applied\n", output);
    assert_int_equal(1, test_db_int64(superuser, "SELECT count(*) FROM dunlin.two"));
    write_file("0003_three.sql", "CREATE TABLE dunlin.three (x int);");
    assert_int_equal(0, run());
    assert_string_equal("applied 0003_three.sql\n", output);
    assert_string_equal("1 0001_one.sql\n2 0002_two.sql\n3 0003_three.sql",
        test_db_text(superuser, "SELECT number || ' ' || name FROM dunlin.schema_migrations"
                                " WHERE applied_at > now() - interval '1 minute' ORDER BY number"));
}

static void test_changed_file_is_refused(void **state) {
    (void)state;
    write_file("0002_two.sql", "CREATE TABLE dunlin.two (x bigint);");
    write_file("0004_four.sql", "CREATE TABLE dunlin.four (x int);");
    assert_int_equal(1, run());
    expect_output("0002_two.sql was changed after it was applied");
    assert_int_equal(3, applied());
    write_file("0002_two.sql", "-- two\nCREATE TABLE dunlin.two (x int);\nINSERT INTO dunlin.two VALUES (1)");
    assert_int_equal(0, run());
    assert_int_equal(4, applied());
}

static void test_broken_file_is_rolled_back(void **state) {
    (void)state;
    write_file("0005_broken.sql", "CREATE TABLE dunlin.five (x int);\n\n"
                                  "CREATE FUNCTION dunlin.f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$;\n"
                                  "-- fails; here\nINSERT INTO\n dunlin.no_such_table VALUES (1);\n");
    write_file("0006_six.sql", "CREATE TABLE dunlin.six (x int);");
    assert_int_equal(1, run());
    expect_output("0005_broken.sql:5: SQLSTATE 42P01: relation \"dunlin.no_such_table\" does not exist");
    assert_string_equal("NULL", test_db_text(superuser, "SELECT to_regclass('dunlin.five')::text"));
    assert_int_equal(4, applied());
    // A failure that only running it shows, after what looks like an end.
    write_file("0005_broken.sql",
        "CREATE TABLE dunlin.five (x int PRIMARY KEY);\nINSERT INTO dunlin.five VALUES (1);\n"
        "INSERT INTO dunlin.five VALUES (1);");
    assert_int_equal(1, run());
    expect_output("0005_broken.sql:3: SQLSTATE 23505");
    write_file("0005_broken.sql", "CREATE TABLE dunlin.five (x int);\nCOMMIT;\nSELECT 1/0;");
    assert_int_equal(1, run());
    expect_output("0005_broken.sql:2: a migration is one transaction");
    assert_string_equal("NULL", test_db_text(superuser, "SELECT to_regclass('dunlin.five')::text"));
    write_file("0005_broken.sql", "CREATE TABLE dunlin.five (x int);");
    assert_int_equal(0, run());
    assert_string_equal("applied 0005_broken.sql\napplied 0006_six.sql\n", output);
}

static void await_sleeper(void) {
    int64_t end_us = base_monotonic_us() + 10 * US_PER_S;
    while (test_db_int64(superuser,
               "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname ="
               " current_database() AND application_name = 'dunlin-migrate'"
               " AND wait_event = 'PgSleep'") == 0) {
        assert_true(base_monotonic_us() < end_us);
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

static void test_lost_connection_undoes_the_file(void **state) {
    (void)state;
    write_file("0007_slow.sql",
        "CREATE TABLE dunlin.seven (x int);\nSELECT pg_sleep(30);\nCREATE TABLE dunlin.x (x int);");
    char arguments[128];
    (void)snprintf(arguments, sizeof arguments, "--sql %s", dir);
    FILE *pipe = start(arguments);
    await_sleeper();
    assert_int_equal(1, finish(pipe));
    expect_output("0007_slow.sql:2: the connection was lost");
    assert_string_equal("NULL", test_db_text(superuser, "SELECT to_regclass('dunlin.seven')::text"));
    write_file("0007_slow.sql", "CREATE TABLE dunlin.seven (x int);");
    assert_int_equal(0, run());
}

static void test_numbers_are_checked(void **state) {
    (void)state;
    write_file("0009_nine.sql", "SELECT 1;");
    assert_int_equal(1, run());
    expect_output("0009_nine.sql: number 0009 leaves a gap; expected 0008");
    write_file("0008_a.sql", "SELECT 1;");
    write_file("0008_b.sql", "SELECT 1;");
    assert_int_equal(1, run());
    expect_output("0008_b.sql: number 0008 is there twice");
    write_file("0008_b.sql", "");
    char path[256];
    (void)snprintf(path, sizeof path, "%s/0008_b.sql", dir);
    assert_int_equal(0, unlink(path));
    assert_int_equal(0, run());
    (void)snprintf(path, sizeof path, "%s/0009_nine.sql", dir);
    assert_int_equal(0, unlink(path));
    assert_int_equal(1, run());
    expect_output("the database has migration 0009, which these files don't");
    write_file("0009_nine.sql", "SELECT 1;");
}

static void test_waits_for_another_run(void **state) {
    (void)state;
    write_file("0010_ten.sql", "CREATE TABLE dunlin.ten (x int);");
    test_db_run(superuser, "SELECT pg_advisory_lock(hashtextextended('dunlin.migrate', 0))");
    char arguments[128];
    (void)snprintf(arguments, sizeof arguments, "--wait 0 --sql %s", dir);
    assert_int_equal(1, finish(start(arguments)));
    expect_output("another dunlin-migrate is still at work");
    (void)snprintf(arguments, sizeof arguments, "--sql %s", dir);
    FILE *pipe = start(arguments);
    char line[256];
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_string_equal("another dunlin-migrate is at work; waiting for it\n", line);
    test_db_run(superuser, "SELECT pg_advisory_unlock(hashtextextended('dunlin.migrate', 0))");
    assert_int_equal(0, finish(pipe));
    assert_string_equal("applied 0010_ten.sql\n", output);
}

static int count_lines(const char *part) {
    int count = 0;
    for (const char *at = output; (at = strstr(at, part)) != NULL; at++) {
        count++;
    }
    return count;
}

// The real migrations, on a database where nothing is yet.
static void test_two_at_once(void **state) {
    (void)state;
    test_db_run(superuser, "DROP SCHEMA dunlin CASCADE");
    FILE *first = start("");
    FILE *second = start("");
    assert_int_equal(0, finish(first));
    int lines = count_lines("applied 0");
    assert_int_equal(0, finish(second));
    lines += count_lines("applied 0");
    assert_int_equal(applied(), lines);
    assert_int_equal(0, finish(start("")));
    expect_output("nothing to do");
}

static void test_no_database(void **state) {
    (void)state;
    assert_int_equal(1, finish(start("--wait 0 --database 'postgresql://secret:word@127.0.0.1:1/x'")));
    expect_output("can't connect");
    assert_null(strstr(output, "word"));
}

static int set_up(void **state) {
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/dunlin_migrate_XXXXXX");
    if (mkdtemp(dir) == NULL) {
        return -1;
    }
    test = test_db_create_empty();
    superuser = test_db_open(test, "superuser");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    db_free(superuser);
    test_db_drop(test);
    DIR *files = opendir(dir);
    if (files == NULL) {
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        if (entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(files), entry->d_name, 0);
        }
    }
    (void)closedir(files);
    return rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_applies_once),
        cmocka_unit_test(test_changed_file_is_refused),
        cmocka_unit_test(test_broken_file_is_rolled_back),
        cmocka_unit_test(test_lost_connection_undoes_the_file),
        cmocka_unit_test(test_numbers_are_checked),
        cmocka_unit_test(test_waits_for_another_run),
        cmocka_unit_test(test_two_at_once),
        cmocka_unit_test(test_no_database),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
