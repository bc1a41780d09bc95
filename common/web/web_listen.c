// SPDX-License-Identifier: MIT
#include "common/web/web_listen.h"

#include <arpa/inet.h>
#include <string.h>

static bool parse_port(const char *text, uint16_t *out) {
    size_t len = strlen(text);
    if (len < 1 || len > 5 || strspn(text, "0123456789") != len)
        return false;
    uint32_t port = 0;
    for (size_t i = 0; i < len; i++)
        port = port * 10 + (uint32_t)(text[i] - '0');
    if (port > UINT16_MAX)
        return false;
    *out = (uint16_t)port;
    return true;
}

bool web_listen_parse(const char *text, char *address, size_t size, uint16_t *port) {
    bool bracketed = text[0] == '[';
    const char *host = bracketed ? text + 1 : text;
    size_t len = strcspn(host, bracketed ? "]" : ":");
    const char *rest = host + len;
    if (bracketed && *rest == ']')
        rest++;
    char copy[64];
    if (*rest != ':' || len == 0 || len >= sizeof copy || len >= size)
        return false;
    memcpy(copy, host, len);
    copy[len] = '\0';
    uint8_t binary[sizeof(struct in6_addr)];
    if (inet_pton(bracketed ? AF_INET6 : AF_INET, copy, binary) != 1 || !parse_port(rest + 1, port))
        return false;
    memcpy(address, copy, len + 1);
    return true;
}
