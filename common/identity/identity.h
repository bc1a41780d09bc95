// SPDX-License-Identifier: MIT
// Is this still the database that the counters were kept in? A restored or failed-over one may have forgotten
// counter values that were handed out, so that all counters jump before anything is changed on it
// (deploy/sql: database_guard).
#pragma once

#include "common/db/db.h"
#include "common/metrics/metrics.h"

struct identity {
    struct metric *jumped; // counter, may be NULL
    int64_t jumps;         // out: how often this database's counters have jumped
};

// A db_options.on_connect; `arg` is a struct identity of the connection's own thread.
MUST_CHECK enum status identity_guard(struct db *db, void *arg);
