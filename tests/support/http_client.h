// SPDX-License-Identifier: MIT
// An HTTP/1.1 client that sends exactly the bytes it is given and reads answers strictly, for tests. It
// follows no redirect, never retries, and waits at most HTTP_WAIT_US for each answer. A client belongs to one
// thread at a time.
#pragma once

#include "common/buf/buf.h"

#define HTTP_WAIT_US (20 * US_PER_S)
#define HTTP_FIELDS_MAX 64

struct http_field {
    const char *name; // borrowed from the answer's head
    const char *value;
};

struct http_answer {
    int status; // 0: no whole answer came (refused, closed, too late, or not HTTP as RFC 9112 has it)
    struct buf head;
    struct buf body;
    struct http_field fields[HTTP_FIELDS_MAX];
    size_t field_count;
    int64_t took_us; // from the last send to the last byte
};
// Releases what an answer holds; a zeroed one too.
void http_answer_done(struct http_answer *answer);
// The field's value in any letter case, or NULL; and how many fields have that name.
const char *http_field(const struct http_answer *answer, const char *name);
size_t http_field_count(const struct http_answer *answer, const char *name);

struct http_request {
    const char *method; // NULL: GET
    const char *target; // as it goes on the wire: "/code"
    const char *key;    // an API key, or NULL
    const char *fields; // more of them, each ended by CR LF, or NULL; one with Host replaces ours
    const char *type;   // Content-Type, or NULL
    const char *body;   // or NULL
    size_t body_len;    // 0: the body is a text
};

struct http_client;

// `url`: "http://ADDRESS:PORT", an IPv4 address. NULL where nobody accepts.
struct http_client *http_client_open(const char *url);
void http_client_close(struct http_client *client); // NULL is fine
void http_client_send(struct http_client *client, const struct http_request *request);
void http_client_send_bytes(struct http_client *client, const void *bytes, size_t len);
// The next answer, into a struct that holds nothing. `is_head`: it belongs to a HEAD, so no body follows.
void http_client_read(struct http_client *client, bool is_head, struct http_answer *out);

// One request on a connection of its own. The caller releases the answer.
void http_ask(const char *url, const struct http_request *request, struct http_answer *out);
void http_get(const char *url, const char *target, struct http_answer *out);
void http_post_json(
    const char *url, const char *target, const char *key, const char *json, struct http_answer *out);
// The same for bytes that no request could say.
void http_ask_bytes(const char *url, const void *bytes, size_t len, struct http_answer *out);
