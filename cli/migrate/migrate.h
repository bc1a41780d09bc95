// SPDX-License-Identifier: MIT
// Brings a database up to the numbered files of deploy/sql, each in one transaction with its row in
// dunlin.schema_migrations. Safe to run again, by two at once, and after being killed.
#pragma once

#include "common/buf/buf.h"
#include "common/crypto/crypto.h"
#include "common/db/db.h"
#include "common/status/status.h"
#include <stdbool.h>

#define MIGRATE_FILES_MAX 9999
#define MIGRATE_NAME_MAX 100
#define MIGRATE_FILE_MAX ((size_t)1024 * 1024)
#define MIGRATE_WHY_MAX 4096 // what callers give `why` as its limit

struct migrate_file {
    unsigned number;
    char name[MIGRATE_NAME_MAX + 1];
    char checksum[2 * CRYPTO_HASH + 1]; // BLAKE2b of its bytes
    char *sql;
    size_t sql_len;
};

// The files of a folder by number: 1, 2, 3, … without a gap.
struct migrate_set {
    struct migrate_file *files;
    size_t count;
};

// "0003_links.sql" -> 3: four digits, then _ and [a-z0-9_]+. False for every other name.
MUST_CHECK bool migrate_parse_name(const char *name, unsigned *number);
// Reads every .sql file; names none that doesn't follow the pattern, no number twice, no gap.
MUST_CHECK bool migrate_read(const char *dir, struct migrate_set *out, struct buf *why);
void migrate_done(struct migrate_set *set);

// What a database says that it has.
struct migrate_applied {
    unsigned number;
    char checksum[2 * CRYPTO_HASH + 1];
};
// How many files of the set are applied, given the database's rows by number. False where it has another
// content under a number, a gap, or more than the set.
MUST_CHECK bool migrate_plan(const struct migrate_set *set, const struct migrate_applied *applied,
    size_t count, size_t *done, struct buf *why);

// The next statement from byte *at of the file on, which moves past its semicolon. Comments before it are not
// part of it; strings, dollar quotes, comments, parentheses and BEGIN ATOMIC bodies may hold semicolons.
// False at the end.
struct migrate_statement {
    const char *text;
    size_t len;
    unsigned line; // of its first byte, from 1
};
MUST_CHECK bool migrate_next(const struct migrate_file *file, size_t *at, struct migrate_statement *out);
// BEGIN, COMMIT and the like, which would break the one transaction of a file.
bool migrate_is_transaction_control(const struct migrate_statement *statement);

struct migrate_options {
    const char *conninfo; // a secret
    const char *dir;
    int64_t wait_us;                          // how long to try to connect, and to wait for another run's end
    bool status_only;                         // says what is applied and what is not, and changes nothing
    void (*say)(void *arg, const char *line); // progress, for a person
    void *arg;
};

// False: `why` is a line for the user that names the file, the failed statement's line in it, and the
// SQLSTATE. What was applied before that file stays. crypto_init() first.
MUST_CHECK bool migrate_run(const struct migrate_options *options, struct buf *why);
