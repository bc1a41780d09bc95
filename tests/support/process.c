// SPDX-License-Identifier: MIT
#include "tests/support/process.h"

#include "common/buf/buf.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX ((size_t)4 * 1024 * 1024)

struct process {
    pid_t pid;
    int fds[2]; // its standard output and error
    struct buf said[2];
};

void process_result_done(struct process_result *result) {
    free(result->out);
    free(result->err);
    *result = (struct process_result){0};
}

_Noreturn static void become(const char *const *argv, const char *const *settings, int out, int err) {
    char *args[32] = {NULL};
    REQUIRE(argv[0] != NULL);
    for (size_t i = 0; argv[i] != NULL; i++) {
        REQUIRE(i + 1 < ARRAY_LEN(args));
        args[i] = base_strdup(argv[i]);
    }
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i += 2)
        (void)setenv(settings[i], settings[i + 1], 1);
    (void)setpgid(0, 0);
    (void)signal(SIGPIPE, SIG_DFL); // a test may ignore it; its children should not inherit that
    int nothing = open("/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)execvp(args[0], args);
    _exit(127);
}

struct process *process_start(const char *const *argv, const char *const *settings) {
    int out[2], err[2];
    REQUIRE(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
    struct process *process = base_calloc(1, sizeof *process);
    process->pid = fork();
    REQUIRE(process->pid >= 0);
    if (process->pid == 0)
        become(argv, settings, out[1], err[1]);
    (void)setpgid(process->pid, process->pid);
    (void)close(out[1]);
    (void)close(err[1]);
    process->fds[0] = out[0];
    process->fds[1] = err[0];
    buf_init(&process->said[0], OUTPUT_MAX);
    buf_init(&process->said[1], OUTPUT_MAX);
    return process;
}

void process_signal(struct process *process, int signal) {
    (void)kill(process->pid, signal);
}

static void read_output(struct process *process, int which) {
    char bytes[4096];
    ssize_t got = read(process->fds[which], bytes, sizeof bytes);
    if (got > 0) {
        buf_append(&process->said[which], bytes, (size_t)got);
        return;
    }
    (void)close(process->fds[which]);
    process->fds[which] = -1;
}

// False when time was up before both outputs ended.
static bool read_all(struct process *process, int64_t deadline_us) {
    while (process->fds[0] >= 0 || process->fds[1] >= 0) {
        struct pollfd ready[2] = {
            {.fd = process->fds[0], .events = POLLIN}, {.fd = process->fds[1], .events = POLLIN}};
        int64_t left_ms = (deadline_us - base_monotonic_us()) / US_PER_MS;
        if (left_ms <= 0 || poll(ready, 2, (int)left_ms) <= 0)
            return false;
        for (int i = 0; i < 2; i++)
            if (ready[i].revents != 0)
                read_output(process, i);
    }
    return true;
}

void process_wait(struct process *process, int64_t timeout_us, struct process_result *out) {
    *out = (struct process_result){0};
    out->timed_out = !read_all(process, base_monotonic_us() + timeout_us);
    if (out->timed_out)
        (void)kill(-process->pid, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(process->pid, &status, 0) == process->pid);
    out->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    for (int i = 0; i < 2; i++)
        if (process->fds[i] >= 0)
            (void)close(process->fds[i]);
    out->out = buf_take(&process->said[0], NULL);
    out->err = buf_take(&process->said[1], NULL);
    free(process);
}

void process_run(
    const char *const *argv, const char *const *settings, int64_t timeout_us, struct process_result *out) {
    process_wait(process_start(argv, settings), timeout_us, out);
}
