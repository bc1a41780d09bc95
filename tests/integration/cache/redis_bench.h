// SPDX-License-Identifier: MIT
// For the tests of common/cache: a database of the test's own in the real Redis, a plain line to it, a server
// that never answers, and a proxy that holds replies back or cuts connections.
#pragma once

#include "common/base/base.h"
#include "common/cache/cache.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define BENCH_URL 128

static inline struct cache_address bench_address(void) {
    const char *url = getenv("DUNLIN_TEST_REDIS");
    struct cache_address address = {0};
    if (url == NULL || !cache_address_parse(url, &address))
        fail_msg("DUNLIN_TEST_REDIS must name a Redis server, such as redis://127.0.0.1:6379");
    return address;
}

static inline void bench_url(char out[BENCH_URL], int port, int database) {
    (void)snprintf(out, BENCH_URL, "redis://127.0.0.1:%d/%d", port, database);
}

// A listening socket on a port of the kernel's choice. As long as nobody accepts, it is a server that takes
// connections and never answers.
static inline int bench_listen(int *port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static inline int bench_dial(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static inline void raw_send(int fd, const char *line) {
    assert_int_equal(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
}

// Reads one line without its CRLF, waiting at most 5 s.
static inline void raw_line(int fd, char *out, size_t size) {
    size_t len = 0;
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&poll_fd, 1, 5000), 1);
        char byte;
        assert_int_equal(recv(fd, &byte, 1, 0), 1);
        if (byte == '\n')
            break;
        if (byte != '\r' && len + 1 < size)
            out[len++] = byte;
    }
    out[len] = '\0';
}

static inline void raw_expect(int fd, const char *command, const char *answer) {
    char line[200];
    raw_send(fd, command);
    raw_line(fd, line, sizeof line);
    assert_string_equal(line, answer);
}

static inline int raw_open(int port) {
    int fd = bench_dial(port);
    if (fd < 0)
        fail_msg("no Redis on port %d", port);
    return fd;
}

// Tests may run side by side on one server: a claim, kept in database 0, makes one of the others a test's
// own. Gives back its number; the line is set to it, and it is empty.
static inline int bench_claim(int raw) {
    char command[80];
    char answer[80];
    int64_t until = base_monotonic_us() + 30 * US_PER_S;
    for (int database = 1;; database = database % 15 + 1) {
        (void)snprintf(command, sizeof command, "SET dunlin-test:%d taken NX EX 300\r\n", database);
        raw_send(raw, command);
        raw_line(raw, answer, sizeof answer);
        if (strcmp(answer, "+OK") == 0) {
            (void)snprintf(command, sizeof command, "SELECT %d\r\n", database);
            raw_expect(raw, command, "+OK");
            raw_expect(raw, "FLUSHDB\r\n", "+OK");
            return database;
        }
        if (base_monotonic_us() > until)
            fail_msg("no database is free: %s", answer);
    }
}

static inline void bench_give_back(int raw, int database) {
    char command[80];
    raw_expect(raw, "SELECT 0\r\n", "+OK");
    (void)snprintf(command, sizeof command, "DEL dunlin-test:%d\r\n", database);
    raw_expect(raw, command, ":1");
    (void)close(raw);
}

#define PROXY_PAIRS 32

struct proxy {
    int listener;
    int port;
    int target_port;
    pthread_t thread;
    atomic_bool stop;
    atomic_bool cut;    // closes every connection, then is false again
    atomic_int hold_ms; // hold what the server says next back for so long, once
    int pairs[PROXY_PAIRS][2];
    int count;
};

static inline void proxy_close_pair(struct proxy *proxy, int at) {
    (void)close(proxy->pairs[at][0]);
    (void)close(proxy->pairs[at][1]);
    proxy->count--;
    proxy->pairs[at][0] = proxy->pairs[proxy->count][0];
    proxy->pairs[at][1] = proxy->pairs[proxy->count][1];
}

static inline void proxy_accept(struct proxy *proxy) {
    int client = accept(proxy->listener, NULL, NULL);
    int server = bench_dial(proxy->target_port);
    REQUIRE(client >= 0 && server >= 0 && proxy->count < PROXY_PAIRS);
    proxy->pairs[proxy->count][0] = client;
    proxy->pairs[proxy->count][1] = server;
    proxy->count++;
}

static inline bool proxy_forward(struct proxy *proxy, int from, int to, bool is_reply) {
    char bytes[65536];
    ssize_t len = recv(from, bytes, sizeof bytes, 0);
    if (len <= 0)
        return false;
    int hold_ms = is_reply ? atomic_exchange(&proxy->hold_ms, 0) : 0;
    struct timespec hold = {.tv_sec = hold_ms / 1000, .tv_nsec = (hold_ms % 1000) * 1000000L};
    (void)nanosleep(&hold, NULL);
    for (ssize_t sent = 0; sent < len;) {
        ssize_t more = send(to, bytes + sent, (size_t)(len - sent), MSG_NOSIGNAL);
        if (more < 0)
            return false;
        sent += more;
    }
    return true;
}

static inline void *proxy_run(void *arg) {
    struct proxy *proxy = arg;
    while (!atomic_load(&proxy->stop)) {
        struct pollfd fds[1 + 2 * PROXY_PAIRS];
        fds[0] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
        for (int i = 0; i < 2 * proxy->count; i++)
            fds[1 + i] = (struct pollfd){.fd = proxy->pairs[i / 2][i % 2], .events = POLLIN};
        (void)poll(fds, 1 + 2 * (nfds_t)proxy->count, 10);
        bool cut = atomic_load(&proxy->cut);
        for (int i = proxy->count - 1; i >= 0; i--) {
            bool sound = !cut;
            for (int side = 0; side < 2 && sound; side++) {
                if (fds[1 + 2 * i + side].revents != 0)
                    sound = proxy_forward(proxy, proxy->pairs[i][side], proxy->pairs[i][1 - side], side == 1);
            }
            if (!sound)
                proxy_close_pair(proxy, i);
        }
        if (cut)
            atomic_store(&proxy->cut, false);
        if ((fds[0].revents & POLLIN) != 0)
            proxy_accept(proxy);
    }
    return NULL;
}

static inline void proxy_start(struct proxy *proxy, int target_port) {
    *proxy = (struct proxy){.target_port = target_port};
    proxy->listener = bench_listen(&proxy->port);
    assert_int_equal(pthread_create(&proxy->thread, NULL, proxy_run, proxy), 0);
}

// Fine for one that never ran, or has stopped.
static inline void proxy_stop(struct proxy *proxy) {
    if (proxy->port == 0)
        return;
    atomic_store(&proxy->stop, true);
    (void)pthread_join(proxy->thread, NULL);
    while (proxy->count > 0)
        proxy_close_pair(proxy, proxy->count - 1);
    (void)close(proxy->listener);
    proxy->port = 0;
}

// Keys that a careless client would take apart, and how MONITOR shows them.
static const struct hostile_key {
    const char *key;
    const char *shown;
} hostile_keys[] = {
    {"l:%s%n%b%%", "\"l:%s%n%b%%\""},
    {"l:a b", "\"l:a b\""},
    {"l:a EX 1", "\"l:a EX 1\""},
    {"l:\"q\" 'p'", "\"l:\\\"q\\\" 'p'\""},
    {"l:x\r\nDEL victim\r\n", "\"l:x\\r\\nDEL victim\\r\\n\""},
    {"l:*1\r\n$8\r\nFLUSHALL\r\n", "\"l:*1\\r\\n$8\\r\\nFLUSHALL\\r\\n\""},
    {"", "\"\""},
    {"l:\xc3\xa9\x01\x7f\xff", "\"l:\\xc3\\xa9\\x01\\x7f\\xff\""},
};
