// SPDX-License-Identifier: MIT
#include "common/json/json.h"
#include "common/utf8/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; // U+FFFD

void json_begin(struct json_writer *writer, struct buf *out) {
    *writer = (struct json_writer){.out = out};
}

// Writes the comma that is due before a member; a value after its key needs none.
static void separate(struct json_writer *writer) {
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->depth == 0)
        return;
    bool *has_member = &writer->has_member[writer->depth - 1];
    if (*has_member)
        buf_putc(writer->out, ',');
    *has_member = true;
}

static void open_nest(struct json_writer *writer, char bracket) {
    separate(writer);
    REQUIRE(writer->depth < ARRAY_LEN(writer->has_member));
    writer->has_member[writer->depth++] = false;
    buf_putc(writer->out, bracket);
}

static void close_nest(struct json_writer *writer, char bracket) {
    REQUIRE(writer->depth > 0);
    writer->depth--;
    buf_putc(writer->out, bracket);
}

void json_object_begin(struct json_writer *writer) {
    open_nest(writer, '{');
}

void json_object_end(struct json_writer *writer) {
    close_nest(writer, '}');
}

void json_array_begin(struct json_writer *writer) {
    open_nest(writer, '[');
}

void json_array_end(struct json_writer *writer) {
    close_nest(writer, ']');
}

// The length of the character that begins here, 0 where it must be written in another way.
static size_t plain_len(const char *text, size_t len) {
    unsigned char first = (unsigned char)text[0];
    uint32_t point;
    if (first >= 0x80)
        return utf8_next(text, len, &point);
    return first >= 0x20 && first < 0x7F && first != '"' && first != '\\' ? 1 : 0;
}

static void put_escaped(struct buf *out, unsigned char byte) {
    switch (byte) {
    case '"':
        buf_puts(out, "\\\"");
        break;
    case '\\':
        buf_puts(out, "\\\\");
        break;
    case '\n':
        buf_puts(out, "\\n");
        break;
    case '\r':
        buf_puts(out, "\\r");
        break;
    case '\t':
        buf_puts(out, "\\t");
        break;
    default:
        buf_printf(out, "\\u%04x", (unsigned)byte);
    }
}

static void put_quoted(struct buf *out, const char *text, size_t len) {
    buf_putc(out, '"');
    size_t at = 0;
    while (at < len) {
        size_t run = at;
        size_t step;
        while (run < len && (step = plain_len(text + run, len - run)) > 0)
            run += step;
        buf_append(out, text + at, run - at);
        at = run;
        if (at == len)
            break;
        if ((unsigned char)text[at] >= 0x80)
            buf_puts(out, replacement);
        else
            put_escaped(out, (unsigned char)text[at]);
        at++;
    }
    buf_putc(out, '"');
}

void json_key(struct json_writer *writer, const char *key) {
    separate(writer);
    put_quoted(writer->out, key, strlen(key));
    buf_putc(writer->out, ':');
    writer->after_key = true;
}

void json_put_text(struct json_writer *writer, const char *text, size_t len) {
    separate(writer);
    put_quoted(writer->out, text, len);
}

void json_put_string(struct json_writer *writer, const char *text) {
    if (text == NULL)
        json_put_null(writer);
    else
        json_put_text(writer, text, strlen(text));
}

void json_put_int64(struct json_writer *writer, int64_t number) {
    separate(writer);
    buf_printf(writer->out, "%lld", (long long)number);
}

void json_put_uint64(struct json_writer *writer, uint64_t number) {
    separate(writer);
    buf_printf(writer->out, "%llu", (unsigned long long)number);
}

// The shortest of the forms that reads back as the same number. Needs the C locale, which no part of the
// fleet leaves.
void json_put_double(struct json_writer *writer, double number) {
    if (!isfinite(number)) {
        json_put_null(writer);
        return;
    }
    separate(writer);
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, number);
        double back = strtod(text, NULL);
        if (back >= number && back <= number)
            break;
    }
    buf_puts(writer->out, text);
}

void json_put_bool(struct json_writer *writer, bool value) {
    separate(writer);
    buf_puts(writer->out, value ? "true" : "false");
}

void json_put_null(struct json_writer *writer) {
    separate(writer);
    buf_puts(writer->out, "null");
}
