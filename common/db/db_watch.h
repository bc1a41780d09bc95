// SPDX-License-Identifier: MIT
// Watches from a thread of its own whether Postgres can be used, so that a service can say so in /readyz and
// in its log without waiting for a request to find out.
#pragma once

#include "common/db/db.h"

struct db_watch;

// The options are those of the service's own connections: on_connect is part of "can be used". Asks every
// second.
struct db_watch *db_watch_start(const struct db_options *options);
void db_watch_stop(struct db_watch *watch); // NULL is fine
// Any thread, does not block.
bool db_watch_is_up(const struct db_watch *watch);
