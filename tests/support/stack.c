// SPDX-License-Identifier: MIT
#include "tests/support/stack.h"
#include "tests/support/json_get.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// The first start of all may have to build what is missing.
#define DEV_WAIT_US (110 * US_PER_S)
#define CTL_WAIT_US (30 * US_PER_S)
#define ARGS_MAX 16

_Noreturn static void give_up(const char *what, const char *said) {
    (void)fprintf(stderr, "stack: %s\n%s\n", what, said);
    exit(EXIT_FAILURE);
}

static const char *needed(const char *name) {
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0')
        give_up(name, "is not set; ./dev test sets it");
    return value;
}

// ---- the guardian

// Runs `dev reset` once the other end of the pipe is closed without a word.
_Noreturn static void guard(int pipe_end, const char *dev, const char *dir) {
    (void)setsid();
    for (int sig = 1; sig < 32; sig++)
        if (sig != SIGCHLD)
            (void)signal(sig, SIG_IGN);
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(nothing, fd);
    // What else the test had open must end with the test.
    enum { PIPE = 3 };
    (void)dup2(pipe_end, PIPE);
    closefrom(PIPE + 1);
    char byte;
    if (read(PIPE, &byte, 1) == 1)
        _exit(0);
    for (int sig = 1; sig < 32; sig++)
        (void)signal(sig, SIG_DFL);
    (void)close(PIPE);
    (void)execl(dev, dev, "reset", "--dir", dir, (char *)NULL);
    _exit(127);
}

// Forked twice, so that it is nobody's child: whoever kills a test with all its children misses it.
static void start_guardian(struct stack *stack, const char *dev) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)close(ends[1]);
        if (fork() == 0)
            guard(ends[0], dev, stack->dir);
        _exit(0);
    }
    REQUIRE(waitpid(pid, NULL, 0) == pid);
    (void)close(ends[0]);
    stack->guardian = ends[1];
}

// ---- ./dev

static void collect(const char *program, const char *const *words, const char *argv[ARGS_MAX]) {
    size_t count = 0;
    argv[count++] = program;
    for (; *words != NULL; words++) {
        REQUIRE(count < ARGS_MAX - 1);
        argv[count++] = *words;
    }
    argv[count] = NULL;
}

static struct process *start_dev(
    const struct stack *stack, const char *const *settings, const char *const *words) {
    const char *argv[ARGS_MAX], *all[ARGS_MAX] = {words[0], "--dir", stack->dir};
    size_t count = 3;
    for (words++; *words != NULL; words++) {
        REQUIRE(count < ARGS_MAX - 1);
        all[count++] = *words;
    }
    collect(needed("DUNLIN_DEV"), all, argv);
    return process_start(argv, settings);
}

void stack_dev(const struct stack *stack, const char *const *settings, struct process_result *out,
    const char *const *words) {
    process_wait(start_dev(stack, settings, words), DEV_WAIT_US, out);
}

struct process *stack_dev_start(const struct stack *stack, const char *const *words) {
    return start_dev(stack, NULL, words);
}

static void must_work(struct process_result *result, const char *what) {
    if (result->timed_out || result->code != 0) {
        (void)fprintf(stderr, "stack: ./dev %s: %s %d\n%s\n", what,
            result->timed_out ? "was not done in time," : "exit code", result->code, result->out);
        give_up("standard error was:", result->err);
    }
}

// ---- the environment

// export NAME='VALUE'
static void read_variable(const char *said, const char *name, char out[STACK_TEXT]) {
    char wanted[64];
    int len = snprintf(wanted, sizeof wanted, "export %s='", name);
    const char *found = strstr(said, wanted);
    if (found == NULL)
        give_up(name, "is not in what ./dev env said");
    found += len;
    size_t value_len = strcspn(found, "'\n");
    REQUIRE(found[value_len] == '\'' && value_len < STACK_TEXT);
    (void)snprintf(out, STACK_TEXT, "%.*s", (int)value_len, found);
}

void stack_read_environment(struct stack *stack) {
    struct process_result result;
    stack_dev(stack, NULL, &result, WORDS("env"));
    must_work(&result, "env");
    read_variable(result.out, "DUNLIN_URL", stack->url);
    read_variable(result.out, "DUNLIN_API_KEY", stack->api_key);
    read_variable(result.out, "DUNLIN_WRITER", stack->writer);
    read_variable(result.out, "DUNLIN_KEYRANGE", stack->keyrange);
    read_variable(result.out, "DUNLIN_CLICKS", stack->clicks);
    read_variable(result.out, "DUNLIN_PG", stack->pg);
    read_variable(result.out, "DUNLIN_REDIS", stack->redis);
    read_variable(result.out, "DUNLIN_KAFKA", stack->kafka);
    process_result_done(&result);
}

// ---- life

struct stack *stack_create(void) {
    const char *dev = needed("DUNLIN_DEV");
    struct stack *stack = base_calloc(1, sizeof *stack);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(stack->dir, sizeof stack->dir, "%s/dunlin-e2e-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(stack->dir) == NULL)
        give_up(stack->dir, "can't be made");
    start_guardian(stack, dev);
    return stack;
}

struct stack *stack_up(void) {
    struct stack *stack = stack_create();
    struct process_result result;
    stack_dev(stack, NULL, &result, WORDS("up", "--port", "0"));
    must_work(&result, "up");
    process_result_done(&result);
    stack_read_environment(stack);
    return stack;
}

void stack_down(struct stack *stack) {
    if (stack == NULL)
        return;
    struct process_result result;
    stack_dev(stack, NULL, &result, WORDS("reset"));
    must_work(&result, "reset");
    process_result_done(&result);
    (void)rmdir(stack->dir); // where nothing was ever started in it
    REQUIRE(write(stack->guardian, "", 1) == 1);
    (void)close(stack->guardian);
    free(stack);
}

// ---- parts

void stack_stop_part(const struct stack *stack, const char *name) {
    struct process_result result;
    stack_dev(stack, NULL, &result, WORDS("stop", name));
    must_work(&result, "stop");
    process_result_done(&result);
}

void stack_start_part(const struct stack *stack, const char *name, const char *const *settings) {
    struct process_result result;
    stack_dev(stack, settings, &result, WORDS("start", name));
    must_work(&result, "start");
    process_result_done(&result);
}

static void read_part(const struct json_value *value, struct stack_part *out) {
    int64_t number;
    out->is_known = true;
    if (json_get_int64(value, "pid", &number))
        out->pid = (int)number;
    if (json_get_int64(value, "port", &number))
        out->port = (int)number;
    out->ready = json_get_is(value, "ready", JSON_TRUE);
}

struct stack_part stack_status(const struct stack *stack, const char *name) {
    struct process_result result;
    struct json_doc *doc = NULL;
    struct problem why = {0};
    struct stack_part part = {0};
    stack_dev(stack, NULL, &result, WORDS("status", "--json"));
    must_work(&result, "status --json");
    if (json_parse(result.out, strlen(result.out), &doc, &why) != STATUS_OK)
        give_up(why.message, result.out);
    for (size_t i = 0; i < json_size(json_root(doc)); i++) {
        const struct json_value *value = json_at(json_root(doc), i);
        const char *known = json_get_text(value, "name");
        if (known != NULL && strcmp(known, name) == 0)
            read_part(value, &part);
    }
    json_doc_free(doc);
    process_result_done(&result);
    return part;
}

char *stack_logs(const struct stack *stack, const char *name) {
    struct process_result result;
    stack_dev(stack, NULL, &result, WORDS("logs", name));
    must_work(&result, "logs");
    char *said = base_strdup(result.out);
    process_result_done(&result);
    return said;
}

// ---- dunlinctl

void stack_ctl(
    const struct stack *stack, const char *key, struct process_result *out, const char *const *words) {
    char program[STACK_TEXT];
    const char *argv[ARGS_MAX];
    (void)snprintf(program, sizeof program, "%s/dunlinctl", needed("DUNLIN_BIN"));
    collect(program, words, argv);
    const char *const settings[] = {"DUNLIN_WRITER", stack->writer, "DUNLIN_CLICKS", stack->clicks,
        "DUNLIN_KEYRANGE", stack->keyrange, "DUNLIN_API_KEY", key != NULL ? key : stack->api_key, NULL};
    process_run(argv, settings, CTL_WAIT_US, out);
}
