// SPDX-License-Identifier: MIT
// How a link comes to be: check the wish, choose a code, insert, and what to do when the insert says no. What
// it needs is handed in, so that tests can run it without a database.
#pragma once

#include "common/target/target.h"
#include "services/writer/writer_sql.h"

#define CREATE_ATTEMPTS 5

struct create_wish {
    const char *owner;
    const char *url; // as the client sent it
    size_t url_len;
    const char *alias; // NULL: a generated code
    bool has_expiry;
    int64_t expires_at;
};

struct create_means {
    const struct target_rules *rules;
    const struct codes_key *key;
    unsigned slot;
    void *arg;
    // As blocks_take() and blocks_drop().
    enum status (*take)(void *arg, int64_t deadline_us, uint64_t *counter, struct problem *why);
    void (*drop)(void *arg);
    // As writer_sql_create().
    enum status (*insert)(void *arg, int64_t deadline_us, const struct new_link *link,
        enum create_outcome *outcome, struct stored_link *made, struct problem *why);
    void (*collided)(void *arg);    // a generated code was taken
    void (*asked_again)(void *arg); // a commit's outcome was unknown
};

// INVALID_ARGUMENT with the fields and rules that the wish breaks; ALREADY_EXISTS, reason ALIAS_TAKEN;
// UNAVAILABLE: no counter values, no Postgres or (reason NO_FREE_CODE) only taken codes, nothing was done, or
// reason OUTCOME_UNKNOWN: it may have been done; RESOURCE_EXHAUSTED, reason SLOT_EXHAUSTED. `deadline_us` is
// not 0, `why` is zeroed.
MUST_CHECK enum status create_link(const struct create_means *means, int64_t deadline_us,
    const struct create_wish *wish, struct stored_link *made, struct problem *why);
