// SPDX-License-Identifier: MIT
// A command run by a test, with what it says on both outputs, in bounded time. It leads a process group of
// its own, and what is left of that group when time is up is killed.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

struct process;

struct process_result {
    int code; // the exit code; 128 and the signal's number where one ended it
    bool timed_out;
    char *out; // at most 4 MB; what comes after is dropped
    char *err;
};
void process_result_done(struct process_result *result);

// argv[0] is looked up in PATH. `settings` (name, value, …, NULL; may be NULL) go on top of our
// environment. Code 127 where there is no such program.
struct process *process_start(const char *const *argv, const char *const *settings);
// Signals the process alone, not its group.
void process_signal(struct process *process, int signal);
// Reads both outputs to their ends and frees the process. The caller releases the result.
void process_wait(struct process *process, int64_t timeout_us, struct process_result *out);

void process_run(
    const char *const *argv, const char *const *settings, int64_t timeout_us, struct process_result *out);
