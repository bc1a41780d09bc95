// SPDX-License-Identifier: MIT
// One JSON object a line on standard error: time, level, service, msg, then the fields. Each line is one
// write(2), so that threads never mix; every byte that JSON or a terminal could misread is escaped, so that
// one event is one line. Any thread. Never log a secret: keys, passwords and connection strings have no
// business in a field.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR, LOG_LEVEL_CRITICAL };

struct log_field {
    const char *key; // NULL ends the list
    enum { LOG_FIELD_TEXT, LOG_FIELD_INT, LOG_FIELD_BOOL, LOG_FIELD_DOUBLE } type;
    const char *text; // NULL writes null
    size_t len;
    int64_t number;
    double real;
};

struct log_field log_text(const char *key, const char *text);
struct log_field log_bytes(const char *key, const char *bytes, size_t len);
struct log_field log_int(const char *key, int64_t number);
struct log_field log_bool(const char *key, bool value);
struct log_field log_double(const char *key, double real);

// Before the first line: who is speaking and from which level on ("debug", "info", "warn", "error"; else
// false).
MUST_CHECK bool log_open(const char *service, const char *level);

// log_info("claimed a block", log_int("start", start), log_text("peer", peer)): messages are constant, values
// are fields. Texts over 1,024 bytes are cut on a character boundary.
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__, (struct log_field){0})
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__, (struct log_field){0})
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__, (struct log_field){0})
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__, (struct log_field){0})
#define log_critical(...) log_write(LOG_LEVEL_CRITICAL, __VA_ARGS__, (struct log_field){0})
void log_write(enum log_level level, const char *message, ...);
// The same from an array, where the fields are not known beforehand.
void log_write_fields(
    enum log_level level, const char *message, const struct log_field *fields, size_t count);

// True at most once a second per limiter; `suppressed` tells how many calls were refused since. For lines
// that a peer or an outage can repeat.
struct log_limit {
    _Atomic int64_t next_us;
    _Atomic int64_t refused;
};
bool log_allowed(struct log_limit *limit, int64_t *suppressed);
