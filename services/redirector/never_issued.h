// SPDX-License-Identifier: MIT
// Which codes can't be links because their counter values were never handed out: they are answered 404
// without a lookup. Keyrange publishes a ceiling per slot 30 s before it hands out anything below it;
// ceilings are fetched in the background and trusted for NEVER_ISSUED_TRUST_US from when they were asked for.
// Without trusted ones, and without the counters' own permutation key, nothing is guessed.
#pragma once

#include "common/codes/codes.h"
#include "common/config/config.h"
#include "common/metrics/metrics.h"
#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

#define NEVER_ISSUED_TRUST_US (20 * US_PER_S)
#define NEVER_ISSUED_EVERY_US (10 * US_PER_S)
#define NEVER_ISSUED_SLOTS (CODES_SLOTS - 1) // those that have a counter

#define NEVER_ISSUED_CONFIG(F)                                                                               \
    F(TEXT, keyrange, "KEYRANGE_TARGET", "tcp://127.0.0.1:7001", 1, 4096, "addresses", 0,                    \
        "The keyrange services, separated by commas.")                                                       \
    F(TEXT, permutation_key, "PERMUTATION_KEY", "", 0, 32, "hex digits", CONFIG_SECRET,                      \
        "The key of the permutation behind the codes, as the writers have it. Empty: every code is looked "  \
        "up.")

struct never_issued_config {
    NEVER_ISSUED_CONFIG(CONFIG_MEMBER)
};
extern const struct config_field never_issued_config_fields[];
extern const size_t never_issued_config_count;

#define NEVER_ISSUED_METRICS(M)                                                                              \
    M(answers, COUNTER, "dunlin_never_issued_total", "requests", NULL,                                       \
        "Requests for codes that were never issued, answered 404 without a lookup.",                         \
        "Many: somebody tries codes. It costs little.")                                                      \
    M(fetches, COUNTER, "dunlin_ceiling_fetches_total", "fetches", "result",                                 \
        "Fetches of the ceilings by result: ok, failed, unclaimed (no key is stored yet), wrong_key.",       \
        "wrong_key: PERMUTATION_KEY is not the counters'; links are served all the same.")                   \
    M(trusted, GAUGE, "dunlin_ceilings_trusted", "", NULL,                                                   \
        "1 while the ceilings are trusted; at 0 codes that were never issued are looked up.",                \
        "0 for more than 20 s: is keyrange reachable, and the key right?")

extern const struct metric_family never_issued_metrics[];
extern const size_t never_issued_metrics_count;
enum never_issued_metric {
    NEVER_ISSUED_METRIC_ANSWERS,
    NEVER_ISSUED_METRIC_FETCHES,
    NEVER_ISSUED_METRIC_TRUSTED,
};

// ---- the check: written by one thread, read by any without waiting

struct never_issued_state {
    bool has_key;
    struct codes_key key;
    uint8_t fingerprint[CODES_FINGERPRINT];
    atomic_bool key_is_right;                     // the counters' owner said so
    _Atomic int64_t trusted_until_us;             // CLOCK_MONOTONIC; 0: not at all
    _Atomic uint64_t ceiling[NEVER_ISSUED_SLOTS]; // the largest seen
    _Atomic int64_t jumps;                        // of the counters, the most seen
};
// `key` NULL: there is none.
void never_issued_init(struct never_issued_state *state, const struct codes_key *key);

enum never_issued_answer {
    NEVER_ISSUED_NO_LOOKUP, // at `now_us` no such link existed
    NEVER_ISSUED_LOOK_UP,   // may have been issued, or is none of the counters' codes
    NEVER_ISSUED_UNKNOWN,   // of generated shape, and nothing trusted says more: look up
};
enum never_issued_answer never_issued_check(
    const struct never_issued_state *state, const char *code, int64_t now_us);
// Is this a code that a counter makes, so that its create tells nobody? Without the right key every code of
// generated shape counts as one.
bool never_issued_is_counters(const struct never_issued_state *state, const char *code);

// An answer to what was asked at asked_us.
struct never_issued_news {
    uint64_t ceiling[NEVER_ISSUED_SLOTS];
    bool has_fingerprint;
    uint8_t fingerprint[CODES_FINGERPRINT];
    int64_t jumps;
};
enum never_issued_verdict { NEVER_ISSUED_TRUSTED, NEVER_ISSUED_UNCLAIMED, NEVER_ISSUED_WRONG_KEY };
enum never_issued_verdict never_issued_take(
    struct never_issued_state *state, int64_t asked_us, const struct never_issued_news *news);

// ---- the thread that fetches

struct never_issued;

// Fetches every `every_us` from `keyrange`, a dunlin.v1.Keyrange, remote or not. Without a key it fetches
// nothing.
struct never_issued *never_issued_start(
    ProtobufCService *keyrange, const struct codes_key *key, int64_t every_us);
void never_issued_stop(struct never_issued *never_issued); // within 2 s; NULL is fine
const struct never_issued_state *never_issued_state(const struct never_issued *never_issued);
