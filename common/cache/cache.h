// SPDX-License-Identifier: MIT
// One Redis connection for a thread that may block: values by key, never the only copy of anything. Connects
// when first needed and again when lost; while Redis is away, calls fail at once between attempts (backoff
// 100 ms to 2 s). A connection that timed out is closed, never reused. The only includers of hiredis are in
// this folder.
//
// Keys and values go as counted arguments, never through a format string. The process must ignore SIGPIPE (a
// service does): hiredis writes to a connection that may be lost.
#pragma once

#include "common/base/base.h"
#include "common/buf/buf.h"
#include "common/status/status.h"

struct cache;

// url: "redis://[:password@]host[:port][/db]", the password percent-encoded where it must be; a secret.
// timeout_us bounds connecting and each command. No I/O here; INVALID_ARGUMENT for a bad URL.
MUST_CHECK enum status cache_create(
    const char *url, int64_t timeout_us, struct cache **out, struct problem *why);
void cache_free(struct cache *cache); // NULL is fine

// OK, NOT_FOUND, or UNAVAILABLE. The value is appended to `out`.
MUST_CHECK enum status cache_get(struct cache *cache, const char *key, struct buf *out);
MUST_CHECK enum status cache_set(
    struct cache *cache, const char *key, const void *value, size_t len, int64_t ttl_ms);
MUST_CHECK enum status cache_delete(struct cache *cache, const char *key);
MUST_CHECK enum status cache_ping(struct cache *cache);
// About the last failure; a line for the log.
const char *cache_error_text(const struct cache *cache);

// Splits a Redis URL for both kinds of connection. `password` is NULL where there is none. Texts are the
// caller's.
struct cache_address {
    char *host;
    int port;
    char *password;
    int database;
};
MUST_CHECK bool cache_address_parse(const char *url, struct cache_address *out);
void cache_address_done(struct cache_address *address);
