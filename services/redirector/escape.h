// SPDX-License-Identifier: MIT
// Percent-encoding (RFC 3986 section 2.1), one byte at a time. Pure.
#pragma once

#include <stddef.h>

// The byte at *at, decoded, with *at moved past it; -1 for a malformed escape. *at < len.
int escape_next(const char *raw, size_t len, size_t *at);
