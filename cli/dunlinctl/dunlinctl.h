// SPDX-License-Identifier: MIT
// The parts of dunlinctl: main.c reads the command line, commands.c makes the calls.
#pragma once

#include "common/status/status.h"
#include <stdbool.h>

// Exit codes.
enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_UNAVAILABLE = 3 };

struct command_line {
    const char *writer; // addresses, from a flag or the environment; NULL: not given
    const char *clicks;
    const char *keyrange;
    const char *api_key;
    bool json;
    bool force;
    int64_t timeout_us;
    // Of single commands; NULL where not given.
    const char *argument; // URL or CODE
    const char *alias;
    const char *expires_at;
    const char *from;
    const char *to; // a day, or a counter
    const char *owner;
    const char *scope;
    const char *slot;
};

// Each prints its result on standard output, or the problem on standard error, and returns the exit code.
int command_create(const struct command_line *line);
int command_get(const struct command_line *line);
int command_clicks(const struct command_line *line);
int command_decode(const struct command_line *line);
int command_key_create(const struct command_line *line);
int command_keyrange_advance(const struct command_line *line);
