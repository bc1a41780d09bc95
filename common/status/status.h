// SPDX-License-Identifier: MIT
// The one error type of the fleet: the canonical gRPC status codes, with what each edge makes of them.
// Source of the codes and their numbers: https://grpc.io/docs/guides/status-codes/
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

// X(NAME, number, HTTP status, safe to try again later)
#define STATUS_LIST(X)                                                                                       \
    X(OK, 0, 200, false)                                                                                     \
    X(CANCELLED, 1, 499, false)                                                                              \
    X(UNKNOWN, 2, 500, false)                                                                                \
    X(INVALID_ARGUMENT, 3, 422, false)                                                                       \
    X(DEADLINE_EXCEEDED, 4, 503, true)                                                                       \
    X(NOT_FOUND, 5, 404, false)                                                                              \
    X(ALREADY_EXISTS, 6, 409, false)                                                                         \
    X(PERMISSION_DENIED, 7, 403, false)                                                                      \
    X(RESOURCE_EXHAUSTED, 8, 503, true)                                                                      \
    X(FAILED_PRECONDITION, 9, 409, false)                                                                    \
    X(ABORTED, 10, 409, true)                                                                                \
    X(OUT_OF_RANGE, 11, 422, false)                                                                          \
    X(UNIMPLEMENTED, 12, 501, false)                                                                         \
    X(INTERNAL, 13, 500, false)                                                                              \
    X(UNAVAILABLE, 14, 503, true)                                                                            \
    X(DATA_LOSS, 15, 500, false)                                                                             \
    X(UNAUTHENTICATED, 16, 401, false)

enum status {
#define STATUS_ENUM(name, number, http, retryable) STATUS_##name = (number),
    STATUS_LIST(STATUS_ENUM)
#undef STATUS_ENUM
};
#define STATUS_COUNT 17

// "UNAVAILABLE"; for a number that is no status, "UNKNOWN". Static text.
const char *status_name(enum status status);
int status_http(enum status status);
bool status_is_retryable(enum status status);
// Maps a number from a peer; what is out of range becomes STATUS_UNKNOWN.
enum status status_from_wire(uint32_t number);

// What went wrong, in a form that every edge can show: an RPC answer carries it whole, HTTP renders it as an
// RFC 9457 problem document. Fixed size, so that it can live on a stack and be copied. Texts are cut, never
// overrun.
#define PROBLEM_FIELD_MAX 64
#define PROBLEM_RULE_MAX 160
#define PROBLEM_VIOLATIONS_MAX 8

struct problem_violation {
    char field[PROBLEM_FIELD_MAX]; // as the caller spelled it: "url", "expires_at", "body"
    char rule[PROBLEM_RULE_MAX];   // the rule that it breaks, a full sentence for a person
};

struct problem {
    enum status status;
    char reason[48];   // stable and for programs: "ALIAS_TAKEN", "KEYRANGE_UNAVAILABLE"; empty where there is
                       // none
    char message[256]; // for a person
    uint32_t retry_after_s; // 0: not said
    size_t violation_count;
    struct problem_violation violations[PROBLEM_VIOLATIONS_MAX];
};

// Resets the problem, sets status, reason ("" for none) and message, and returns the status, so that a
// function can `return problem_set(...)`. A NULL problem is allowed everywhere here and is ignored.
enum status problem_set(struct problem *problem, enum status status, const char *reason, const char *format,
    ...) PRINTF_LIKE(4, 5);

// Adds a broken rule; the first one sets status INVALID_ARGUMENT and a message. Past the maximum, ignored.
// Start from a zeroed or problem_set() problem. Returns the problem's status.
enum status problem_violate(struct problem *problem, const char *field, const char *format, ...)
    PRINTF_LIKE(3, 4);
