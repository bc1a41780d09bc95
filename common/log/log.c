// SPDX-License-Identifier: MIT
#include "common/log/log.h"

#include "common/buf/buf.h"
#include "common/json/json.h"
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 1024
#define LINE_MAX_BYTES ((size_t)1 << 20) // more than the fields of one call can fill

static const char *const level_names[] = {"debug", "info", "warn", "error", "critical"};

static struct {
    char service[32];
    _Atomic int level;
    pthread_mutex_t lock; // a pipe keeps writes up to PIPE_BUF whole; this keeps longer lines whole too
} state = {.level = LOG_LEVEL_INFO, .lock = PTHREAD_MUTEX_INITIALIZER};

struct log_field log_text(const char *key, const char *text) {
    return log_bytes(key, text, text == NULL ? 0 : strlen(text));
}

struct log_field log_bytes(const char *key, const char *bytes, size_t len) {
    return (struct log_field){.key = key, .type = LOG_FIELD_TEXT, .text = bytes, .len = len};
}

struct log_field log_int(const char *key, int64_t number) {
    return (struct log_field){.key = key, .type = LOG_FIELD_INT, .number = number};
}

struct log_field log_bool(const char *key, bool value) {
    return (struct log_field){.key = key, .type = LOG_FIELD_BOOL, .number = value};
}

struct log_field log_double(const char *key, double real) {
    return (struct log_field){.key = key, .type = LOG_FIELD_DOUBLE, .real = real};
}

bool log_open(const char *service, const char *level) {
    for (int i = LOG_LEVEL_DEBUG; i <= LOG_LEVEL_ERROR; i++) {
        if (strcmp(level, level_names[i]) == 0) {
            (void)snprintf(state.service, sizeof state.service, "%s", service);
            atomic_store(&state.level, i);
            return true;
        }
    }
    return false;
}

static size_t cut_len(const char *text, size_t len) {
    if (len <= TEXT_MAX)
        return len;
    size_t cut = TEXT_MAX;
    // Three continuation bytes at most belong to one character; more of them are no UTF-8 and may be cut
    // anywhere.
    while (cut > TEXT_MAX - 3 && ((unsigned char)text[cut] & 0xC0) == 0x80)
        cut--;
    return cut;
}

static void put_time(struct json_writer *json) {
    int64_t now = base_wall_us();
    time_t seconds = (time_t)(now / US_PER_S);
    struct tm utc = {0};
    (void)gmtime_r(&seconds, &utc);
    char text[80];
    (void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, (int)(now % US_PER_S / US_PER_MS));
    json_key(json, "time");
    json_put_string(json, text);
}

static void put_field(struct json_writer *json, const struct log_field *field) {
    json_key(json, field->key);
    switch (field->type) {
    case LOG_FIELD_TEXT:
        if (field->text == NULL)
            json_put_null(json);
        else
            json_put_text(json, field->text, cut_len(field->text, field->len));
        break;
    case LOG_FIELD_INT:
        json_put_int64(json, field->number);
        break;
    case LOG_FIELD_BOOL:
        json_put_bool(json, field->number != 0);
        break;
    case LOG_FIELD_DOUBLE:
        json_put_double(json, field->real);
        break;
    }
}

static void begin_line(
    struct json_writer *json, struct buf *line, enum log_level level, const char *message) {
    buf_init(line, LINE_MAX_BYTES);
    json_begin(json, line);
    json_object_begin(json);
    put_time(json);
    json_key(json, "level");
    json_put_string(json, level_names[level]);
    json_key(json, "service");
    json_put_string(json, state.service);
    json_key(json, "msg");
    json_put_string(json, message);
}

// One write; the loop is for a signal or a full disk that split it. A standard error that can't take it loses
// the line.
static void end_line(struct json_writer *json, struct buf *line) {
    json_object_end(json);
    buf_putc(line, '\n');
    if (buf_ok(line)) {
        size_t done = 0;
        (void)pthread_mutex_lock(&state.lock);
        while (done < line->len) {
            ssize_t wrote = write(STDERR_FILENO, line->data + done, line->len - done);
            if (wrote < 0 && errno == EINTR)
                continue;
            if (wrote <= 0)
                break;
            done += (size_t)wrote;
        }
        (void)pthread_mutex_unlock(&state.lock);
    }
    buf_done(line);
}

static bool is_wanted(enum log_level level) {
    return (int)level >= atomic_load_explicit(&state.level, memory_order_relaxed);
}

void log_write(enum log_level level, const char *message, ...) {
    if (!is_wanted(level))
        return;
    int saved = errno;
    struct json_writer json;
    struct buf line;
    begin_line(&json, &line, level, message);
    va_list args;
    va_start(args, message);
    for (;;) {
        struct log_field field = va_arg(args, struct log_field);
        if (field.key == NULL)
            break;
        put_field(&json, &field);
    }
    va_end(args);
    end_line(&json, &line);
    errno = saved;
}

void log_write_fields(
    enum log_level level, const char *message, const struct log_field *fields, size_t count) {
    if (!is_wanted(level))
        return;
    struct json_writer json;
    struct buf line;
    begin_line(&json, &line, level, message);
    for (size_t i = 0; i < count; i++)
        put_field(&json, &fields[i]);
    end_line(&json, &line);
}

bool log_allowed(struct log_limit *limit, int64_t *suppressed) {
    int64_t now = base_monotonic_us();
    int64_t next = atomic_load(&limit->next_us);
    if (now < next || !atomic_compare_exchange_strong(&limit->next_us, &next, now + US_PER_S)) {
        (void)atomic_fetch_add(&limit->refused, 1);
        return false;
    }
    *suppressed = atomic_exchange(&limit->refused, 0);
    return true;
}
