// SPDX-License-Identifier: MIT
// The gate of the HTTP server: what HTTP itself forbids in a request head, judged before anything acts on the
// request. Pure: bytes in, a status out. Private to common/web.
#pragma once

#include "common/base/base.h"
#include "common/web/web.h"
#include <stdbool.h>

// Begin, line, every field in order, end; then `refusal` holds. Of several faults the gravest counts (a
// malformed message, then sizes, then what is not implemented, then the body's size), and of two alike the
// first one met.
struct web_head {
    int refusal; // 0: none
    const char *detail;
    enum web_method method;
    const char *host; // the Host field's value; NULL: none
    size_t fields;
    bool http_1_0;
    bool bad_target; // not to be split
    bool expects;    // the client waits for leave to send its body
    // Internal:
    unsigned rank;
    unsigned hosts;
    unsigned lengths;
    unsigned codings;
    bool chunked;
    uint64_t length; // saturated
};

void web_head_begin(struct web_head *head);
void web_head_line(struct web_head *head, const char *method, const char *target, const char *version);
void web_head_field(
    struct web_head *head, const char *name, size_t name_len, const char *value, size_t value_len);
// `line_len`: the request line. `len`: line and fields together. Line ends are counted in neither.
void web_head_end(struct web_head *head, size_t line_len, size_t len, size_t body_max);
// A fault that the caller found by other means.
void web_head_refuse(struct web_head *head, int status, const char *detail);

struct web_target {
    const char *path;
    const char *query; // NULL: no '?'
    const char *host;  // of an absolute-form target, else NULL
};
// Splits a target that the gate let pass, in place.
void web_head_split(char *target, struct web_target *out);
