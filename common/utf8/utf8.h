// SPDX-License-Identifier: MIT
// UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing past U+10FFFF. Pure.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

// The length of the character that begins at `bytes` (1 to 4) and its code point, or 0 where the bytes are
// none or `len` is 0.
size_t utf8_next(const char *bytes, size_t len, uint32_t *code_point);
bool utf8_is_valid(const char *bytes, size_t len);
