// SPDX-License-Identifier: MIT
#include "common/status/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct status_row {
    const char *name;
    int http;
    bool retryable;
};

static const struct status_row rows[STATUS_COUNT] = {
#define STATUS_ROW(name, number, http, retryable) [number] = {#name, http, retryable},
    STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

enum status status_from_wire(uint32_t number) {
    return number < STATUS_COUNT ? (enum status)number : STATUS_UNKNOWN;
}

static const struct status_row *row_of(enum status status) {
    return &rows[status_from_wire((uint32_t)status)];
}

const char *status_name(enum status status) {
    return row_of(status)->name;
}

int status_http(enum status status) {
    return row_of(status)->http;
}

bool status_is_retryable(enum status status) {
    return row_of(status)->retryable;
}

enum status problem_set(
    struct problem *problem, enum status status, const char *reason, const char *format, ...) {
    if (problem == NULL)
        return status;
    memset(problem, 0, sizeof *problem);
    problem->status = status;
    (void)snprintf(problem->reason, sizeof problem->reason, "%s", reason);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem->message, sizeof problem->message, format, args);
    va_end(args);
    return status;
}

enum status problem_violate(struct problem *problem, const char *field, const char *format, ...) {
    if (problem == NULL)
        return STATUS_INVALID_ARGUMENT;
    if (problem->status == STATUS_OK)
        (void)problem_set(problem, STATUS_INVALID_ARGUMENT, "INVALID_FIELD", "A field breaks a rule.");
    if (problem->violation_count == PROBLEM_VIOLATIONS_MAX)
        return problem->status;
    struct problem_violation *violation = &problem->violations[problem->violation_count++];
    (void)snprintf(violation->field, sizeof violation->field, "%s", field);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(violation->rule, sizeof violation->rule, format, args);
    va_end(args);
    return problem->status;
}
