// SPDX-License-Identifier: MIT
#include "tests/support/test_child.h"

#include "common/buf/buf.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_US (20 * US_PER_S)
#define SAID_MAX ((size_t)1 << 24)

struct child {
    pid_t pid; // 0 once it was waited for
    int out;
    struct buf said;
};

_Noreturn static void give_up(const char *what, const char *said) {
    (void)fprintf(stderr, "test_child: %s\n%s\n", what, said);
    exit(EXIT_FAILURE);
}

static void require(bool is_good, const char *what) {
    if (!is_good)
        give_up(what, strerror(errno));
}

static void run(const char *const *argv, const char *const *settings, int out) {
    char *args[16] = {NULL};
    REQUIRE(argv[0] != NULL);
    for (size_t i = 0; argv[i] != NULL && i + 1 < ARRAY_LEN(args); i++)
        args[i] = base_strdup(argv[i]);
    (void)clearenv();
    for (size_t i = 0; settings[i] != NULL; i += 2)
        (void)setenv(settings[i], settings[i + 1], 1);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    (void)execv(argv[0], args);
    _exit(127);
}

struct child *child_start(const char *const *argv, const char *const *settings) {
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    struct child *child = base_calloc(1, sizeof *child);
    child->pid = fork();
    require(child->pid >= 0, "fork");
    if (child->pid == 0)
        run(argv, settings, ends[1]);
    (void)close(ends[1]);
    child->out = ends[0];
    buf_init(&child->said, SAID_MAX);
    return child;
}

void child_signal(struct child *child, int signal) {
    require(child->pid > 0 && kill(child->pid, signal) == 0, "kill");
}

// False at the end of the output.
static bool read_more(struct child *child, int64_t deadline_us, const char *awaited) {
    struct pollfd ready = {.fd = child->out, .events = POLLIN};
    int64_t left_ms = (deadline_us - base_monotonic_us()) / US_PER_MS;
    if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) != 1) {
        (void)fprintf(stderr, "test_child: waited in vain for: %s\n", awaited);
        give_up("it said:", child_said(child));
    }
    char bytes[4096];
    ssize_t got = read(child->out, bytes, sizeof bytes);
    if (got <= 0)
        return false;
    buf_append(&child->said, bytes, (size_t)got);
    return true;
}

const char *child_wait_for(struct child *child, const char *piece) {
    int64_t deadline = base_monotonic_us() + WAIT_US;
    const char *found;
    while ((found = strstr(child_said(child), piece)) == NULL) {
        if (!read_more(child, deadline, piece)) {
            (void)fprintf(stderr, "test_child: ended without saying: %s\n", piece);
            give_up("it said:", child_said(child));
        }
    }
    return found;
}

int child_end(struct child *child) {
    int64_t deadline = base_monotonic_us() + WAIT_US;
    while (read_more(child, deadline, "its end"))
        continue;
    int status = 0;
    require(waitpid(child->pid, &status, 0) == child->pid, "waitpid");
    child->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *child_said(const struct child *child) {
    return buf_text(&child->said);
}

void child_free(struct child *child) {
    if (child == NULL)
        return;
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
    }
    (void)close(child->out);
    buf_done(&child->said);
    free(child);
}

char *child_ask(int port, const char *method, const char *target) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(fd >= 0, "socket");
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const struct timeval patience = {.tv_sec = WAIT_US / US_PER_S};
    require(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0, "setsockopt");
    require(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0, "connect");
    struct buf text;
    buf_init(&text, SAID_MAX);
    buf_printf(&text, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", method, target);
    require(send(fd, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len, "send");
    buf_clear(&text);
    char bytes[4096];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        buf_append(&text, bytes, (size_t)got);
    require(got == 0, "recv");
    (void)close(fd);
    return buf_take(&text, NULL);
}
