// SPDX-License-Identifier: MIT
// A server on a loop in a thread of its own, and a client of raw sockets.
#pragma once

#include "common/base/base.h"
#include "common/loop/loop.h"
#include "common/web/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BODY_MAX 65536
#define LATER_MAX 100000
#define WAIT_MS 10000

enum order { ORDER_NONE, ORDER_DRAIN, ORDER_QUIESCE, ORDER_STOP };

struct bench {
    struct web_options options;
    struct web *web;
    struct loop *loop;
    struct loop_wake *wake;
    struct loop_timer *later_timer;
    struct web_request **later; // to be answered by the timer, in order of arrival
    size_t later_count;
    pthread_t thread;
    _Atomic enum order order;
    atomic_uint handled;
    atomic_uint obeyed;
    char target[WEB_REQUEST_LINE_MAX + 1];
};

static void answer_text(struct web_request *request, int status, const char *text) {
    struct web_header_field fields[] = {{"Content-Type", "text/plain"}, {"X-Bench", "1"}};
    struct web_answer answer = {status, fields, ARRAY_LEN(fields), text, strlen(text), false};
    web_answer(request, &answer);
}

static void answer_echo(struct web_request *request) {
    size_t len = 0;
    const char *body = web_body(request, &len);
    char text[64];
    unsigned long sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += (unsigned char)body[i];
    (void)snprintf(text, sizeof text, "%zu %lu", len, sum);
    answer_text(request, 200, text);
}

static void answer_with_field(struct web_request *request, int status, const char *name, const char *value) {
    struct web_header_field fields[] = {{"X-Robots-Tag", "noindex"}, {name, value}};
    struct web_answer answer = {status, fields, ARRAY_LEN(fields), NULL, 0, false};
    web_answer(request, &answer);
}

static void answer_facts(struct web_request *request) {
    // libmicrohttpd takes no 200 with a body for CONNECT, whose answer has none.
    int status = web_method(request) == WEB_CONNECT ? 405 : 200;
    char text[1024];
    const char *host = web_host(request);
    const char *query = web_query(request);
    const char *probe = web_header(request, "x-probe");
    (void)snprintf(text, sizeof text, "method=%d path=%.300s query=%.300s host=%.100s probe=%.100s peer=%s",
        (int)web_method(request), web_path(request), query == NULL ? "-" : query, host == NULL ? "-" : host,
        probe == NULL ? "-" : probe, web_peer(request));
    answer_text(request, status, text);
}

static void put_off(struct bench *bench, struct web_request *request) {
    REQUIRE(bench->later_count < LATER_MAX);
    bench->later[bench->later_count++] = request;
    if (bench->later_count == 1)
        loop_timer_start(bench->later_timer, 1);
}

static void bench_handle(void *arg, struct web_request *request) {
    struct bench *bench = arg;
    const char *path = web_path(request);
    int refusal = web_refusal(request);
    atomic_fetch_add(&bench->handled, 1);
    if (strncmp(path, "/later", 6) == 0 && (refusal == 0 || refusal == 413)) {
        put_off(bench, request);
    } else if (refusal != 0) {
        answer_text(request, refusal, web_refusal_detail(request));
    } else if (strcmp(path, "/held") == 0) {
        return;
    } else if (strcmp(path, "/echo") == 0) {
        answer_echo(request);
    } else if (strcmp(path, "/location") == 0) {
        answer_with_field(request, 302, "Location", bench->target);
    } else if (strcmp(path, "/split") == 0) {
        answer_with_field(request, 302, "Location", "https://dest.example/\r\nSet-Cookie: a=b");
    } else if (strcmp(path, "/empty") == 0) {
        web_answer(request, &(struct web_answer){.status = 204});
    } else {
        answer_facts(request);
    }
}

static void bench_answer_later(void *arg) {
    struct bench *bench = arg;
    size_t count = bench->later_count;
    bench->later_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct web_request *request = bench->later[i];
        const char *path = web_path(request);
        size_t len = 0;
        (void)web_body(request, &len);
        if (strcmp(path, "/later/unwanted") == 0)
            answer_text(request, 401, path);
        else if (strcmp(path, "/later/wanted") == 0 && len == 0)
            web_go_on(request);
        else
            answer_text(request, web_refusal(request) != 0 ? web_refusal(request) : 200, path);
    }
}

// Only a path that says so is asked about.
static void bench_expecting(void *arg, struct web_request *request) {
    const char *path = web_path(request);
    if (strncmp(path, "/later", 6) == 0)
        put_off(arg, request);
    else if (strcmp(path, "/unwanted") == 0)
        answer_text(request, 401, path);
    else
        web_go_on(request);
}

static void bench_obey(void *arg) {
    struct bench *bench = arg;
    switch (atomic_exchange(&bench->order, ORDER_NONE)) {
    case ORDER_DRAIN:
        web_drain(bench->web);
        break;
    case ORDER_QUIESCE:
        web_quiesce(bench->web);
        break;
    case ORDER_STOP:
        loop_stop(bench->loop);
        break;
    default:
        break;
    }
    atomic_fetch_add(&bench->obeyed, 1);
}

static void *bench_run(void *arg) {
    struct bench *bench = arg;
    loop_run(bench->loop);
    return NULL;
}

static struct bench *bench_start(struct web_options options) {
    struct bench *bench = base_calloc(1, sizeof *bench);
    struct problem why = {0};
    bench->loop = loop_create();
    bench->wake = loop_wake_create(bench->loop, bench_obey, bench);
    bench->later_timer = loop_timer_create(bench->loop, bench_answer_later, bench);
    bench->later = base_calloc(LATER_MAX, sizeof(void *));
    memset(bench->target, 'x', WEB_REQUEST_LINE_MAX);
    memcpy(bench->target, "https://dest.example/", 21);
    options.loop = bench->loop;
    options.handler = bench_handle;
    options.expecting = bench_expecting;
    options.arg = bench;
    options.body_max = BODY_MAX;
    if (options.address == NULL)
        options.address = "127.0.0.1";
    if (options.connections_max == 0)
        options.connections_max = 1000;
    if (web_open(&options, &bench->web, &why) != STATUS_OK)
        fail_msg("web_open: %s", why.message);
    assert_int_equal(pthread_create(&bench->thread, NULL, bench_run, bench), 0);
    return bench;
}

// Returns once the loop has done it.
static void bench_order(struct bench *bench, enum order order) {
    unsigned before = atomic_load(&bench->obeyed);
    atomic_store(&bench->order, order);
    loop_wake_send(bench->wake);
    for (int i = 0; i < WAIT_MS && atomic_load(&bench->obeyed) == before; i++)
        (void)poll(NULL, 0, 1);
    assert_int_not_equal(atomic_load(&bench->obeyed), before);
}

static void bench_stop(struct bench *bench) {
    bench_order(bench, ORDER_STOP);
    assert_int_equal(pthread_join(bench->thread, NULL), 0);
    web_close(bench->web);
    loop_timer_free(bench->later_timer);
    loop_wake_free(bench->wake);
    loop_free(bench->loop);
    free(bench->later);
    free(bench);
}

static int dial(const struct bench *bench) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(web_port(bench->web))};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    // Before the time limits: see receive().
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
    return fd;
}

// A socket with a time limit is not restarted after an interruption, and a loop that was made on this thread
// may interrupt it: newer libuvs use io_uring.
static ssize_t receive(int fd, void *bytes, size_t len, int flags) {
    return TEMP_FAILURE_RETRY(recv(fd, bytes, len, flags));
}

static void receive_all(int fd, char *bytes, size_t len) {
    while (len > 0) {
        ssize_t n = receive(fd, bytes, len, 0);
        assert_true(n > 0);
        bytes += n;
        len -= (size_t)n;
    }
}

// False where the peer has stopped listening.
static bool say_bytes(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t n = TEMP_FAILURE_RETRY(send(fd, bytes, len, MSG_NOSIGNAL));
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static void say(int fd, const char *text) {
    assert_true(say_bytes(fd, text, strlen(text)));
}

struct reply {
    int status; // 0: closed without an answer
    bool closes;
    bool reset;
    size_t length; // of the body, as announced
    char head[16384];
    char body[8192];
};

// Takes no byte past the head, so that what follows stays in the socket.
static bool hear_head(int fd, struct reply *reply) {
    size_t len = 0;
    memset(reply, 0, sizeof *reply);
    while (len < sizeof reply->head - 1) {
        ssize_t n = receive(fd, reply->head + len, sizeof reply->head - 1 - len, MSG_PEEK);
        if (n <= 0) {
            reply->reset = n < 0;
            assert_false(n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
            return false;
        }
        reply->head[len + (size_t)n] = '\0';
        const char *end = strstr(reply->head, "\r\n\r\n");
        size_t take = end == NULL ? (size_t)n : (size_t)(end + 4 - reply->head) - len;
        receive_all(fd, reply->head + len, take);
        len += take;
        reply->head[len] = '\0';
        if (end != NULL)
            return true;
    }
    return false;
}

static void hear_as(int fd, struct reply *reply, bool head_only) {
    if (!hear_head(fd, reply))
        return;
    assert_memory_equal(reply->head, "HTTP/1.1 ", 9);
    reply->status = atoi(reply->head + 9);
    reply->closes = strstr(reply->head, "\r\nConnection: close\r\n") != NULL;
    const char *length = strstr(reply->head, "\r\nContent-Length: ");
    reply->length = length == NULL ? 0 : strtoul(length + 18, NULL, 10);
    assert_true(reply->length < sizeof reply->body);
    if (!head_only && reply->length > 0)
        receive_all(fd, reply->body, reply->length);
}

static void hear(int fd, struct reply *reply) {
    hear_as(fd, reply, false);
}

// Whether the server ends the connection without saying more. Fails when it takes too long.
static bool hangs_up(int fd) {
    char byte;
    ssize_t n = receive(fd, &byte, 1, 0);
    assert_false(n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
    return n <= 0;
}
