// SPDX-License-Identifier: MIT
#include "common/auth/auth.h"

#include "common/crypto/crypto.h"
#include "common/rpc/rpc.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PREFIX "dk_"
#define PREFIX_LEN (sizeof PREFIX - 1)
#define SECRET_LEN 43 // 62^43 > 2^256
#define KEY_LEN (PREFIX_LEN + SECRET_LEN)

_Static_assert(AUTH_KEY_TEXT > KEY_LEN, "room for the key and its NUL");
_Static_assert(AUTH_HASH_HEX == 2 * CRYPTO_HASH + 1, "room for the hash and its NUL");

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char owner_bytes[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-";

// Divides the big-endian number by 62 in place and returns the remainder.
static unsigned divide_by_62(uint8_t number[32]) {
    unsigned rest = 0;
    for (size_t i = 0; i < 32; i++) {
        unsigned part = rest * 256 + number[i];
        number[i] = (uint8_t)(part / 62);
        rest = part % 62;
    }
    return rest;
}

static void hash_key(const char *key, char hash_hex[AUTH_HASH_HEX]) {
    uint8_t hash[CRYPTO_HASH];
    crypto_blake2b(hash, key, KEY_LEN);
    crypto_hex(hash_hex, hash, sizeof hash);
}

void auth_make_key(char key[AUTH_KEY_TEXT], char hash_hex[AUTH_HASH_HEX]) {
    uint8_t secret[32];
    crypto_random(secret, sizeof secret);
    memcpy(key, PREFIX, PREFIX_LEN);
    for (size_t i = KEY_LEN; i > PREFIX_LEN; i--) {
        key[i - 1] = digits[divide_by_62(secret)];
    }
    key[KEY_LEN] = '\0';
    hash_key(key, hash_hex);
}

// The key in "Bearer KEY" (RFC 6750; the scheme's letter case doesn't matter), NULL where it can't be one.
static const char *key_of(const char *authorization) {
    static const char scheme[] = "Bearer ";
    if (strncasecmp(authorization, scheme, sizeof scheme - 1) != 0) {
        return NULL;
    }
    const char *key = authorization + sizeof scheme - 1;
    key += strspn(key, " ");
    bool shaped = strlen(key) == KEY_LEN && strncmp(key, PREFIX, PREFIX_LEN) == 0 &&
                  strspn(key + PREFIX_LEN, digits) == SECRET_LEN;
    return shaped ? key : NULL;
}

static enum status take_caller(const struct db_rows *rows, struct auth_caller *out, struct problem *why) {
    if (db_rows_count(rows) != 1) {
        return problem_set(why, STATUS_UNAUTHENTICATED, "API_KEY_INVALID", "The API key is not valid.");
    }
    struct auth_caller caller;
    const char *id = db_text(rows, 0, 0);
    const char *owner = db_text(rows, 0, 1);
    if (strlen(id) >= sizeof caller.key_id || !auth_owner_is_valid(owner) ||
        !auth_scope_parse(db_text(rows, 0, 2), &caller.scope)) {
        return problem_set(why, STATUS_INTERNAL, "", "The API key's record cannot be read.");
    }
    (void)snprintf(caller.key_id, sizeof caller.key_id, "%s", id);
    (void)snprintf(caller.owner, sizeof caller.owner, "%s", owner);
    *out = caller;
    return STATUS_OK;
}

enum status auth_check(struct db *db, int64_t deadline_us, struct auth_caller *out, struct problem *why) {
    const char *authorization = rpc_context()->authorization;
    if (authorization[0] == '\0') {
        return problem_set(
            why, STATUS_UNAUTHENTICATED, "API_KEY_MISSING", "An API key is needed: \"Bearer KEY\".");
    }
    const char *key = key_of(authorization);
    if (key == NULL) {
        return problem_set(why, STATUS_UNAUTHENTICATED, "API_KEY_INVALID", "The API key is not valid.");
    }
    char hash[2 + AUTH_HASH_HEX] = "\\x";
    hash_key(key, hash + 2);
    const char *const params[] = {hash};
    struct db_rows *rows;
    enum status status =
        db_call(db, deadline_us, "SELECT id, owner, scope FROM dunlin.key_find($1)", 1, params, &rows);
    if (status != STATUS_OK) {
        // A read may be run again, so an unknown outcome is none.
        status = status == STATUS_UNKNOWN ? STATUS_UNAVAILABLE : status;
        return problem_set(why, status, status == STATUS_INTERNAL ? "" : "POSTGRES_UNAVAILABLE",
            "The API key could not be checked.");
    }
    status = take_caller(rows, out, why);
    db_rows_free(rows);
    return status;
}

bool auth_owner_is_valid(const char *owner) {
    size_t len = strlen(owner);
    return len >= 1 && len <= AUTH_OWNER_MAX && strspn(owner, owner_bytes) == len;
}

bool auth_scope_parse(const char *text, enum auth_scope *out) {
    bool links = strcmp(text, "links") == 0;
    if (!links && strcmp(text, "operator") != 0) {
        return false;
    }
    *out = links ? AUTH_LINKS : AUTH_OPERATOR;
    return true;
}

const char *auth_scope_name(enum auth_scope scope) {
    return scope == AUTH_LINKS ? "links" : "operator";
}
