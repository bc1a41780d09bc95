// SPDX-License-Identifier: MIT
// An HTTP/1.1 server on one loop: libmicrohttpd with external epoll. It reads a request whole (head, then
// body, both bounded and under a deadline), hands it over once, and takes the answer then or later on the
// same thread; a request that is not answered at once is suspended and resumed here. The only includer of
// libmicrohttpd.
//
// One struct web per worker, each on its own SO_REUSEPORT socket. All calls on the loop's thread.
#pragma once

#include "common/base/base.h"
#include "common/loop/loop.h"
#include "common/status/status.h"
#include <stdbool.h>

struct web;
struct web_request; // valid from the handler's call until web_answer() or web_go_on()

enum web_method {
    WEB_GET,
    WEB_HEAD,
    WEB_POST,
    WEB_PUT,
    WEB_PATCH,
    WEB_DELETE,
    WEB_OPTIONS,
    WEB_TRACE,
    WEB_CONNECT,
    WEB_OTHER, // any other word
};

// Called once per request. Either web_answer() runs before it returns, or the request is suspended until
// then.
typedef void web_handler(void *arg, struct web_request *request);

struct web_options {
    struct loop *loop;
    const char *address; // numeric, "127.0.0.1" or "::"
    uint16_t port;       // 0: any free one, see web_port()
    bool shared;         // SO_REUSEPORT: several workers listen on one port
    size_t body_max;     // bytes; 65,536 for the API
    size_t connections_max;
    // 0: the limits below. Tests shorten them.
    int64_t head_timeout_ms;
    int64_t body_timeout_ms;
    int64_t idle_timeout_ms; // in whole seconds, rounded up
    web_handler *handler;
    // Called before `handler` where the client waits for leave to send its body (Expect: 100-continue), with
    // everything but the body: web_answer() refuses it at once, web_go_on() has it sent and `handler` called
    // after it. Either may come later too. NULL: such bodies are always wanted.
    web_handler *expecting;
    void *arg;
};

// Limits of docs/http-api.md, not ours to set per server.
#define WEB_REQUEST_LINE_MAX 8192
#define WEB_HEAD_MAX 12288
#define WEB_FIELDS_MAX 100
#define WEB_HEAD_TIMEOUT_MS 10000
#define WEB_BODY_TIMEOUT_MS 30000
#define WEB_IDLE_TIMEOUT_MS 75000

MUST_CHECK enum status web_open(const struct web_options *options, struct web **out, struct problem *why);
uint16_t web_port(const struct web *web);
// The worker's part of a drain: every answer from here on says `Connection: close`.
void web_drain(struct web *web);
// Accepts who is already waiting, then no new connections; what is in flight is still served.
void web_quiesce(struct web *web);
size_t web_in_flight(const struct web *web); // requests handed over whose answer isn't sent yet
void web_close(
    struct web *web); // answers nothing more and drops suspended requests; not from within the handler

// Before the workers share a port: fails with FAILED_PRECONDITION when another process listens on it already.
MUST_CHECK enum status web_port_is_free(const char *address, uint16_t port, struct problem *why);

// 0, or the status with which HTTP's own rules already refuse this request (400, 408, 413, 414, 417, 431,
// 501): answer it so before the handler returns, with whatever body suits; the connection closes afterwards.
// Method, path, fields and body may be incomplete: the path is "/" and the method WEB_OTHER where they are
// not known.
int web_refusal(const struct web_request *request);
const char *web_refusal_detail(const struct web_request *request); // a sentence; "" where there is no refusal

enum web_method web_method(const struct web_request *request);
// Target as sent: path without query, still percent-encoded ("" never: at least "/"), and the raw query
// (NULL: no '?'). An absolute-form target is split; its host wins over the Host field.
const char *web_path(const struct web_request *request);
const char *web_query(const struct web_request *request);
const char *web_host(const struct web_request *request);
// The first field of that name (any letter case), or NULL. Values hold no CR, LF or NUL.
const char *web_header(const struct web_request *request, const char *name);
const char *web_body(const struct web_request *request, size_t *len);
// "192.0.2.1": the peer's address as text.
const char *web_peer(const struct web_request *request);

struct web_header_field {
    const char *name;
    const char *value;
};

struct web_answer {
    int status;
    const struct web_header_field *headers; // Content-Length, Connection and Date are added here
    size_t header_count;
    const char *body; // NULL: none; copied
    size_t body_len;
    bool close; // close the connection afterwards
};
// Ends the request; `request` is gone afterwards. A value with CR, LF or NUL turns the answer into an empty
// 500.
void web_answer(struct web_request *request, const struct web_answer *answer);
// In place of web_answer(), for a request that `expecting` was called with.
void web_go_on(struct web_request *request);
