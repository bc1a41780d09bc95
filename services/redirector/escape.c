// SPDX-License-Identifier: MIT
#include "services/redirector/escape.h"

static int hex_digit(char byte) {
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}

int escape_next(const char *raw, size_t len, size_t *at) {
    if (raw[*at] != '%')
        return (unsigned char)raw[(*at)++];
    if (len - *at < 3)
        return -1;
    int high = hex_digit(raw[*at + 1]);
    int low = hex_digit(raw[*at + 2]);
    if (high < 0 || low < 0)
        return -1;
    *at += 3;
    return high * 16 + low;
}
