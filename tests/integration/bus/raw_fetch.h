// SPDX-License-Identifier: MIT
// What a broker holds, as it came: one Fetch request (version 10 of the Kafka protocol, the first that
// answers with zstd) written by hand, so that the client under test is not asked about itself. For brokers of
// one node. Test program only: a failure ends it.
#pragma once

#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RAW_ZSTD 4
#define RAW_BYTES_MAX ((size_t)1024 * 1024)

struct raw_batch {
    int magic;
    int compression;  // 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd
    int64_t producer; // -1 for none
    int32_t records;
    int64_t bytes; // on disk, header included
};

static void raw_require(int condition, const char *what) {
    if (!condition) {
        (void)fprintf(stderr, "raw fetch: %s\n", what);
        abort();
    }
}

static int raw_connect(const char *broker) {
    char host[256];
    const char *colon = strrchr(broker, ':');
    raw_require(colon != NULL && (size_t)(colon - broker) < sizeof host, "the broker is no host:port");
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - broker), broker);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    raw_require(getaddrinfo(host, colon + 1, &hints, &found) == 0, "no address");
    int fd = socket(found->ai_family, SOCK_STREAM, 0);
    raw_require(fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0, "no connection");
    const struct timeval patience = {.tv_sec = 20};
    raw_require(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0, "no time-out");
    freeaddrinfo(found);
    return fd;
}

struct raw_cursor {
    unsigned char *at;
};

static void raw_put(struct raw_cursor *cursor, uint64_t number, unsigned size) {
    for (unsigned i = 0; i < size; i++)
        *cursor->at++ = (unsigned char)(number >> (8 * (size - 1 - i)));
}

static void raw_put_text(struct raw_cursor *cursor, const char *text) {
    raw_put(cursor, strlen(text), 2);
    memcpy(cursor->at, text, strlen(text));
    cursor->at += strlen(text);
}

static uint64_t raw_get(const unsigned char *at, unsigned size) {
    uint64_t number = 0;
    for (unsigned i = 0; i < size; i++)
        number = number << 8 | at[i];
    return number;
}

// Fetch v10 of partition 0 from offset 0.
static size_t raw_request(unsigned char *out, const char *topic) {
    struct raw_cursor cursor = {out + 4};
    raw_put(&cursor, 1, 2);  // Fetch
    raw_put(&cursor, 10, 2); // version
    raw_put(&cursor, 1, 4);  // correlation
    raw_put_text(&cursor, "raw-fetch");
    raw_put(&cursor, UINT64_MAX, 4); // no replica
    raw_put(&cursor, 5000, 4);       // longest wait, ms
    raw_put(&cursor, 1, 4);          // least bytes
    raw_put(&cursor, RAW_BYTES_MAX, 4);
    raw_put(&cursor, 0, 1);          // isolation: read uncommitted
    raw_put(&cursor, 0, 4);          // no session
    raw_put(&cursor, UINT64_MAX, 4); // none wanted
    raw_put(&cursor, 1, 4);          // one topic
    raw_put_text(&cursor, topic);
    raw_put(&cursor, 1, 4);          // one partition
    raw_put(&cursor, 0, 4);          // its number
    raw_put(&cursor, UINT64_MAX, 4); // any leader epoch
    raw_put(&cursor, 0, 8);          // offset
    raw_put(&cursor, 0, 8);          // log start
    raw_put(&cursor, RAW_BYTES_MAX, 4);
    raw_put(&cursor, 0, 4); // nothing forgotten
    size_t len = (size_t)(cursor.at - out);
    struct raw_cursor size = {out};
    raw_put(&size, len - 4, 4);
    return len;
}

static struct raw_batch raw_read_batch(const unsigned char *at) {
    return (struct raw_batch){
        .bytes = (int64_t)raw_get(at + 8, 4) + 12,
        .magic = at[16],
        .compression = at[22] & 7,
        .producer = (int64_t)raw_get(at + 43, 8),
        .records = (int32_t)raw_get(at + 57, 4),
    };
}

static struct raw_batch raw_fetch_first_batch(const char *broker, const char *topic) {
    unsigned char *bytes = calloc(1, RAW_BYTES_MAX + 4096);
    raw_require(bytes != NULL, "no memory");
    int fd = raw_connect(broker);
    size_t len = raw_request(bytes, topic);
    raw_require(send(fd, bytes, len, 0) == (ssize_t)len, "not sent");
    raw_require(recv(fd, bytes, 4, MSG_WAITALL) == 4, "no answer");
    len = raw_get(bytes, 4);
    raw_require(len > 100 && len <= RAW_BYTES_MAX + 4096, "an answer of an odd size");
    raw_require(recv(fd, bytes, len, MSG_WAITALL) == (ssize_t)len, "half an answer");
    (void)close(fd);
    // correlation 4, throttle 4, error 2, session 4, topics 4, then the topic's name
    const unsigned char *at = bytes + 18;
    at += 2 + raw_get(at, 2) + 4; // the name, the count of partitions
    raw_require(raw_get(at + 4, 2) == 0, "the partition has an error");
    at += 4 + 2 + 8 + 8 + 8; // number, error, high watermark, last stable offset, log start
    raw_require(raw_get(at, 4) == 0 || raw_get(at, 4) == UINT32_MAX, "aborted transactions");
    raw_require(raw_get(at + 4, 4) > 61, "no batch");
    struct raw_batch batch = raw_read_batch(at + 8);
    free(bytes);
    return batch;
}
