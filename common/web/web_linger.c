// SPDX-License-Identifier: MIT
// A connection that we close while its peer may still be sending: closing at once would make the kernel send
// a reset, and the peer may lose the answer that it has not read yet (RFC 9112, 9.6). So our half is closed,
// and what still comes is read and dropped, within bounds of time, bytes and number.
#include "common/web/web_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_MS 10000
#define LINGER_BYTES ((size_t)64 << 20)
#define LINGERS_MAX 256
#define READS_PER_TURN 16

struct web_linger {
    LIST_ENTRY(web_linger) link;
    struct web *web;
    struct loop_watch *watch;
    struct loop_timer *limit;
    int fd;
    size_t bytes;
};

static void end(void *arg) {
    struct web_linger *linger = arg;
    LIST_REMOVE(linger, link);
    linger->web->linger_count--;
    loop_watch_free(linger->watch);
    loop_timer_free(linger->limit);
    (void)close(linger->fd);
    free(linger);
}

static void drop_input(void *arg, unsigned events) {
    struct web_linger *linger = arg;
    static _Thread_local char waste[65536];
    (void)events;
    for (int i = 0; i < READS_PER_TURN; i++) {
        ssize_t n = recv(linger->fd, waste, sizeof waste, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n > 0)
            linger->bytes += (size_t)n;
        if (n <= 0 || linger->bytes > LINGER_BYTES) {
            end(linger);
            return;
        }
    }
}

void web_linger_start(struct web *web, int fd) {
    if (web->closing || web->linger_count >= LINGERS_MAX)
        return;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return;
    (void)shutdown(copy, SHUT_WR);
    struct web_linger *linger = base_calloc(1, sizeof *linger);
    linger->web = web;
    linger->fd = copy;
    linger->watch = loop_watch_create(web->options.loop, copy, drop_input, linger);
    loop_watch_set(linger->watch, LOOP_READ);
    linger->limit = loop_timer_create(web->options.loop, end, linger);
    loop_timer_start(linger->limit, LINGER_MS);
    LIST_INSERT_HEAD(&web->lingers, linger, link);
    web->linger_count++;
}

void web_linger_stop_all(struct web *web) {
    struct web_linger *next = NULL;
    for (struct web_linger *linger = LIST_FIRST(&web->lingers); linger != NULL; linger = next) {
        next = LIST_NEXT(linger, link);
        end(linger);
    }
}
