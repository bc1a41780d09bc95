// SPDX-License-Identifier: MIT
// A database of a test's own on the server that DUNLIN_TEST_PG names, with the migrations of deploy/sql
// applied by a role that is no superuser (dunlin_owner), as in production. What fails here ends the test with
// a line on standard error.
#pragma once

#include "common/db/db.h"

struct test_db;

// Creates a database with an unique name. `_empty`: without the migrations. crypto_init() is called.
struct test_db *test_db_create(void);
struct test_db *test_db_create_empty(void);
// Drops it, whoever is still connected. Free your connections before.
void test_db_drop(struct test_db *test);

// The connection string for "superuser", "owner" or a service's role without its prefix: "keyrange",
// "writer", "redirector", "clicks", "analyst" (these after test_db_create() alone). Lives as long as `test`.
const char *test_db_conninfo(struct test_db *test, const char *role);
// A new connection for that role; free it with db_free().
struct db *test_db_open(struct test_db *test, const char *role);

// Runs statements that must succeed.
void test_db_run(struct db *db, const char *sql);
// The first column of a query that must succeed, a row a line without an end at the last; "NULL" for NULL.
// `sql` is a constant. Valid until the thread's next call. A row of a function as one text: SELECT r::text
// FROM f() AS r.
const char *test_db_text(struct db *db, const char *sql);
int64_t test_db_int64(struct db *db, const char *sql);
// The SQLSTATE that a query fails with, "" where it succeeds.
const char *test_db_sqlstate(struct db *db, const char *sql);

// Waits (at most 10 s) until a connection to this database waits for a lock; fails where none does.
void test_db_await_blocked(struct db *superuser);
