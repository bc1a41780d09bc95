// SPDX-License-Identifier: MIT
// Random bytes, hashes and their text forms. The only includer of libsodium. Any thread after crypto_init().
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

// Once at start, before threads.
void crypto_init(void);

// From the kernel's generator.
void crypto_random(void *out, size_t len);
uint64_t crypto_random_u64(void);

// SipHash-2-4 (Aumasson and Bernstein, 2012), as a little-endian number.
#define CRYPTO_SIPHASH_KEY 16
uint64_t crypto_siphash(const uint8_t key[CRYPTO_SIPHASH_KEY], const void *bytes, size_t len);

// BLAKE2b (RFC 7693), 32 bytes, unkeyed. (crypto_hash is a symbol of libsodium.)
#define CRYPTO_HASH 32
void crypto_blake2b(uint8_t out[CRYPTO_HASH], const void *bytes, size_t len);

// Lower-case hex; out holds 2 * len + 1.
void crypto_hex(char *out, const void *bytes, size_t len);
// Exactly 2 * len hex digits of either case, else false with `out` undefined.
MUST_CHECK bool crypto_unhex(void *out, size_t len, const char *hex);
