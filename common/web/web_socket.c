// SPDX-License-Identifier: MIT
// Listening sockets and addresses.
#include "common/web/web_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool parse_address(const char *text, uint16_t port, union address *out, socklen_t *len) {
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        *len = sizeof out->v4;
        return true;
    }
    if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        *len = sizeof out->v6;
        return true;
    }
    return false;
}

static bool set_flag(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

static bool bind_and_listen(int fd, const union address *address, socklen_t len, bool shared) {
    if (!set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 1))
        return false;
    if (shared && !set_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1))
        return false;
    // "::" serves both families whatever the system's default is.
    if (address->any.sa_family == AF_INET6 && !set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0))
        return false;
    return bind(fd, &address->any, len) == 0 && listen(fd, SOMAXCONN) == 0;
}

static enum status open_socket(const char *text, uint16_t port, bool shared, int *out, struct problem *why) {
    union address address;
    socklen_t len = 0;
    if (!parse_address(text, port, &address, &len))
        return problem_set(
            why, STATUS_INVALID_ARGUMENT, "BAD_ADDRESS", "\"%s\" is no numeric address.", text);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind_and_listen(fd, &address, len, shared)) {
        *out = fd;
        return STATUS_OK;
    }
    int error = errno;
    if (fd >= 0)
        (void)close(fd);
    if (error == EADDRINUSE)
        return problem_set(why, STATUS_FAILED_PRECONDITION, "PORT_IN_USE",
            "Port %u of %s is taken: another process listens there.", (unsigned)port, text);
    return problem_set(why, STATUS_UNAVAILABLE, "CANNOT_LISTEN", "Can't listen on %s, port %u: %s.", text,
        (unsigned)port, strerror(error));
}

enum status web_socket_listen(const struct web_options *options, int *out, struct problem *why) {
    return open_socket(options->address, options->port, options->shared, out, why);
}

// A socket without SO_REUSEPORT can't join a group that has it, so this fails beside any listener.
enum status web_port_is_free(const char *address, uint16_t port, struct problem *why) {
    int fd = -1;
    enum status status = open_socket(address, port, false, &fd, why);
    if (status == STATUS_OK)
        (void)close(fd);
    return status;
}

uint16_t web_socket_port(int fd) {
    union address address = {0};
    socklen_t len = sizeof address;
    REQUIRE(getsockname(fd, &address.any, &len) == 0);
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

void web_address_text(const struct sockaddr *address, char *out, size_t size) {
    union address any;
    const void *bytes = NULL;
    int family = address->sa_family;
    out[0] = '\0';
    if (family == AF_INET) {
        memcpy(&any.v4, address, sizeof any.v4);
        bytes = &any.v4.sin_addr;
    } else if (family == AF_INET6) {
        memcpy(&any.v6, address, sizeof any.v6);
        bytes = &any.v6.sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&any.v6.sin6_addr)) {
            family = AF_INET;
            bytes = any.v6.sin6_addr.s6_addr + 12;
        }
    }
    if (bytes != NULL)
        (void)inet_ntop(family, bytes, out, (socklen_t)size);
}
