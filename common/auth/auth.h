// SPDX-License-Identifier: MIT
// API keys: who is calling, and may they. Keys are "dk_" and 43 characters of base62 from 32 random bytes;
// only their BLAKE2b hash is stored, so a fast hash is enough. Services check a key through dunlin.key_find()
// on their own connection; the key itself never reaches a log.
#pragma once

#include "common/db/db.h"
#include "common/status/status.h"
#include <stdbool.h>

#define AUTH_KEY_TEXT 48
#define AUTH_HASH_HEX 65
#define AUTH_OWNER_MAX 64

enum auth_scope { AUTH_LINKS, AUTH_OPERATOR };

struct auth_caller {
    char owner[AUTH_OWNER_MAX + 1];
    char key_id[32];
    enum auth_scope scope;
};

// A new key and the hash that is stored of it.
void auth_make_key(char key[AUTH_KEY_TEXT], char hash_hex[AUTH_HASH_HEX]);

// Who is the caller of the current RPC (rpc_context()->authorization)? UNAUTHENTICATED for no key, a
// malformed, unknown or revoked one; UNAVAILABLE and such from the database.
MUST_CHECK enum status auth_check(
    struct db *db, int64_t deadline_us, struct auth_caller *out, struct problem *why);

// 1 to 64 of [0-9A-Za-z._-].
bool auth_owner_is_valid(const char *owner);
// "links" or "operator".
MUST_CHECK bool auth_scope_parse(const char *text, enum auth_scope *out);
const char *auth_scope_name(enum auth_scope scope);
