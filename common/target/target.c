// SPDX-License-Identifier: MIT
#include "common/target/target.h"
#include "common/target/invisible.h"
#include "common/target/target_host.h"
#include "common/utf8/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char bad_scheme[] = "The URL must begin with http:// or https://.";

static const char too_long[] = "The URL must have at most 8192 bytes, counted after percent-encoding.";
_Static_assert(TARGET_MAX == 8192, "the sentence says so");

struct span {
    const char *text;
    size_t len;
};

static struct span skip(struct span span, size_t len) {
    return (struct span){span.text + len, span.len - len};
}

// The length up to the first of `bytes`.
static size_t length_before(struct span span, const char *bytes) {
    for (size_t i = 0; i < span.len; i++)
        if (span.text[i] != '\0' && strchr(bytes, span.text[i]) != NULL)
            return i;
    return span.len;
}

static bool is_trimmed(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\f' || byte == '\r';
}

static struct span trim(struct span span) {
    while (span.len > 0 && is_trimmed(span.text[0]))
        span = skip(span, 1);
    while (span.len > 0 && is_trimmed(span.text[span.len - 1]))
        span.len--;
    return span;
}

static bool is_control(uint32_t point) {
    return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x2028 || point == 0x2029;
}

static bool is_invisible(uint32_t point) {
    for (size_t i = 0; i < ARRAY_LEN(target_invisible); i++)
        if (point >= target_invisible[i].first && point <= target_invisible[i].last)
            return true;
    return false;
}

static const char *check_text(struct span url) {
    static const char bad_end[] = "The URL must not begin or end with an invisible character.";
    bool at_start = true;
    uint32_t point = 0;
    while (url.len > 0) {
        size_t step = utf8_next(url.text, url.len, &point);
        if (step == 0)
            return "The URL must be UTF-8.";
        url = skip(url, step);
        if (at_start && is_invisible(point))
            return bad_end;
        if (url.len > 0 && is_control(point))
            return "The URL must not hold a control character or a line break.";
        at_start = false;
    }
    return is_invisible(point) ? bad_end : NULL;
}

// The length of "http://" or "https://" in any letter case, with the scheme's port; 0 for anything else.
static size_t scheme_length(struct span url, uint16_t *port) {
    static const struct {
        const char *text;
        uint16_t port;
    } schemes[] = {{"http://", 80}, {"https://", 443}};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i].text);
        if (url.len >= len && strncasecmp(url.text, schemes[i].text, len) == 0) {
            *port = schemes[i].port;
            return len;
        }
    }
    return 0;
}

static bool is_own(const struct target_rules *rules, const struct target_authority *authority) {
    for (size_t i = 0; i < rules->own_count; i++)
        if (rules->own[i].port == authority->port && strcmp(rules->own[i].host, authority->key) == 0)
            return true;
    return false;
}

// What a URI can't hold becomes %XX; what it can, malformed escapes included, stays as it was sent.
static void put_encoded(struct buf *out, struct span span) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < span.len; i++) {
        unsigned char byte = (unsigned char)span.text[i];
        if (byte > ' ' && byte < 0x7F && strchr("<>\"{}|^`\\", byte) == NULL) {
            buf_putc(out, (char)byte);
            continue;
        }
        char escape[] = {'%', digits[byte >> 4], digits[byte & 15]};
        buf_append(out, escape, sizeof escape);
    }
}

// NULL, or the broken rule. Fills `out`, whose limit is TARGET_MAX.
static const char *normalise(const struct target_rules *rules, struct span url, struct buf *out) {
    uint16_t port = 0;
    struct target_authority authority;
    if (url.len == 0)
        return "The URL must not be empty.";
    const char *rule = check_text(url);
    if (rule != NULL)
        return rule;
    size_t scheme_len = scheme_length(url, &port);
    if (scheme_len == 0)
        return bad_scheme;
    // Browsers read it as a slash, so it moves where the host ends.
    if (memchr(url.text, '\\', length_before(url, "?#")) != NULL)
        return "The URL must not hold a backslash before its query or fragment.";
    struct span rest = skip(url, scheme_len);
    size_t authority_len = length_before(rest, "/?#");
    rule = target_authority_parse(rest.text, authority_len, port, &authority);
    if (rule != NULL)
        return rule;
    if (is_own(rules, &authority))
        return "The URL must not lead back to this service.";
    buf_append(out, url.text, scheme_len);
    buf_puts(out, authority.host);
    buf_append(out, rest.text + authority.host_len, authority_len - authority.host_len);
    put_encoded(out, skip(rest, authority_len));
    return buf_ok(out) ? NULL : too_long;
}

enum status target_normalise(
    const struct target_rules *rules, const char *url, size_t len, struct buf *out, struct problem *why) {
    struct buf made;
    buf_init(&made, TARGET_MAX);
    const char *rule = normalise(rules, trim((struct span){url, len}), &made);
    enum status status = STATUS_OK;
    if (rule != NULL)
        status = problem_violate(why, "url", "%s", rule);
    else
        buf_append(out, made.data, made.len);
    buf_done(&made);
    return status;
}

bool target_is_sendable(const char *url, size_t len) {
    uint16_t port;
    if (len > TARGET_MAX || scheme_length((struct span){url, len}, &port) == 0)
        return false;
    for (size_t i = 0; i < len; i++)
        if (url[i] <= ' ' || url[i] >= 0x7F)
            return false;
    return true;
}

static void add_own(struct target_rules *rules, const char *host, uint16_t port) {
    rules->own[rules->own_count++] = (struct target_own){.host = base_strdup(host), .port = port};
}

static const char *add_public_url(struct target_rules *rules, const char *public_url) {
    struct span url = {public_url, strlen(public_url)};
    struct target_authority authority;
    uint16_t port = 0;
    size_t scheme_len = scheme_length(url, &port);
    if (scheme_len == 0)
        return bad_scheme;
    url = skip(url, scheme_len);
    size_t authority_len = length_before(url, "/?#");
    struct span path = skip(url, authority_len);
    if (path.len > 1 || (path.len == 1 && path.text[0] != '/'))
        return "The URL must have no path, query or fragment.";
    const char *rule = target_authority_parse(url.text, authority_len, port, &authority);
    if (rule != NULL)
        return rule;
    add_own(rules, authority.key, authority.port);
    struct buf made;
    buf_init(&made, TARGET_MAX);
    buf_append(&made, public_url, scheme_len);
    buf_puts(&made, authority.host);
    buf_append(&made, url.text + authority.host_len, authority_len - authority.host_len);
    rule = buf_ok(&made) ? NULL : too_long;
    rules->public_url = buf_take(&made, NULL);
    return rule;
}

static const char *add_allowed_host(struct target_rules *rules, struct span item) {
    struct target_authority authority;
    const char *rule = target_authority_parse(item.text, item.len, 80, &authority);
    if (rule != NULL)
        return rule;
    add_own(rules, authority.key, authority.port);
    // A host without a port is also served where PUBLIC_URL is.
    if (authority.host_len == item.len && rules->own[0].port != authority.port)
        add_own(rules, authority.key, rules->own[0].port);
    return NULL;
}

bool target_rules_init(
    struct target_rules *rules, const char *public_url, const char *allowed_hosts, struct buf *why) {
    struct span list = {allowed_hosts, strlen(allowed_hosts)};
    // An item has a byte and a separator at least, and makes two entries at most.
    struct target_rules made = {.own = base_calloc(list.len + 3, sizeof *made.own)};
    const char *rule = add_public_url(&made, public_url);
    if (rule != NULL)
        buf_printf(why, "PUBLIC_URL: %s", rule);
    while (rule == NULL && list.len > 0) {
        struct span item = {list.text, length_before(list, ", ")};
        rule = item.len == 0 ? NULL : add_allowed_host(&made, item);
        if (rule != NULL)
            buf_printf(why, "ALLOWED_HOSTS, \"%.*s\": %s", (int)item.len, item.text, rule);
        list = skip(list, item.len < list.len ? item.len + 1 : item.len);
    }
    if (rule != NULL) {
        target_rules_done(&made);
        return false;
    }
    *rules = made;
    return true;
}

bool target_rules_serve(const struct target_rules *rules, const char *host) {
    struct target_authority authority;
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (len > strlen(host) || target_authority_parse(host, len, 80, &authority) != NULL)
        return false;
    for (size_t i = 0; i < rules->own_count; i++)
        if (strcmp(rules->own[i].host, authority.key) == 0)
            return true;
    return false;
}

void target_rules_done(struct target_rules *rules) {
    for (size_t i = 0; i < rules->own_count; i++)
        free(rules->own[i].host);
    free(rules->own);
    free(rules->public_url);
    *rules = (struct target_rules){0};
}
