// SPDX-License-Identifier: MIT
// What a link is to the read path, and how it lies in Redis (message CachedLink). Written by the writer and
// by readers that missed; read by redirectors. No I/O here; any thread.
#pragma once

#include "common/buf/buf.h"
#include "common/codes/codes.h"
#include <stdbool.h>

enum link_state { LINK_ACTIVE = 1, LINK_DISABLED = 2, LINK_DELETED = 3, LINK_EXPIRED = 4 };

struct cached_link {
    char code[CODES_TEXT];
    uint64_t version;
    enum link_state state;
    bool has_expiry;
    int64_t expires_at; // instant
    int redirect_status;
    uint32_t max_age; // s
    bool permanent, strict, forward_query;
    int64_t verified_at; // instant: when this state was last seen on the primary
    char *url;           // owned, NUL-terminated; NULL for what is retired, and from Redis for what is strict
    size_t url_len;
};
void cached_link_done(struct cached_link *link);
// deleted, expired, or past its expiry at `now`.
bool cached_link_is_retired(const struct cached_link *link, int64_t now);

// "l:JUMPS:CODE". The number of jumps (deploy/sql: database_guard) makes a restored or failed-over database
// start with an empty cache.
#define LINKCACHE_KEY 64
void linkcache_key(char out[LINKCACHE_KEY], int64_t jumps, const char *code);
// min(24 h, time to expiry); 24 h for what is retired. At least 1 ms: an entry that ends now is retired by
// its readers.
int64_t linkcache_ttl_ms(const struct cached_link *link, int64_t now);

// Leaves the URL out of what is deleted, expired or strict: of a strict link Redis holds the bare fact.
void linkcache_pack(const struct cached_link *link, struct buf *out);
// False where the bytes are no CachedLink, belong to another code, or break a rule: treat it as a miss. The
// rules: a known state, a redirect's status, numbers in their ranges, and a URL that target_is_sendable()
// unless the link is retired or strict (then a URL is dropped) or disabled (then it may be absent).
// `verified_at` may lie ahead of the reader's clock.
MUST_CHECK bool linkcache_unpack(const char *code, const void *bytes, size_t len, struct cached_link *out);
