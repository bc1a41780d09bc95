// SPDX-License-Identifier: MIT
// An HTTP answer while it is being built: status, header fields, body. Owned by one thread at a time; made on
// the gateway's threads too, so that it knows nothing of a connection.
#pragma once

#include "common/buf/buf.h"
#include "common/status/status.h"
#include "common/web/web.h"

#define ANSWER_HEADERS_MAX 16
#define ANSWER_SCRATCH 512
#define ANSWER_BODY_MAX ((size_t)2 * 1024 * 1024)

struct answer {
    int status;
    bool close;
    size_t header_count;
    struct web_header_field headers[ANSWER_HEADERS_MAX];
    size_t scratch_len;
    char scratch[ANSWER_SCRATCH]; // the values that answer_header_copy() keeps
    struct buf body;
};

// init/done: the struct is the caller's. Sets what every answer carries.
void answer_init(struct answer *answer, int status);
void answer_done(struct answer *answer);

// `name` is a constant; `value` must outlive the answer, or is copied (short ones only).
void answer_header(struct answer *answer, const char *name, const char *value);
void answer_header_copy(struct answer *answer, const char *name, const char *value);

// Turns the answer into an RFC 9457 problem document with the fields that every error carries; keeps header
// fields that were added before. 401 gets WWW-Authenticate, 429 and 503 Retry-After.
void answer_problem(struct answer *answer, int http_status, const struct problem *why);
// The same for people's browsers: a small HTML page where `accept` names text/html, else the problem
// document.
void answer_error(struct answer *answer, int http_status, const struct problem *why, const char *accept);
// A problem whose HTTP status follows from its own.
void answer_outcome(struct answer *answer, const struct problem *why);

// Hands it to the connection; the answer stays the caller's to release.
void answer_send(const struct answer *answer, struct web_request *request);

// "Not Found"; "Error" for a status that we never send.
const char *answer_title(int http_status);
