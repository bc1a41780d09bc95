// SPDX-License-Identifier: MIT
// Reads a link from where it is stored: Redis, then Postgres, whichever answers first in that order. On one
// loop, with a bound on everything: connections, commands under way, waiting lookups, time.
#pragma once

#include "common/cache/cache_async.h"
#include "common/db/db_async.h"
#include "common/linkcache/linkcache.h"

struct fetch;

enum link_source { LINK_FROM_REDIS, LINK_FROM_POSTGRES };

// OK with the link (borrowed), NOT_FOUND, or UNAVAILABLE: what is not known is never told as absent. Called
// once, from within fetch_find() or later, on the loop.
typedef void fetch_done(
    void *arg, enum status status, const struct cached_link *link, enum link_source source);

struct fetch_options {
    struct loop *loop;
    const char *pg_url;
    unsigned pg_connections;
    unsigned pg_queue;
    int64_t pg_deadline_us;
    const char *redis_url; // "": none
    int64_t redis_deadline_us;
};
MUST_CHECK enum status fetch_open(
    const struct fetch_options *options, struct fetch **out, struct problem *why);
// What is under way ends as UNAVAILABLE first. NULL is fine.
void fetch_close(struct fetch *fetch);

void fetch_find(struct fetch *fetch, const char *code, fetch_done *done, void *arg);
// How often the database's counters have jumped, heard from elsewhere: keys in Redis from before are not read
// any more.
void fetch_raise_jumps(struct fetch *fetch, int64_t jumps);
// Can a link be found at all? On the loop's thread.
bool fetch_is_up(const struct fetch *fetch);
