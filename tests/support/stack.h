// SPDX-License-Identifier: MIT
// A running fleet of a test's own: ./dev (DUNLIN_DEV names it) with a data folder under the temporary
// directory and free ports. It goes away with the test, however that ends: by stack_down(), or by a guardian
// process that outlives us. What fails here ends the test with a line on standard error.
#pragma once

#include "tests/support/process.h"

#define STACK_TEXT 256

struct stack {
    char dir[64];
    // What ./dev env says.
    char url[STACK_TEXT];
    char api_key[STACK_TEXT];
    char writer[STACK_TEXT];
    char keyrange[STACK_TEXT];
    char clicks[STACK_TEXT];
    char pg[STACK_TEXT];
    char redis[STACK_TEXT];
    char kafka[STACK_TEXT];
    int guardian; // a pipe to it
};

// The folder and its guardian; nothing runs yet.
struct stack *stack_create(void);
// The same with everything up.
struct stack *stack_up(void);
// Stops what runs, deletes the folder and frees. NULL is fine.
void stack_down(struct stack *stack);

// What a command is told: WORDS("up", "--port", "0").
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

// Runs ./dev on this stack and returns what it said; the caller releases it. `settings`: see process.h; may
// be NULL.
void stack_dev(const struct stack *stack, const char *const *settings, struct process_result *out,
    const char *const *words);
// The same, begun and not waited for.
struct process *stack_dev_start(const struct stack *stack, const char *const *words);
// Reads ./dev env again.
void stack_read_environment(struct stack *stack);

// One part, by its name in ./dev. `settings` are the part's own, on top of what ./dev gives it.
void stack_stop_part(const struct stack *stack, const char *name);
void stack_start_part(const struct stack *stack, const char *name, const char *const *settings);

struct stack_part {
    int pid; // 0: down
    int port;
    bool is_known;
    bool ready;
};
struct stack_part stack_status(const struct stack *stack, const char *name);
// What a part has logged; released with free().
char *stack_logs(const struct stack *stack, const char *name);

// dunlinctl (in DUNLIN_BIN) against this stack. `key` NULL: the demo key.
void stack_ctl(
    const struct stack *stack, const char *key, struct process_result *out, const char *const *words);
