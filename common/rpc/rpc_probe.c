// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_probe.h"

#include "common/rpc/rpc_envelope.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_MAX 512
#define FRAME_HEAD 12 // 8 bytes of length, 4 of request id

static const uint8_t hello_req[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
static const uint8_t hello_rep[8] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
static const uint8_t request_id[4] = {0x80, 0, 0, 1}; // the top bit marks the last id of the path

static bool wait_for(int fd, short events, int64_t deadline_us) {
    int64_t left_us = deadline_us - base_monotonic_us();
    struct pollfd waiting = {.fd = fd, .events = events};
    if (left_us <= 0)
        return false;
    int ready = poll(&waiting, 1, (int)(left_us / US_PER_MS) + 1);
    return ready > 0 || (ready < 0 && errno == EINTR);
}

static bool put(int fd, const uint8_t *bytes, size_t len, int64_t deadline_us) {
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && (errno != EAGAIN || !wait_for(fd, POLLOUT, deadline_us)))
            return false;
        if (sent > 0) {
            bytes += sent;
            len -= (size_t)sent;
        }
    }
    return true;
}

static bool get(int fd, uint8_t *bytes, size_t len, int64_t deadline_us) {
    while (len > 0) {
        ssize_t got = recv(fd, bytes, len, 0);
        if (got == 0 || (got < 0 && (errno != EAGAIN || !wait_for(fd, POLLIN, deadline_us))))
            return false;
        if (got > 0) {
            bytes += got;
            len -= (size_t)got;
        }
    }
    return true;
}

static size_t make_frame(uint8_t out[PROBE_MAX]) {
    static char method[] = RPC_HEALTH_METHOD;
    Dunlin__V1__RpcRequest request = DUNLIN__V1__RPC_REQUEST__INIT;
    request.method = method;
    size_t len = dunlin__v1__rpc_request__get_packed_size(&request);
    REQUIRE(FRAME_HEAD + len <= PROBE_MAX && len + sizeof request_id <= UINT8_MAX);
    memset(out, 0, FRAME_HEAD);
    out[7] = (uint8_t)(len + sizeof request_id);
    memcpy(out + 8, request_id, sizeof request_id);
    (void)dunlin__v1__rpc_request__pack(&request, out + FRAME_HEAD);
    return FRAME_HEAD + len;
}

// Reads the whole answer: a close with unread bytes would end in a reset.
static bool read_answer(int fd, int64_t deadline_us) {
    uint8_t frame[PROBE_MAX];
    static const uint8_t high[6] = {0};
    if (!get(fd, frame, FRAME_HEAD, deadline_us) || memcmp(frame, high, sizeof high) != 0 ||
        memcmp(frame + 8, request_id, sizeof request_id) != 0)
        return false;
    size_t len = (size_t)frame[6] << 8 | frame[7];
    return len >= sizeof request_id && len <= PROBE_MAX &&
           get(fd, frame, len - sizeof request_id, deadline_us);
}

static bool talk(int fd, const struct sockaddr_storage *address, int64_t deadline_us) {
    socklen_t size =
        address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    uint8_t frame[PROBE_MAX];
    uint8_t hello[sizeof hello_rep];
    if (connect(fd, (const struct sockaddr *)address, size) != 0 &&
        (errno != EINPROGRESS || !wait_for(fd, POLLOUT, deadline_us)))
        return false;
    return put(fd, hello_req, sizeof hello_req, deadline_us) && get(fd, hello, sizeof hello, deadline_us) &&
           memcmp(hello, hello_rep, sizeof hello) == 0 && put(fd, frame, make_frame(frame), deadline_us) &&
           read_answer(fd, deadline_us);
}

bool rpc_probe(const struct sockaddr_storage *address, int64_t timeout_us) {
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool answered = talk(fd, address, base_monotonic_us() + timeout_us);
    (void)close(fd);
    return answered;
}
