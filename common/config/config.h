// SPDX-License-Identifier: MIT
// Settings from environment variables, each declared once in a table beside the module that reads it. The
// table gives the struct's members, the defaults, the validation, --help and docs/configuration.md.
//
// A module declares:
//     #define KEYRANGE_CONFIG(F)
//         F(TEXT, listen, "KEYRANGE_LISTEN", "tcp://127.0.0.1:7001", 1, 255, "URL", 0, "Where RPC is.")
//     struct keyrange_config { KEYRANGE_CONFIG(CONFIG_MEMBER) };
//     extern const struct config_field keyrange_config_fields[];  extern const size_t keyrange_config_count;
// and in its .c file, where CONFIG_ROW needs the struct's name as CONFIG_STRUCT:
//     #define CONFIG_STRUCT keyrange_config
//     const struct config_field keyrange_config_fields[] = {KEYRANGE_CONFIG(CONFIG_ROW)};
#pragma once

#include "common/base/base.h"
#include "common/buf/buf.h"
#include <stdbool.h>
#include <stdio.h>

enum config_type {
    CONFIG_TEXT,   // const char *, no controls; min and max bound its length in bytes, max 0 doesn't
    CONFIG_INT,    // int64_t, decimal; min and max bound its value, unless both are 0
    CONFIG_BOOL,   // bool; "true" or "false"
    CONFIG_CHOICE, // const char *, one of the words in `unit`, separated by '|'
};

enum config_flags {
    CONFIG_SECRET = 1,   // never printed; a text may come from a file instead, see config_load()
    CONFIG_REQUIRED = 2, // no default: must be set and not empty
};

struct config_field {
    enum config_type type;
    unsigned flags;
    size_t offset;
    const char *name;
    const char *preset; // the default, in the form of the environment; "" for an empty text
    int64_t min;
    int64_t max;
    const char *unit; // "bytes", "ms", "url", …, or the words of a choice
    const char *help;
};

#define CONFIG_C_TYPE_TEXT const char *
#define CONFIG_C_TYPE_INT int64_t
#define CONFIG_C_TYPE_BOOL bool
#define CONFIG_C_TYPE_CHOICE const char *
#define CONFIG_MEMBER(type, member, name, preset, min, max, unit, flags, help) CONFIG_C_TYPE_##type member;
#define CONFIG_ROW(type, member, name, preset, min, max, unit, flags, help)                                  \
    {CONFIG_##type, flags, offsetof(struct CONFIG_STRUCT, member), name, preset, min, max, unit, help},

// One module's table and where its values go.
struct config_section {
    const char *title;
    const struct config_field *fields;
    size_t count;
    void *into;
};

// Reads every field of every section from the environment. On the first bad value returns false, and `why` (a
// line: the variable, the value unless secret, the rule) is for the user. Texts live as long as the process.
// A variable that is set to nothing is an empty text where min is 0 or the default is empty too, and else a
// bad value. A secret text NAME may be given as NAME_FILE, a file of up to 64 KB whose last line end is no
// part of it; setting both is refused.
MUST_CHECK bool config_load(const struct config_section *sections, size_t count, struct buf *why);

// A table for --help, and the same as a Markdown section for docs/configuration.md.
void config_print_help(FILE *out, const struct config_section *sections, size_t count);
void config_print_markdown(FILE *out, const struct config_section *sections, size_t count);
// One log line with the effective values, secrets masked.
void config_log(const struct config_section *sections, size_t count);
