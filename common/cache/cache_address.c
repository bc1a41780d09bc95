// SPDX-License-Identifier: MIT
#include "common/cache/cache.h"

#include <stdlib.h>
#include <string.h>

#define SCHEME "redis://"
#define PORT_PRESET 6379
#define PORT_MAX 65535
#define DATABASE_MAX 99999

static int hex(char digit) {
    static const char digits[] = "0123456789abcdef";
    const char *at = digit == '\0' ? NULL : strchr(digits, digit | 0x20);
    return at == NULL ? -1 : (int)(at - digits);
}

// Percent-decodes in place. False for a broken escape or a NUL.
static bool decode(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex(from[1]);
        int low = high < 0 ? -1 : hex(from[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return true;
}

// Decimal digits and nothing else, at most `max`.
static bool number(const char *text, int max, int *out) {
    size_t len = strspn(text, "0123456789");
    if (len == 0 || len > 6 || text[len] != '\0')
        return false;
    long value = strtol(text, NULL, 10);
    if (value > max)
        return false;
    *out = (int)value;
    return true;
}

// Ends the text before its first `mark` and gives back what follows, NULL where there is none.
static char *cut(char *text, char mark) {
    char *at = strchr(text, mark);
    if (at != NULL)
        *at++ = '\0';
    return at;
}

// "host", "host:port", "[v6]:port"; the host is moved to where it begins.
static bool split_host(char *text, char **host, int *port) {
    char *rest = text;
    *host = text;
    if (*text == '[') {
        *host = text + 1;
        rest = cut(text, ']');
        if (rest == NULL || (*rest != '\0' && *rest != ':'))
            return false;
    }
    char *digits = cut(rest, ':');
    if (**host == '\0' || (*text != '[' && strpbrk(*host, "[]?# \t\r\n") != NULL))
        return false;
    return digits == NULL || (number(digits, PORT_MAX, port) && *port > 0);
}

// Works on a copy that it may cut up; the texts it finds point into it.
static bool split(char *text, char **host, char **password, int *port, int *database) {
    char *path = cut(text, '/');
    if (path != NULL && *path != '\0' && !number(path, DATABASE_MAX, database))
        return false;
    char *at = strrchr(text, '@');
    if (at != NULL) {
        *at++ = '\0';
        // A user name would need the two-argument AUTH.
        if (*text != ':' || text[1] == '\0' || !decode(text + 1))
            return false;
        *password = text + 1;
        text = at;
    }
    return split_host(text, host, port);
}

bool cache_address_parse(const char *url, struct cache_address *out) {
    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
        return false;
    char *copy = base_strdup(url + strlen(SCHEME));
    char *host = NULL;
    char *password = NULL;
    struct cache_address address = {.port = PORT_PRESET};
    bool sound = split(copy, &host, &password, &address.port, &address.database);
    if (sound) {
        address.host = base_strdup(host);
        if (password != NULL)
            address.password = base_strdup(password);
        *out = address;
    }
    free(copy);
    return sound;
}

void cache_address_done(struct cache_address *address) {
    free(address->host);
    free(address->password);
    *address = (struct cache_address){0};
}
