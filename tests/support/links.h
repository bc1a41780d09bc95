// SPDX-License-Identifier: MIT
// What most end-to-end tests say about links, over HTTP: each line asserts what a working fleet does.
#pragma once

#include "tests/support/await.h"

#include "common/json/json.h"
#include "tests/support/http_client.h"
#include "tests/support/stack.h"

#define LINKS_PATH "/api/v1/links"

struct link {
    char code[40];
    char short_url[128];
};

// Creates one with the demo key; `json` is the request's body.
void link_create(const struct stack *stack, const char *json, struct link *out);
// The status of a create that may fail.
int link_try_create(const struct stack *stack, const char *json);
// GET /{code}: 302 with this Location, once.
void link_must_redirect(const struct stack *stack, const char *code, const char *location);
// The status of GET with this target.
int link_follow(const struct stack *stack, const char *target);
// The link's clicks of the last 30 days; -1 where the answer isn't 200.
int64_t link_clicks(const struct stack *stack, const char *code);
// Waits until exactly `clicks` are counted; fails when it is more, or after `seconds`.
void link_await_clicks(const struct stack *stack, const char *code, int64_t clicks, int seconds);

// The answer's body, which must be JSON; free it with json_doc_free().
struct json_doc *links_json(const struct http_answer *answer);
// The member's text; fails where it is no string.
const char *links_text(const struct json_doc *doc, const char *member);
// A problem document (RFC 9457) with this status; `field`, unless NULL, is named in its errors. `type`,
// unless NULL, is the whole type.
void links_expect_problem(const struct http_answer *answer, int status, const char *type, const char *field);
