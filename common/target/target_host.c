// SPDX-License-Identifier: MIT
#include "common/target/target_host.h"

#include <arpa/inet.h>
#include <idn2.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LABEL_MAX 63
// A host that is not ASCII may shrink when it is mapped. Four bytes for each character that a host can have
// are enough for every real one, and bound the work.
#define UNICODE_HOST_MAX ((size_t)4 * TARGET_HOST_MAX)
// Never with IDN2_USE_STD3_ASCII_RULES, which drops underscores silently.
#define IDN_FLAGS (IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL)

static const char no_host[] = "The URL must have a host.";
static const char bad_name[] = "The host must consist of labels of letters, digits, '-' and '_' (no '-' at a "
                               "label's ends), separated by dots.";
static const char long_name[] = "A host may have at most 253 bytes, and each of its labels at most 63.";
static const char bad_idn[] = "The host is not a valid internationalised domain name.";
static const char bad_ipv4[] = "A host that ends in a number must be an IPv4 address: four decimal numbers "
                               "up to 255 without leading zeros.";
static const char bad_ipv6[] = "A host in brackets must be an IPv6 address.";
static const char bad_port[] = "The port must be a number from 1 to 65535.";
static const char user_info[] = "The URL must not hold user information ('@' before the path).";

struct label {
    const char *text;
    size_t len;
};

static char lower(char byte) {
    if (byte >= 'A' && byte <= 'Z')
        return "abcdefghijklmnopqrstuvwxyz"[byte - 'A'];
    return byte;
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static bool is_hex_digit(char byte) {
    return is_digit(byte) || (lower(byte) >= 'a' && lower(byte) <= 'f');
}

static bool is_name_byte(char byte) {
    return is_digit(byte) || (lower(byte) >= 'a' && lower(byte) <= 'z') || byte == '-' || byte == '_';
}

static const char *check_a_label(struct label label) {
    if (label.len < 4 || strncasecmp(label.text, "xn--", 4) != 0)
        return NULL;
    char text[LABEL_MAX + 1] = "";
    for (size_t i = 0; i < label.len; i++)
        text[i] = lower(label.text[i]);
    char *checked = NULL;
    bool valid = idn2_to_ascii_8z(text, &checked, IDN_FLAGS) == IDN2_OK && strcmp(checked, text) == 0;
    idn2_free(checked);
    return valid ? NULL : bad_idn;
}

static const char *check_label(struct label label) {
    if (label.len == 0 || label.text[0] == '-' || label.text[label.len - 1] == '-')
        return bad_name;
    if (label.len > LABEL_MAX)
        return long_name;
    for (size_t i = 0; i < label.len; i++)
        if (!is_name_byte(label.text[i]))
            return bad_name;
    return check_a_label(label);
}

// What browsers would read as a number, and then the whole host as an IPv4 address.
static bool is_number(struct label label) {
    size_t digits = 0;
    while (digits < label.len && is_digit(label.text[digits]))
        digits++;
    if (digits == label.len)
        return true;
    if (label.len < 2 || label.text[0] != '0' || lower(label.text[1]) != 'x')
        return false;
    digits = 2;
    while (digits < label.len && is_hex_digit(label.text[digits]))
        digits++;
    return digits == label.len;
}

// ASCII: a name, or an IPv4 address in its one spelling.
static const char *check_name(const char *name, size_t len) {
    size_t end = len > 0 && name[len - 1] == '.' ? len - 1 : len;
    if (end > TARGET_HOST_MAX)
        return long_name;
    struct label label = {name, 0};
    for (;;) {
        const char *dot = memchr(label.text, '.', (size_t)(name + end - label.text));
        label.len = (size_t)((dot != NULL ? dot : name + end) - label.text);
        const char *rule = check_label(label);
        if (rule != NULL)
            return rule;
        if (dot == NULL)
            break;
        label.text = dot + 1;
    }
    if (!is_number(label))
        return NULL;
    char address[INET_ADDRSTRLEN] = "";
    struct in_addr parsed;
    if (len >= sizeof address)
        return bad_ipv4;
    memcpy(address, name, len);
    // glibc's and musl's inet_pton take four decimal numbers; the way back proves the spelling.
    char canonical[INET_ADDRSTRLEN];
    if (inet_pton(AF_INET, address, &parsed) != 1 ||
        inet_ntop(AF_INET, &parsed, canonical, sizeof canonical) == NULL || strcmp(address, canonical) != 0)
        return bad_ipv4;
    return NULL;
}

static const char *take_name(const char *name, size_t len, struct target_authority *out) {
    const char *rule = check_name(name, len);
    if (rule != NULL)
        return rule;
    memcpy(out->host, name, len);
    out->host[len] = '\0';
    size_t end = name[len - 1] == '.' ? len - 1 : len;
    for (size_t i = 0; i < end; i++)
        out->key[i] = lower(name[i]);
    out->key[end] = '\0';
    return NULL;
}

static const char *take_unicode_name(const char *name, size_t len, struct target_authority *out) {
    if (len > UNICODE_HOST_MAX)
        return long_name;
    char *text = base_strndup(name, len);
    char *ascii = NULL;
    const char *rule = bad_idn;
    if (strlen(text) == len && idn2_to_ascii_8z(text, &ascii, IDN_FLAGS) == IDN2_OK)
        // The mapping makes '/', '.' and digits out of their look-alikes, and may leave nothing: judge the
        // result.
        rule = *ascii == '\0' ? bad_idn : take_name(ascii, strlen(ascii), out);
    idn2_free(ascii);
    free(text);
    return rule;
}

static bool is_ascii(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

// `text` begins with '['; *host_len is set to where the brackets end.
static const char *take_ipv6(const char *text, size_t len, struct target_authority *out, size_t *host_len) {
    char address[INET6_ADDRSTRLEN] = "";
    struct in6_addr parsed;
    const char *end = memchr(text, ']', len);
    if (end == NULL || (size_t)(end - text) > sizeof address)
        return bad_ipv6;
    memcpy(address, text + 1, (size_t)(end - text) - 1);
    // NUL bytes and zones don't pass: the address would be shorter than the brackets, or hold a '%'.
    if (strlen(address) != (size_t)(end - text) - 1 || inet_pton(AF_INET6, address, &parsed) != 1)
        return bad_ipv6;
    *host_len = (size_t)(end - text) + 1;
    memcpy(out->host, text, *host_len);
    out->host[*host_len] = '\0';
    REQUIRE(inet_ntop(AF_INET6, &parsed, out->key, sizeof out->key) != NULL);
    return NULL;
}

// `text`: what follows the host.
static const char *take_port(const char *text, size_t len, uint16_t default_port, uint16_t *out) {
    uint32_t port = 0;
    if (len > 0 && text[0] != ':')
        return bad_port;
    for (size_t i = 1; i < len; i++) {
        if (!is_digit(text[i]))
            return bad_port;
        port = port * 10 + (uint32_t)(text[i] - '0');
        if (port > UINT16_MAX)
            return bad_port;
    }
    if (len > 1 && port == 0)
        return bad_port;
    uint16_t effective = len > 1 ? (uint16_t)port : default_port;
    *out = effective == 443 ? 80 : effective;
    return NULL;
}

const char *target_authority_parse(
    const char *text, size_t len, uint16_t default_port, struct target_authority *out) {
    if (memchr(text, '@', len) != NULL)
        return user_info;
    const char *rule;
    if (len > 0 && text[0] == '[') {
        rule = take_ipv6(text, len, out, &out->host_len);
    } else {
        const char *colon = memchr(text, ':', len);
        out->host_len = colon != NULL ? (size_t)(colon - text) : len;
        if (out->host_len == 0)
            return no_host;
        rule = is_ascii(text, out->host_len) ? take_name(text, out->host_len, out)
                                             : take_unicode_name(text, out->host_len, out);
    }
    if (rule != NULL)
        return rule;
    return take_port(text + out->host_len, len - out->host_len, default_port, &out->port);
}
