// SPDX-License-Identifier: MIT
// Finds a link for a redirect: Redis, then Postgres, whichever answers first in that order. On one loop. An
// in-process cache stands before both once there is one: it calls back from within lookup_find().
#pragma once

#include "common/cache/cache_async.h"
#include "common/db/db_async.h"
#include "common/linkcache/linkcache.h"

struct lookup;

enum lookup_source { LOOKUP_REDIS, LOOKUP_POSTGRES };

// OK with the link (borrowed), NOT_FOUND, or UNAVAILABLE: what is not known is never told as absent. Called
// once, from within lookup_find() or later, on the loop.
typedef void lookup_done(
    void *arg, enum status status, const struct cached_link *link, enum lookup_source source);

struct lookup_options {
    struct loop *loop;
    const char *pg_url;
    unsigned pg_connections;
    unsigned pg_queue;
    int64_t pg_deadline_us;
    const char *redis_url; // "": none
    int64_t redis_deadline_us;
};
MUST_CHECK enum status lookup_open(
    const struct lookup_options *options, struct lookup **out, struct problem *why);
// What is under way ends as UNAVAILABLE first. NULL is fine.
void lookup_close(struct lookup *lookup);

void lookup_find(struct lookup *lookup, const char *code, lookup_done *done, void *arg);
// Can a link be found at all? On the loop's thread.
bool lookup_is_up(const struct lookup *lookup);
