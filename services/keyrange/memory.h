// SPDX-License-Identifier: MIT
// What this process has seen of the counters and ceilings, and, where a path is set, a small file that
// outlives it: a plain copy of the database that is put back has forgotten what it handed out since, and
// can't know that. Any thread.
#pragma once

#include "common/codes/codes.h"

#define KEYRANGE_SLOTS 7 // slots that have a counter; the eighth is for codes made otherwise

// 0: nothing is known.
struct known {
    uint64_t counter[KEYRANGE_SLOTS];
    uint64_t ceiling[KEYRANGE_SLOTS];
    uint64_t jumps;
    uint64_t position; // of the database's log, while the number of jumps was that
};
// Takes what is higher; a position belongs to its number of jumps.
void known_merge(struct known *into, const struct known *from);
bool known_is_empty(const struct known *known);

struct memory;

// `path` "": none. A file that isn't there yet is fine; one that isn't ours is FAILED_PRECONDITION.
MUST_CHECK enum status memory_open(const char *path, struct memory **out, struct problem *why);
void memory_close(struct memory *memory); // NULL is fine

// Merges what is remembered of this key's counters.
void memory_read(struct memory *memory, const uint8_t fingerprint[CODES_FINGERPRINT], struct known *into);
// Remembers it; what was remembered of another key is forgotten. On return it is on disk, unless that failed:
// false. A position alone is written every 10 s.
MUST_CHECK bool memory_learn(
    struct memory *memory, const uint8_t fingerprint[CODES_FINGERPRINT], const struct known *known);
