// SPDX-License-Identifier: MIT
// Instants (microseconds since 1970-01-01T00:00:00Z, proleptic Gregorian, no leap seconds) and UTC days (days
// since 1970-01-01), with their RFC 3339 texts. 64 bits everywhere. Any thread.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

#define INSTANT_TEXT 32 // room for any text made here
// 9999-12-31T23:59:59.999999Z
#define INSTANT_MAX INT64_C(253402300799999999)

// RFC 3339 with `T` and an offset (either letter case of T and Z); a fraction is cut to the microsecond;
// second 60 and years before 0 or past 9999 in UTC are refused. `out` is untouched on false.
MUST_CHECK bool instant_parse(const char *text, size_t len, int64_t *out);
// "2026-12-01T09:20:00Z", with ".123456" (trailing zeros cut) only where there is a fraction.
void instant_format(int64_t instant, char out[INSTANT_TEXT]);

// "2026-12-01"
MUST_CHECK bool instant_parse_day(const char *text, size_t len, int32_t *out);
void instant_format_day(int32_t day, char out[INSTANT_TEXT]);
int32_t instant_day(int64_t instant);
