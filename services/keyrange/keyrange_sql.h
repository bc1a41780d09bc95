// SPDX-License-Identifier: MIT
// The service's edge to Postgres: the functions that role dunlin_keyrange may call.
#pragma once

#include "common/db/db.h"

struct keyrange_block {
    unsigned slot;
    uint64_t start;
    uint64_t end;
};

// One UPDATE. FAILED_PRECONDITION, reason KEY_MISMATCH: the stored fingerprint is another.
// RESOURCE_EXHAUSTED, reason SLOT_EXHAUSTED: the slot has no values left.
MUST_CHECK enum status keyrange_sql_claim(struct db *db, int64_t deadline_us, unsigned slot, uint64_t size,
    const char *fingerprint_hex, struct keyrange_block *out, struct problem *why);
