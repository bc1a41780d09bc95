// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SCHEME "tcp://"

static bool parse_port(const char *text, size_t len, uint16_t *out) {
    unsigned long port = 0;
    if (len == 0 || len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + (unsigned long)(text[i] - '0');
    }
    *out = (uint16_t)port;
    return port <= UINT16_MAX;
}

static bool is_host(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~' || strchr("/?#@[]", text[i]) != NULL)
            return false;
    return len >= 1 && len <= RPC_HOST_MAX;
}

static bool is_address(const char *host) {
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

// An IPv6 address stands in brackets.
static bool parse_target(const char *text, size_t len, struct rpc_target *out) {
    const size_t scheme = sizeof SCHEME - 1;
    if (len <= scheme || memcmp(text, SCHEME, scheme) != 0)
        return false;
    const char *host = text + scheme;
    const char *colon = memrchr(host, ':', len - scheme);
    if (colon == NULL)
        return false;
    size_t host_len = (size_t)(colon - host);
    bool bracketed = host_len > 2 && host[0] == '[' && host[host_len - 1] == ']';
    if (bracketed) {
        host++;
        host_len -= 2;
    }
    if (!is_host(host, host_len) || (memchr(host, ':', host_len) != NULL) != bracketed)
        return false;
    memcpy(out->host, host, host_len);
    out->host[host_len] = '\0';
    out->numeric = is_address(out->host);
    return (out->numeric || !bracketed) &&
           parse_port(colon + 1, len - (size_t)(colon + 1 - text), &out->port);
}

enum status rpc_resolve_parse(const char *text, struct rpc_targets *out, struct problem *why) {
    struct rpc_targets targets = {0};
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        if (targets.count == RPC_TARGETS_MAX)
            return problem_set(why, STATUS_INVALID_ARGUMENT, "BAD_TARGET", "'%s' has over %d targets.", text,
                RPC_TARGETS_MAX);
        struct rpc_target *target = &targets.items[targets.count++];
        if (!parse_target(at, len, target) || target->port == 0)
            return problem_set(why, STATUS_INVALID_ARGUMENT, "BAD_TARGET",
                "'%.*s' is no target such as tcp://host:7001.", (int)len, at);
        at += len;
        if (*at == '\0')
            break;
    }
    *out = targets;
    return STATUS_OK;
}

bool rpc_resolve_is_numeric(const struct rpc_targets *targets) {
    for (size_t i = 0; i < targets->count; i++)
        if (!targets->items[i].numeric)
            return false;
    return true;
}

static void add(struct rpc_addresses *out, const char *address) {
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->items[i], address) == 0)
            return;
    if (out->count < RPC_ADDRESSES_MAX)
        (void)snprintf(out->items[out->count++], RPC_ADDRESS_MAX, "%s", address);
}

static bool resolve_one(const struct rpc_target *target, struct rpc_addresses *out) {
    const struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM, .ai_flags = target->numeric ? AI_NUMERICHOST : 0};
    struct addrinfo *found = NULL;
    if (getaddrinfo(target->host, NULL, &hints, &found) != 0)
        return false;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        char host[INET6_ADDRSTRLEN];
        char address[RPC_ADDRESS_MAX];
        if (at->ai_family != AF_INET && at->ai_family != AF_INET6)
            continue;
        bool six = at->ai_family == AF_INET6;
        const void *bytes =
            six ? (const void *)&((const struct sockaddr_in6 *)(const void *)at->ai_addr)->sin6_addr
                : (const void *)&((const struct sockaddr_in *)(const void *)at->ai_addr)->sin_addr;
        if (inet_ntop(at->ai_family, bytes, host, sizeof host) == NULL)
            continue;
        (void)snprintf(address, sizeof address, six ? "[%s]:%u" : "%s:%u", host, target->port);
        add(out, address);
    }
    freeaddrinfo(found);
    return true;
}

void rpc_resolve(const struct rpc_targets *targets, struct rpc_addresses *out) {
    *out = (struct rpc_addresses){.complete = true};
    for (size_t i = 0; i < targets->count; i++)
        if (!resolve_one(&targets->items[i], out))
            out->complete = false;
}

static bool is_loopback(const char *host) {
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

enum status rpc_resolve_loopback(const char *listen, char out[RPC_ADDRESS_MAX], struct problem *why) {
    struct rpc_target target;
    if (!parse_target(listen, strlen(listen), &target))
        return problem_set(why, STATUS_INVALID_ARGUMENT, "BAD_LISTEN",
            "'%s' is no address to listen on, such as tcp://127.0.0.1:7001.", listen);
    const char *host = strcmp(target.host, "localhost") == 0 ? "127.0.0.1" : target.host;
    if (!is_loopback(host))
        return problem_set(why, STATUS_INVALID_ARGUMENT, "NOT_LOOPBACK",
            "'%s' is not a loopback address: RPC peers are not authenticated, so RPC ports bind 127.0.0.0/8 "
            "or [::1] "
            "only.",
            listen);
    bool six = strchr(host, ':') != NULL;
    (void)snprintf(out, RPC_ADDRESS_MAX, six ? "[%s]:%u" : "%s:%u", host, target.port);
    return STATUS_OK;
}
