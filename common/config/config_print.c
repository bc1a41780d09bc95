// SPDX-License-Identifier: MIT
#include "common/config/config.h"

#include "common/log/log.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HELP_WIDTH 110
#define HELP_COLUMN 32 // where the text about a setting begins
#define TEXT_LIMIT 8192

static void put_bounds(struct buf *out, const struct config_field *field, const char *what) {
    if (field->min == 0 && field->max == 0)
        return;
    if (field->max == 0)
        buf_printf(out, ", at least %" PRId64 "%s", field->min, what);
    else if (field->min == field->max)
        buf_printf(out, ", exactly %" PRId64 "%s", field->min, what);
    else
        buf_printf(out, ", %" PRId64 " to %" PRId64 "%s", field->min, field->max, what);
}

// "ms, 0 to 60000", "true or false", "debug, info or warn", "url, 1 to 256 bytes".
static void put_type(struct buf *out, const struct config_field *field) {
    const char *unit = field->unit != NULL && field->unit[0] != '\0' ? field->unit : NULL;
    const char *last = NULL;
    switch (field->type) {
    case CONFIG_BOOL:
        buf_puts(out, "true or false");
        break;
    case CONFIG_CHOICE:
        REQUIRE(unit != NULL);
        last = strrchr(unit, '|');
        for (const char *at = unit; *at != '\0'; at++)
            if (*at == '|')
                buf_puts(out, at == last ? " or " : ", ");
            else
                buf_putc(out, *at);
        break;
    case CONFIG_INT:
        buf_puts(out, unit != NULL ? unit : "whole number");
        put_bounds(out, field, "");
        break;
    case CONFIG_TEXT:
        buf_puts(out, unit != NULL ? unit : "text");
        put_bounds(out, field, " bytes");
        break;
    }
}

// What stands for the default where there is no value to show, or NULL.
static const char *preset_word(const struct config_field *field) {
    if ((field->flags & CONFIG_REQUIRED) != 0)
        return "required";
    return field->preset[0] == '\0' ? "empty by default" : NULL;
}

static void put_file_hint(struct buf *out, const struct config_field *field, const char *quote) {
    if (field->type == CONFIG_TEXT && (field->flags & CONFIG_SECRET) != 0)
        buf_printf(
            out, "secret, or the path of a file that holds it in %s%s_FILE%s", quote, field->name, quote);
}

// Goes on from column `at` of the current line, and begins further ones at HELP_COLUMN. A longer word stays
// whole.
static void print_wrapped(FILE *out, const char *text, size_t at) {
    bool is_first = true;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (!is_first && at + 1 + len > HELP_WIDTH) {
            (void)fprintf(out, "\n%*s", HELP_COLUMN, "");
            at = HELP_COLUMN;
            is_first = true;
        }
        at += len + !is_first;
        (void)fprintf(out, "%s%.*s", is_first ? "" : " ", (int)len, text);
        is_first = false;
        text += len;
        text += strspn(text, " ");
    }
    (void)fputc('\n', out);
}

static void print_help_field(FILE *out, const struct config_field *field) {
    struct buf line;
    buf_init(&line, TEXT_LIMIT);
    buf_puts(&line, "[");
    put_type(&line, field);
    const char *word = preset_word(field);
    if (word != NULL)
        buf_printf(&line, "; %s", word);
    else
        buf_printf(&line, "; default %s", field->preset);
    if ((field->flags & CONFIG_SECRET) != 0)
        buf_puts(&line, "; ");
    put_file_hint(&line, field, "");
    buf_puts(&line, "]");
    if (strlen(field->name) + 3 < HELP_COLUMN)
        (void)fprintf(out, "  %-*s", HELP_COLUMN - 2, field->name);
    else
        (void)fprintf(out, "  %s\n%*s", field->name, HELP_COLUMN, "");
    print_wrapped(out, field->help, HELP_COLUMN);
    (void)fprintf(out, "%*s", HELP_COLUMN, "");
    print_wrapped(out, buf_text(&line), HELP_COLUMN);
    buf_done(&line);
}

void config_print_help(FILE *out, const struct config_section *sections, size_t count) {
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(out, "%s%s:\n", i > 0 ? "\n" : "", sections[i].title);
        for (size_t j = 0; j < sections[i].count; j++)
            print_help_field(out, &sections[i].fields[j]);
    }
}

static void put_cell(struct buf *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '|')
            buf_putc(out, '\\');
        buf_putc(out, *text);
    }
    buf_puts(out, " | ");
}

static void print_markdown_field(FILE *out, const struct config_field *field) {
    struct buf row;
    struct buf cell;
    buf_init(&row, TEXT_LIMIT);
    buf_init(&cell, TEXT_LIMIT);
    put_type(&cell, field);
    if ((field->flags & CONFIG_SECRET) != 0)
        buf_puts(&cell, "; ");
    put_file_hint(&cell, field, "`");
    buf_printf(&row, "| `%s` | ", field->name);
    put_cell(&row, buf_text(&cell));
    const char *word = preset_word(field);
    buf_clear(&cell);
    buf_printf(&cell, word != NULL ? "%s" : "`%s`", word != NULL ? word : field->preset);
    put_cell(&row, buf_text(&cell));
    put_cell(&row, field->help);
    row.len--; // the blank behind the last '|'
    (void)fprintf(out, "%.*s\n", (int)row.len, buf_text(&row));
    buf_done(&cell);
    buf_done(&row);
}

void config_print_markdown(FILE *out, const struct config_section *sections, size_t count) {
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(
            out, "## %s\n\n| variable | value | default | meaning |\n|---|---|---|---|\n", sections[i].title);
        for (size_t j = 0; j < sections[i].count; j++)
            print_markdown_field(out, &sections[i].fields[j]);
        (void)fputc('\n', out);
    }
}

static struct log_field effective(const struct config_field *field, const void *into) {
    const void *member = (const char *)into + field->offset;
    const char *text = NULL;
    switch (field->type) {
    case CONFIG_INT:
        return log_int(field->name, *(const int64_t *)member);
    case CONFIG_BOOL:
        return log_bool(field->name, *(const bool *)member);
    case CONFIG_TEXT:
    case CONFIG_CHOICE:
        text = *(const char *const *)member;
    }
    bool is_hidden = (field->flags & CONFIG_SECRET) != 0 && text[0] != '\0';
    return log_text(field->name, is_hidden ? "(hidden)" : text);
}

void config_log(const struct config_section *sections, size_t count) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += sections[i].count;
    struct log_field *values = base_calloc(total + 1, sizeof *values);
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sections[i].count; j++)
            values[used++] = effective(&sections[i].fields[j], sections[i].into);
    log_write_fields(LOG_LEVEL_INFO, "configuration", values, used);
    free(values);
}
