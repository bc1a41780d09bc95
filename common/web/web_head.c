// SPDX-License-Identifier: MIT
#include "common/web/web_head.h"

#include <string.h>
#include <strings.h>

// What a byte may be part of.
enum {
    IN_TOKEN = 1, // method and field names (RFC 9110, 5.6.2)
    IN_PATH = 2,  // pchar and '/', and beside them '[' and ']', which are no fault of the message here
    IN_HOST = 4,  // reg-name (RFC 3986, 3.2.2)
    IN_IP6 = 8,   // between brackets
};

// clang-format off
static const unsigned char classes[256] = {
    // 0x00, a row of sixteen each; what is not ASCII is none of these.
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
     0,  7,  0,  1,  7,  7,  7,  7,  6,  6,  7,  7,  6,  7, 15,  2,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 10,  6,  0,  6,  0,  0,
     2, 15, 15, 15, 15, 15, 15,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  2,  0,  2,  1,  7,
     1, 15, 15, 15, 15, 15, 15,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  0,  1,  0,  7,  0,
};
// clang-format on

// The length of the run of bytes of that class at the start.
static size_t span(const char *bytes, size_t len, unsigned class) {
    size_t n = 0;
    while (n < len && (classes[(unsigned char)bytes[n]] & class) != 0)
        n++;
    return n;
}

static bool is(const char *text, size_t len, const char *lower) {
    return strlen(lower) == len && strncasecmp(text, lower, len) == 0;
}

static unsigned rank_of(int status) {
    switch (status) {
    case 400:
        return 1;
    case 414:
        return 2;
    case 431:
        return 3;
    case 501:
        return 4;
    case 417:
        return 5;
    default:
        return 6;
    }
}

void web_head_refuse(struct web_head *head, int status, const char *detail) {
    unsigned rank = rank_of(status);
    if (head->refusal != 0 && head->rank <= rank)
        return;
    head->refusal = status;
    head->rank = rank;
    head->detail = detail;
}

void web_head_begin(struct web_head *head) {
    *head = (struct web_head){.detail = ""};
}

static enum web_method method_of(const char *word) {
    static const struct {
        const char *word;
        enum web_method method;
    } known[] = {
        {"GET", WEB_GET},
        {"HEAD", WEB_HEAD},
        {"POST", WEB_POST},
        {"PUT", WEB_PUT},
        {"PATCH", WEB_PATCH},
        {"DELETE", WEB_DELETE},
        {"OPTIONS", WEB_OPTIONS},
        {"TRACE", WEB_TRACE},
        {"CONNECT", WEB_CONNECT},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(word, known[i].word) == 0)
            return known[i].method;
    return WEB_OTHER;
}

// uri-host [ ":" port ], without user information.
static bool host_is_valid(const char *host, size_t len) {
    size_t name = 0;
    if (len > 0 && host[0] == '[') {
        size_t inside = span(host + 1, len - 1, IN_IP6);
        if (inside == 0 || inside + 1 >= len || host[inside + 1] != ']')
            return false;
        name = inside + 2;
    } else {
        name = span(host, len, IN_HOST);
        if (name == 0)
            return false;
    }
    if (name == len)
        return true;
    if (host[name] != ':')
        return false;
    for (size_t i = name + 1; i < len; i++)
        if (host[i] < '0' || host[i] > '9')
            return false;
    return true;
}

// Where the authority of an absolute-form target begins; 0 where it is none.
static size_t authority_at(const char *target) {
    if (strncasecmp(target, "http://", 7) == 0)
        return 7;
    if (strncasecmp(target, "https://", 8) == 0)
        return 8;
    return 0;
}

static void refuse_target(struct web_head *head, const char *detail) {
    head->bad_target = true;
    web_head_refuse(head, 400, detail);
}

static void check_path_and_query(struct web_head *head, const char *path) {
    size_t len = strlen(path);
    size_t end = span(path, len, IN_PATH);
    if (end == len)
        return;
    if (path[end] != '?') {
        refuse_target(head, "The path holds a byte that must be percent-encoded.");
        return;
    }
    // A query may hold any byte but those that end a target or a line.
    if (path[end + strcspn(path + end, "# \r")] != '\0')
        refuse_target(head, "The query holds '#', a space or a carriage return.");
}

static void check_target(struct web_head *head, const char *target) {
    if (head->method == WEB_CONNECT)
        return; // answered alike whatever the target
    if (target[0] == '*' && target[1] == '\0') {
        if (head->method != WEB_OPTIONS)
            refuse_target(head, "The target \"*\" is for OPTIONS.");
        return;
    }
    if (target[0] == '/') {
        check_path_and_query(head, target);
        return;
    }
    size_t at = authority_at(target);
    size_t len = at == 0 ? 0 : strcspn(target + at, "/?#");
    if (at == 0 || !host_is_valid(target + at, len)) {
        refuse_target(head, "The request target is neither a path nor an http URI with a host.");
        return;
    }
    check_path_and_query(head, target + at + len);
}

void web_head_line(struct web_head *head, const char *method, const char *target, const char *version) {
    size_t len = strlen(method);
    head->method = method_of(method);
    head->http_1_0 = strcmp(version, "HTTP/1.0") == 0;
    if (len == 0 || span(method, len, IN_TOKEN) != len)
        web_head_refuse(head, 400, "The method is not a token.");
    check_target(head, target);
}

// True where a byte of the word is below 0x20 or is 0x7F. Says so of a tab too. (The tests for a byte below n
// and for a zero byte of S. E. Anderson's "Bit Twiddling Hacks"; they may err only on bytes after a true
// hit.)
static bool word_is_suspect(uint64_t word) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t high = ones * 0x80;
    uint64_t below = (word - ones * 0x20) & ~word & high;
    uint64_t del = word ^ (ones * 0x7F);
    return (below | ((del - ones) & ~del & high)) != 0;
}

static bool value_is_clean(const char *value, size_t len) {
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        uint64_t word;
        memcpy(&word, value + i, sizeof word);
        if (word_is_suspect(word))
            break;
    }
    for (; i < len; i++) {
        unsigned char byte = (unsigned char)value[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F)
            return false;
    }
    return true;
}

static void take_host(struct web_head *head, const char *value, size_t len) {
    if (head->hosts++ == 0)
        head->host = value;
    if (!host_is_valid(value, len))
        web_head_refuse(head, 400, "The Host field is not a host.");
}

static void take_expectation(struct web_head *head, const char *value, size_t len) {
    if (head->http_1_0)
        return;
    head->expects = is(value, len, "100-continue");
    if (!head->expects)
        web_head_refuse(head, 417, "The only expectation known here is 100-continue.");
}

static void take_length(struct web_head *head, const char *value, size_t len) {
    if (head->lengths++ > 0)
        web_head_refuse(head, 400, "There is more than one Content-Length.");
    uint64_t length = 0;
    bool valid = len > 0;
    for (size_t i = 0; valid && i < len; i++) {
        valid = value[i] >= '0' && value[i] <= '9';
        uint64_t digit = (uint64_t)(unsigned char)value[i] - '0';
        length = length > (UINT64_MAX - 9) / 10 ? UINT64_MAX - 9 : length * 10 + digit;
    }
    if (!valid)
        web_head_refuse(head, 400, "Content-Length is not a number.");
    head->length = length;
}

static void take_coding(struct web_head *head, const char *value, size_t len) {
    if (head->codings++ > 0)
        web_head_refuse(head, 400, "There is more than one Transfer-Encoding.");
    if (is(value, len, "chunked"))
        head->chunked = true;
    else
        web_head_refuse(head, 501, "The only transfer coding known here is chunked.");
}

void web_head_field(
    struct web_head *head, const char *name, size_t name_len, const char *value, size_t value_len) {
    head->fields++;
    while (value_len > 0 && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
        value_len--;
    if (name_len == 0 || span(name, name_len, IN_TOKEN) != name_len)
        web_head_refuse(head, 400, "A field's name is not a token.");
    if (!value_is_clean(value, value_len))
        web_head_refuse(head, 400, "A field's value holds a control character.");
    switch (name_len) {
    case 4:
        if (is(name, name_len, "host"))
            take_host(head, value, value_len);
        break;
    case 6:
        if (is(name, name_len, "expect"))
            take_expectation(head, value, value_len);
        break;
    case 14:
        if (is(name, name_len, "content-length"))
            take_length(head, value, value_len);
        break;
    case 17:
        if (is(name, name_len, "transfer-encoding"))
            take_coding(head, value, value_len);
        break;
    default:
        break;
    }
}

void web_head_end(struct web_head *head, size_t line_len, size_t len, size_t body_max) {
    if (head->hosts == 0 && !head->http_1_0)
        web_head_refuse(head, 400, "The Host field is missing.");
    if (head->hosts > 1)
        web_head_refuse(head, 400, "There is more than one Host field.");
    if (head->codings > 0 && head->lengths > 0)
        web_head_refuse(head, 400, "Content-Length stands beside Transfer-Encoding.");
    if (head->codings > 0 && head->http_1_0)
        web_head_refuse(head, 400, "HTTP/1.0 knows no Transfer-Encoding.");
    if (line_len > WEB_REQUEST_LINE_MAX)
        web_head_refuse(head, 414, "The request line is longer than 8,192 bytes.");
    if (len > WEB_HEAD_MAX)
        web_head_refuse(head, 431, "The request head is longer than 12,288 bytes.");
    if (head->fields > WEB_FIELDS_MAX)
        web_head_refuse(head, 431, "The request has more than 100 fields.");
    if (!head->chunked && head->length == 0)
        head->expects = false;
    if (head->length > body_max)
        web_head_refuse(head, 413, "The request body is too large.");
}

void web_head_split(char *target, struct web_target *out) {
    size_t at = authority_at(target);
    char *path = target;
    const char *host = NULL;
    if (at != 0) {
        // The host moves one byte to the left, over the second slash, to make room for its NUL.
        size_t len = strcspn(target + at, "/?#");
        memmove(target + at - 1, target + at, len);
        target[at - 1 + len] = '\0';
        host = target + at - 1;
        path = target + at + len;
    }
    char *mark = strchr(path, '?');
    if (mark != NULL)
        *mark = '\0';
    out->path = path[0] == '\0' ? "/" : path;
    out->query = mark == NULL ? NULL : mark + 1;
    out->host = host;
}
