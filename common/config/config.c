// SPDX-License-Identifier: MIT
#include "common/config/config.h"

#include "common/json/json.h"
#include "common/log/log.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)64 * 1024)
#define VALUE_SHOWN_MAX 100

// Texts live as long as the process: the list keeps them reachable.
struct kept {
    struct kept *next;
    char text[];
};

static const char *keep(const char *text, size_t len) {
    static struct kept *all;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct kept *kept = base_calloc(1, sizeof *kept + len + 1);
    memcpy(kept->text, text, len);
    (void)pthread_mutex_lock(&lock);
    kept->next = all;
    all = kept;
    (void)pthread_mutex_unlock(&lock);
    return kept->text;
}

static bool has_bounds(const struct config_field *field) {
    return field->min != 0 || field->max != 0;
}

// "NAME=value: rule"; a value is shown quoted, escaped and cut, a secret one not at all.
static bool refuse(const struct config_field *field, const char *value, struct buf *why, const char *rule) {
    buf_printf(why, "%s", field->name);
    if (value != NULL && (field->flags & CONFIG_SECRET) == 0) {
        size_t len = strlen(value);
        struct json_writer json;
        buf_putc(why, '=');
        json_begin(&json, why);
        json_put_text(&json, value, len > VALUE_SHOWN_MAX ? VALUE_SHOWN_MAX : len);
        if (len > VALUE_SHOWN_MAX)
            buf_puts(why, "...");
    }
    buf_printf(why, ": %s", rule);
    return false;
}

static bool parse_int(const struct config_field *field, const char *value, int64_t *out) {
    size_t digits = strspn(value + (value[0] == '-'), "0123456789");
    if (digits == 0 || value[(value[0] == '-') + digits] != '\0')
        return false;
    errno = 0;
    long long number = strtoll(value, NULL, 10);
    if (errno != 0 || (has_bounds(field) && (number < field->min || number > field->max)))
        return false;
    *out = number;
    return true;
}

static bool set_int(const struct config_field *field, const char *value, void *member, struct buf *why) {
    if (parse_int(field, value, member))
        return true;
    char rule[128];
    if (has_bounds(field))
        (void)snprintf(
            rule, sizeof rule, "must be a whole number from %" PRId64 " to %" PRId64, field->min, field->max);
    else
        (void)snprintf(rule, sizeof rule, "must be a whole number of 64 bits");
    return refuse(field, value, why, rule);
}

static bool set_bool(const struct config_field *field, const char *value, bool *member, struct buf *why) {
    bool is_true = strcmp(value, "true") == 0;
    if (!is_true && strcmp(value, "false") != 0)
        return refuse(field, value, why, "must be true or false");
    *member = is_true;
    return true;
}

static bool set_choice(
    const struct config_field *field, const char *value, const char **member, struct buf *why) {
    size_t len = strlen(value);
    for (const char *word = field->unit; len > 0 && *word != '\0';) {
        size_t word_len = strcspn(word, "|");
        if (word_len == len && memcmp(word, value, len) == 0) {
            *member = keep(value, len);
            return true;
        }
        word += word_len + (word[word_len] == '|');
    }
    char rule[256];
    (void)snprintf(rule, sizeof rule, "must be one of %s", field->unit);
    return refuse(field, value, why, rule);
}

static bool has_control(const char *value, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7F)
            return true;
    return false;
}

static bool set_text(
    const struct config_field *field, const char *value, size_t len, const char **member, struct buf *why) {
    if (has_control(value, len))
        return refuse(field, value, why, "must not hold control characters");
    bool may_be_empty = field->preset[0] == '\0' && (field->flags & CONFIG_REQUIRED) == 0;
    bool in_bounds = (int64_t)len >= field->min && (field->max == 0 || (int64_t)len <= field->max);
    if (!in_bounds && !(len == 0 && may_be_empty)) {
        char rule[128];
        if (field->max == 0)
            (void)snprintf(rule, sizeof rule, "must be at least %" PRId64 " bytes long", field->min);
        else
            (void)snprintf(
                rule, sizeof rule, "must be %" PRId64 " to %" PRId64 " bytes long", field->min, field->max);
        return refuse(field, value, why, rule);
    }
    *member = keep(value, len);
    return true;
}

static bool set_value(
    const struct config_field *field, const char *value, size_t len, void *into, struct buf *why) {
    void *member = (char *)into + field->offset;
    if (len == 0 && (field->flags & CONFIG_REQUIRED) != 0)
        return refuse(field, NULL, why, "must be set and not empty");
    switch (field->type) {
    case CONFIG_TEXT:
        return set_text(field, value, len, member, why);
    case CONFIG_INT:
        return set_int(field, value, member, why);
    case CONFIG_BOOL:
        return set_bool(field, value, member, why);
    case CONFIG_CHOICE:
        return set_choice(field, value, member, why);
    }
    return false;
}

static bool is_file_field(const struct config_field *field) {
    return field->type == CONFIG_TEXT && (field->flags & CONFIG_SECRET) != 0;
}

static bool refuse_file(const char *file_name, const char *path, const char *rule, struct buf *why) {
    const struct config_field shown = {.name = file_name};
    return refuse(&shown, path, why, rule);
}

// A file's content without its last line end, for secrets that are mounted rather than passed in the
// environment.
static bool set_from_file(
    const struct config_field *field, const char *file_name, const char *path, void *into, struct buf *why) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        char rule[128];
        (void)snprintf(rule, sizeof rule, "can't be opened: %s", strerror(errno));
        return refuse_file(file_name, path, rule, why);
    }
    char *bytes = base_calloc(1, FILE_MAX_BYTES + 2);
    size_t len = fread(bytes, 1, FILE_MAX_BYTES + 1, file);
    bool is_read = ferror(file) == 0;
    (void)fclose(file);
    bool good = false;
    if (!is_read || len > FILE_MAX_BYTES) {
        (void)refuse_file(file_name, path, is_read ? "is larger than 64 KB" : "can't be read", why);
    } else {
        if (len > 0 && bytes[len - 1] == '\n')
            len--;
        if (len > 0 && bytes[len - 1] == '\r')
            len--;
        good = set_value(field, bytes, len, into, why);
    }
    explicit_bzero(bytes, FILE_MAX_BYTES);
    free(bytes);
    return good;
}

static bool load_field(const struct config_field *field, void *into, struct buf *why) {
    const char *value = getenv(field->name);
    if (is_file_field(field)) {
        char file_name[128];
        (void)snprintf(file_name, sizeof file_name, "%s_FILE", field->name);
        const char *path = getenv(file_name);
        if (path != NULL && path[0] != '\0') {
            if (value != NULL)
                return refuse_file(
                    file_name, path, "is set beside the setting itself; set one of the two", why);
            return set_from_file(field, file_name, path, into, why);
        }
    }
    if (value == NULL)
        value = field->preset;
    return set_value(field, value, strlen(value), into, why);
}

bool config_load(const struct config_section *sections, size_t count, struct buf *why) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sections[i].count; j++)
            if (!load_field(&sections[i].fields[j], sections[i].into, why))
                return false;
    return true;
}
