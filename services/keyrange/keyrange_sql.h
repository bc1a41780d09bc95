// SPDX-License-Identifier: MIT
// The service's edge to Postgres: the functions that role dunlin_keyrange may call. A fingerprint is 16 hex
// digits.
#pragma once

#include "common/db/db.h"
#include "services/keyrange/memory.h"

struct keyrange_block {
    unsigned slot;
    uint64_t start;
    uint64_t end;
};

// FAILED_PRECONDITION, reason KEY_MISMATCH: the stored fingerprint is another. RESOURCE_EXHAUSTED, reason
// SLOT_EXHAUSTED: the slot has no values left. UNAVAILABLE, reason CEILING_NOT_READY: the ceiling that the
// block needs is made ready from here on, and retry_after_s says when it may be.
MUST_CHECK enum status keyrange_sql_claim(struct db *db, int64_t deadline_us, unsigned slot, uint64_t size,
    const char *fingerprint_hex, struct keyrange_block *out, struct problem *why);

// Where the database is behind what is known, all counters jump: `jumped`. FAILED_PRECONDITION, reason
// COUNTERS_FAR_BEHIND: so far that a word doesn't suffice, and nothing was done.
MUST_CHECK enum status keyrange_sql_recall(struct db *db, int64_t deadline_us, const char *fingerprint_hex,
    const struct known *known, bool *jumped, struct problem *why);

struct keyrange_ceilings {
    struct known now;
    bool has_fingerprint;
    uint8_t fingerprint[CODES_FINGERPRINT];
};
MUST_CHECK enum status keyrange_sql_ceilings(
    struct db *db, int64_t deadline_us, struct keyrange_ceilings *out, struct problem *why);

// FAILED_PRECONDITION, reason COUNTER_TOO_FAR: `force` is needed.
MUST_CHECK enum status keyrange_sql_advance(struct db *db, int64_t deadline_us, unsigned slot, uint64_t to,
    bool force, uint64_t *counter, struct problem *why);
