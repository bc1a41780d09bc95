// SPDX-License-Identifier: MIT
#include "tests/support/test_db.h"

#include "cli/migrate/migrate.h"
#include "common/buf/buf.h"
#include "common/crypto/crypto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PASSWORD "dunlin-test"
#define CONNINFO_MAX 1024

static const char *const roles[] = {
    "superuser", "owner", "keyrange", "writer", "redirector", "clicks", "analyst"};

struct test_db {
    char name[64];
    char conninfo[ARRAY_LEN(roles)][CONNINFO_MAX];
    struct db *server; // superuser, in the database that DUNLIN_TEST_PG names
};

_Noreturn static void give_up(const char *what, const char *why) {
    (void)fprintf(stderr, "test_db: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static const char *server_conninfo(void) {
    const char *conninfo = getenv("DUNLIN_TEST_PG");
    if (conninfo == NULL || conninfo[0] == '\0') {
        give_up("DUNLIN_TEST_PG is not set", "it names a Postgres server for tests, as a superuser");
    }
    return conninfo;
}

// Parameters at the end of a connection string override what stands before them.
static void set_conninfo(struct test_db *test, size_t i, const char *server) {
    bool uri = strncmp(server, "postgres", 8) == 0 && strstr(server, "://") != NULL;
    const char *between = !uri ? " " : strchr(server, '?') != NULL ? "&" : "?";
    const char *next = uri ? "&" : " ";
    char *out = test->conninfo[i];
    int len = i == 0 ? snprintf(out, CONNINFO_MAX, "%s%sdbname=%s", server, between, test->name)
                     : snprintf(out, CONNINFO_MAX, "%s%sdbname=%s%suser=dunlin_%s%spassword=" PASSWORD,
                           server, between, test->name, next, roles[i], next);
    REQUIRE(len > 0 && len < CONNINFO_MAX);
}

static struct db *open_conninfo(const char *conninfo) {
    return db_create(&(struct db_options){.conninfo = conninfo, .application = "dunlin-test"});
}

// Roles belong to the whole server, and two tests that alter one at once would fail: one at a time.
static void prepare_roles(struct test_db *test) {
    test_db_run(test->server,
        "DO $$ DECLARE r text; BEGIN"
        " PERFORM pg_advisory_xact_lock(hashtextextended('dunlin.test_db', 0));"
        " IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'dunlin_owner') THEN"
        "  CREATE ROLE dunlin_owner LOGIN CREATEROLE PASSWORD '" PASSWORD "'; END IF;"
        " FOR r IN SELECT rolname FROM pg_roles WHERE rolname IN ("
        "  'dunlin_owner', 'dunlin_keyrange', 'dunlin_writer', 'dunlin_redirector', 'dunlin_clicks', "
        "'dunlin_analyst')"
        " LOOP EXECUTE format('ALTER ROLE %I PASSWORD ''" PASSWORD "''', r); END LOOP; END $$");
}

static void print_line(void *arg, const char *line) {
    (void)arg;
    (void)line;
}

static void migrate(struct test_db *test) {
    struct buf why;
    buf_init(&why, MIGRATE_WHY_MAX);
    struct migrate_options options = {.conninfo = test_db_conninfo(test, "owner"),
        .dir = DUNLIN_SQL_DIR,
        .wait_us = 30 * US_PER_S,
        .say = print_line};
    if (!migrate_run(&options, &why)) {
        give_up("the migrations failed", buf_text(&why));
    }
    buf_done(&why);
}

struct test_db *test_db_create_empty(void) {
    crypto_init();
    struct test_db *test = base_calloc(1, sizeof *test);
    const char *server = server_conninfo();
    (void)snprintf(
        test->name, sizeof test->name, "dunlin_test_%d_%08x", (int)getpid(), (unsigned)crypto_random_u64());
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        set_conninfo(test, i, server);
    }
    test->server = open_conninfo(server);
    prepare_roles(test);
    char sql[128];
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s OWNER dunlin_owner TEMPLATE template0", test->name);
    test_db_run(test->server, sql);
    return test;
}

struct test_db *test_db_create(void) {
    struct test_db *test = test_db_create_empty();
    migrate(test);
    prepare_roles(test);
    return test;
}

void test_db_drop(struct test_db *test) {
    char sql[128];
    (void)snprintf(sql, sizeof sql, "DROP DATABASE %s WITH (FORCE)", test->name);
    test_db_run(test->server, sql);
    db_free(test->server);
    free(test);
}

const char *test_db_conninfo(struct test_db *test, const char *role) {
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (strcmp(roles[i], role) == 0) {
            return test->conninfo[i];
        }
    }
    give_up("no such role", role);
}

struct db *test_db_open(struct test_db *test, const char *role) {
    return open_conninfo(test_db_conninfo(test, role));
}

void test_db_run(struct db *db, const char *sql) {
    if (db_run(db, base_monotonic_us() + 60 * US_PER_S, sql) != STATUS_OK) {
        give_up(sql, db_error_text(db));
    }
}

static struct db_rows *must_call(struct db *db, const char *sql) {
    struct db_rows *rows;
    if (db_call(db, base_monotonic_us() + 30 * US_PER_S, sql, 0, NULL, &rows) != STATUS_OK) {
        give_up(sql, db_error_text(db));
    }
    return rows;
}

const char *test_db_text(struct db *db, const char *sql) {
    static _Thread_local char text[8192];
    struct db_rows *rows = must_call(db, sql);
    struct buf lines;
    buf_init(&lines, sizeof text - 1);
    for (size_t i = 0; i < db_rows_count(rows); i++) {
        buf_printf(&lines, "%s%s", i > 0 ? "\n" : "", db_is_null(rows, i, 0) ? "NULL" : db_text(rows, i, 0));
    }
    REQUIRE(buf_ok(&lines));
    (void)snprintf(text, sizeof text, "%s", buf_text(&lines));
    buf_done(&lines);
    db_rows_free(rows);
    return text;
}

int64_t test_db_int64(struct db *db, const char *sql) {
    struct db_rows *rows = must_call(db, sql);
    if (db_rows_count(rows) != 1 || db_is_null(rows, 0, 0)) {
        give_up(sql, "one number was expected");
    }
    int64_t number = db_int64(rows, 0, 0);
    db_rows_free(rows);
    return number;
}

const char *test_db_sqlstate(struct db *db, const char *sql) {
    struct db_rows *rows;
    if (db_call(db, base_monotonic_us() + 30 * US_PER_S, sql, 0, NULL, &rows) != STATUS_OK) {
        return db_sqlstate(db);
    }
    db_rows_free(rows);
    return "";
}

void test_db_await_blocked(struct db *superuser) {
    int64_t end_us = base_monotonic_us() + 10 * US_PER_S;
    while (test_db_int64(superuser, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                    " AND wait_event_type = 'Lock'") == 0) {
        if (base_monotonic_us() > end_us) {
            give_up("await_blocked", "nobody waits for a lock");
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}
