// SPDX-License-Identifier: MIT
// The query string of an API request: name=value pairs, decoded once. Pure.
#pragma once

#include "common/status/status.h"

#define QUERY_VALUE_MAX 256

struct query_parameter {
    const char *name;
    bool given;                      // out
    char value[QUERY_VALUE_MAX + 1]; // out; decoded, without NUL
};

// Of a problem from query_parse().
bool query_is_malformed(const struct problem *why);

// Fills in the known parameters. `query` is raw, NULL or "" for none. INVALID_ARGUMENT with the parameter and
// its rule for an unknown or repeated one, a malformed escape, %00, or a value over QUERY_VALUE_MAX bytes;
// with reason "MALFORMED_QUERY" for a query that is not UTF-8, which is not well-formed rather than wrong:
// that is told before any other fault, wherever it lies.
MUST_CHECK enum status query_parse(
    const char *query, struct query_parameter *known, size_t count, struct problem *why);
