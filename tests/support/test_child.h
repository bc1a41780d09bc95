// SPDX-License-Identifier: MIT
// A program in a child process, what it says, and one HTTP request to it. What fails here ends the test with
// a line on standard error. Every wait is bounded by 20 s.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

struct child; // free it with child_free(); what still runs then is killed

// argv[0] is the program's path. `settings` is its whole environment: name, value, …, NULL. Its standard
// output and error are read together.
struct child *child_start(const char *const *argv, const char *const *settings);
void child_signal(struct child *child, int signal);
// Reads on until `piece` was said, and returns where; fails when the output ends before. Valid until the next
// read.
const char *child_wait_for(struct child *child, const char *piece);
// Reads to the end of the output; the exit code, or 128 and the number of the signal that ended it.
int child_end(struct child *child);
// All that was read so far.
const char *child_said(const struct child *child);
void child_free(struct child *child);

// One request without a body to 127.0.0.1, the connection closed afterwards; the whole answer as text,
// released with free().
char *child_ask(int port, const char *method, const char *target);
