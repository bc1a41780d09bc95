// SPDX-License-Identifier: MIT
// Short codes: numbers in base 62 behind a keyed permutation (DESIGN: "Codes"; see docs/codes.md), and the
// rules for aliases. Pure functions over caller's memory; any thread.
#pragma once

#include "common/base/base.h"
#include "common/crypto/crypto.h"
#include "common/status/status.h"
#include <stdbool.h>

#define CODES_MIN_LEN 7
#define CODES_MAX_LEN 8
#define CODES_ALIAS_MIN 4
#define CODES_ALIAS_MAX 30
#define CODES_TEXT (CODES_ALIAS_MAX + 1) // room for any code or alias and its NUL
#define CODES_SLOTS 8
#define CODES_SLOT_OTHER 7 // for codes that are not made from a counter
// Counter values per slot that 7 characters hold: 62^7 / 8.
#define CODES_COUNTERS_7 UINT64_C(440201825776)

// The permutation for one key. 16 secret bytes; keys are the caller's.
struct codes_key {
    uint8_t bytes[CRYPTO_SIPHASH_KEY];
};
// 32 hex digits.
MUST_CHECK bool codes_key_parse(const char *hex, struct codes_key *out);
// 8 bytes that tell keys apart and tell nothing about them.
#define CODES_FINGERPRINT 8
void codes_fingerprint(const struct codes_key *key, uint8_t out[CODES_FINGERPRINT]);

// A keyed bijection on [0, a * b): a generalised Feistel network (Black and Rogaway, "Ciphers with Arbitrary
// Finite Domains", CT-RSA 2002), 10 rounds of SipHash-2-4. `len` (the code's length) separates the domains of
// equal keys.
struct codes_domain {
    uint64_t a, b;
    unsigned len;
};
uint64_t codes_permute(const struct codes_key *key, const struct codes_domain *domain, uint64_t n);
uint64_t codes_permute_inverse(const struct codes_key *key, const struct codes_domain *domain, uint64_t n);

// The code of a slot and counter, NUL-terminated; false where even 8 characters do not hold the counter.
MUST_CHECK bool codes_encode(
    const struct codes_key *key, unsigned slot, uint64_t counter, char out[CODES_TEXT]);
// The other way; false where the text is not shaped like a generated code (7 or 8 plain base62 characters,
// the latter only for counters past CODES_COUNTERS_7).
MUST_CHECK bool codes_decode(
    const struct codes_key *key, const char *code, unsigned *slot, uint64_t *counter);

// Could this be a code or alias at all: 4 to 30 of [0-9A-Za-z_-]? Everything else is answered without a
// lookup.
bool codes_is_plausible(const char *text, size_t len);
// 7 or 8 characters of [0-9A-Za-z].
bool codes_is_generated_shape(const char *text, size_t len);

// The rules for a wished alias; a broken one is added to `why` for field "alias".
MUST_CHECK enum status codes_check_alias(const char *alias, size_t len, struct problem *why);
