// SPDX-License-Identifier: MIT
// The service's edge to Postgres: the functions that role dunlin_writer may call.
#pragma once

#include "common/codes/codes.h"
#include "common/db/db.h"
#include "common/linkcache/linkcache.h"

#define WRITER_CREATE_ID 16

// A link as the authority has it. Released with stored_link_done().
struct stored_link {
    char code[CODES_TEXT];
    char owner[72];
    char source[16];
    enum link_state state;
    uint64_t version;
    int64_t created_at, updated_at; // instants
    bool has_expiry;
    int64_t expires_at;
    char *url; // owned; NULL for what is retired
    size_t url_len;
};
void stored_link_done(struct stored_link *link);

struct new_link {
    const char *code;
    const char *url;
    const char *owner;
    const char *source; // "range" or "alias"
    bool has_expiry;
    int64_t expires_at;
    uint8_t create_id[WRITER_CREATE_ID]; // random; tells a create that is run again from a rival's
    unsigned slot;                       // of a range code
    uint64_t counter;
};

enum create_outcome { CREATE_MADE, CREATE_TAKEN, CREATE_COUNTER_REFUSED };

// OK with an outcome (`made` is filled for CREATE_MADE alone), INVALID_ARGUMENT for an expiry that is past by
// Postgres' clock, UNAVAILABLE: nothing was done, UNKNOWN: ask again with the same code and create_id.
MUST_CHECK enum status writer_sql_create(struct db *db, int64_t deadline_us, const struct new_link *link,
    enum create_outcome *outcome, struct stored_link *made, struct problem *why);

// `owner` NULL: anybody's. NOT_FOUND for an absent or foreign link.
MUST_CHECK enum status writer_sql_get(struct db *db, int64_t deadline_us, const char *code, const char *owner,
    struct stored_link *out, struct problem *why);

MUST_CHECK enum status writer_sql_create_key(struct db *db, int64_t deadline_us, const char *id,
    const char *hash_hex, const char *owner, const char *scope, struct problem *why);
