// SPDX-License-Identifier: MIT
#include "tests/support/raw.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_US (5 * US_PER_S)
#define FRAME_MAX ((size_t)4 * 1024 * 1024)
#define REQUEST_ID 4 // bytes before an envelope, the first with its high bit set

struct raw {
    int fd;
};

struct raw *raw_open(const char *address) {
    const char *host = strstr(address, "://");
    REQUIRE(host != NULL);
    char text[64];
    (void)snprintf(text, sizeof text, "%s", host + 3);
    char *colon = strchr(text, ':');
    REQUIRE(colon != NULL);
    *colon = '\0';
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    REQUIRE(inet_pton(AF_INET, text, &to.sin_addr) == 1);
    struct raw *raw = base_calloc(1, sizeof *raw);
    raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(raw->fd >= 0);
    if (connect(raw->fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return raw;
    raw_close(raw);
    return NULL;
}

void raw_close(struct raw *raw) {
    if (raw == NULL)
        return;
    (void)close(raw->fd);
    free(raw);
}

bool raw_send(struct raw *raw, const void *bytes, size_t len) {
    return send(raw->fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

bool raw_read(struct raw *raw, size_t len, struct buf *out) {
    int64_t deadline_us = base_monotonic_us() + WAIT_US;
    while (len > 0) {
        struct pollfd ready = {.fd = raw->fd, .events = POLLIN};
        int64_t left_ms = (deadline_us - base_monotonic_us()) / US_PER_MS;
        if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) != 1)
            return false;
        char bytes[4096];
        ssize_t got = recv(raw->fd, bytes, len < sizeof bytes ? len : sizeof bytes, 0);
        if (got <= 0)
            return false;
        buf_append(out, bytes, (size_t)got);
        len -= (size_t)got;
    }
    return buf_ok(out);
}

bool raw_read_line(struct raw *raw, struct buf *out) {
    for (;;) {
        if (!raw_read(raw, 1, out))
            return false;
        if (out->len >= 2 && memcmp(out->data + out->len - 2, "\r\n", 2) == 0) {
            out->len -= 2;
            out->data[out->len] = '\0';
            return true;
        }
    }
}

bool raw_sp_greet(struct raw *raw) {
    static const char requester[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    static const char replier[] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    struct buf heard;
    buf_init(&heard, sizeof replier);
    bool good = raw_send(raw, requester, sizeof requester) && raw_read(raw, sizeof replier, &heard) &&
                memcmp(heard.data, replier, sizeof replier) == 0;
    buf_done(&heard);
    return good;
}

bool raw_sp_ask(struct raw *raw, const void *envelope, size_t len) {
    struct buf frame;
    buf_init(&frame, FRAME_MAX);
    uint64_t size = len + REQUEST_ID;
    for (int shift = 56; shift >= 0; shift -= 8)
        buf_putc(&frame, (char)(size >> shift));
    buf_append(&frame, "\x80\0\0\x01", REQUEST_ID);
    buf_append(&frame, envelope, len);
    bool good = raw_send(raw, frame.data, frame.len);
    buf_done(&frame);
    return good;
}

bool raw_sp_answer(struct raw *raw, struct buf *out) {
    struct buf head;
    buf_init(&head, 8);
    uint64_t size = 0;
    bool good = raw_read(raw, 8, &head);
    for (size_t i = 0; good && i < 8; i++)
        size = size << 8 | (unsigned char)head.data[i];
    buf_done(&head);
    struct buf id;
    buf_init(&id, REQUEST_ID);
    good = good && size >= REQUEST_ID && size <= FRAME_MAX && raw_read(raw, REQUEST_ID, &id);
    buf_done(&id);
    return good && raw_read(raw, size - REQUEST_ID, out);
}
