// SPDX-License-Identifier: MIT
// What the files of common/web share. Private to the module; all of it on the loop's thread.
#pragma once

#include "common/buf/buf.h"
#include "common/loop/loop.h"
#include "common/web/web.h"
#include "common/web/web_head.h"
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/queue.h>

// MHD_NO and MHD_YES; its handlers' way to say "close this connection" and "go on".
typedef enum MHD_Result web_result;

// What a connection is doing; each phase but the last two has a deadline from when it began.
enum web_phase {
    WEB_PHASE_HEAD, // new, or something of a request has come
    WEB_PHASE_BODY,
    WEB_PHASE_BUSY, // handed over or being answered
    WEB_PHASE_IDLE, // between requests
};

struct web_conn {
    TAILQ_ENTRY(web_conn) link; // in the order of the sweep's visits
    struct web *web;
    struct MHD_Connection *mhd;
    struct web_request *request; // NULL between requests
    int fd;
    enum web_phase phase;
    int64_t since_ms;
    bool linger; // drain what the peer still sends before closing
    bool dead;   // answered past libmicrohttpd: nothing more may happen on it
    char peer[INET6_ADDRSTRLEN];
};
TAILQ_HEAD(web_conns, web_conn);

enum web_stage {
    WEB_STAGE_LINE,    // the target is known
    WEB_STAGE_WANTED,  // leave to send the body was given after a while
    WEB_STAGE_BODY,    // the head has passed the gate
    WEB_STAGE_HANDED,  // the service has it
    WEB_STAGE_ANSWERED // the answer is with libmicrohttpd or sent
};

// One from the target's arrival to the last byte of the answer. Pooled: `target` is left as it was by the
// last user.
struct web_request {
    SLIST_ENTRY(web_request) free;
    struct web *web;
    struct web_conn *conn; // NULL: gone, the service still holds the request
    enum web_stage stage;
    bool suspended; // and not resumed yet
    bool raw;       // answered on the socket, past libmicrohttpd
    bool head_read; // fields may be asked for
    struct web_head head;
    struct web_target parts;
    struct buf body;
    size_t dropped; // bytes of a body that grew too large
    unsigned status;
    struct MHD_Response *response;
    const char *line_target; // where libmicrohttpd keeps the target, for web_layout
    size_t target_len;
    char target[WEB_REQUEST_LINE_MAX + 1];
};
SLIST_HEAD(web_requests, web_request);

struct web_linger;
LIST_HEAD(web_lingers, web_linger);

struct web {
    struct web_options options;
    struct MHD_Daemon *daemon;
    struct loop_watch *watch;
    struct loop_timer *turn; // goes on with MHD_run() in the loop's next turn
    struct loop_timer *tick; // the sweep, while there are connections
    bool running;            // within MHD_run()
    bool again;              // MHD_run() has more to do, whatever it says itself
    bool ticking;
    bool draining;
    bool quiescing;
    bool closing;
    int listen_fd; // -1 once we have closed it; until then libmicrohttpd does when it stops
    uint16_t port;
    int64_t now_ms; // monotonic, as of the last MHD_run() or sweep
    struct web_conns conns;
    size_t conn_count;
    size_t in_flight;
    struct web_requests spare;
    size_t spare_count;
    struct web_lingers lingers;
    size_t linger_count;
};

// web.c
// Has MHD_run() called soon; safe anywhere.
void web_poke(struct web *web);

// web_socket.c
MUST_CHECK enum status web_socket_listen(const struct web_options *options, int *out, struct problem *why);
uint16_t web_socket_port(int fd);
// Peer's address as text, an IPv4 address in IPv6 clothes as IPv4; "" for what is neither.
void web_address_text(const struct sockaddr *address, char *out, size_t size);

// web_conn.c
void web_conn_notify(
    void *cls, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code);
struct web_conn *web_conn_of(struct MHD_Connection *mhd);
void web_conn_phase(struct web_conn *conn, enum web_phase phase);
// Visits the next share of the connections and ends those that are late.
void web_conn_sweep(struct web *web);
int64_t web_conn_tick_ms(const struct web *web);

// web_request.c
void *web_request_begin(void *cls, const char *target, struct MHD_Connection *mhd);
web_result web_request_step(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *upload, size_t *upload_len, void **con_cls);
void web_request_end(
    void *cls, struct MHD_Connection *mhd, void **con_cls, enum MHD_RequestTerminationCode code);
struct web_request *web_request_create(struct web *web, struct web_conn *conn);
// Hands the request over as refused, to be answered on the socket itself. For where libmicrohttpd takes no
// answer.
void web_request_refuse_raw(struct web_request *request, int status, const char *detail);
// The connection is done with it. What the service still holds lives on until it is answered.
void web_request_finish(struct web_request *request);
void web_request_free_spares(struct web *web);

// web_answer.c
// The answer as libmicrohttpd's response; what it can't carry becomes an empty 500.
struct MHD_Response *web_answer_build(struct web_request *request, const struct web_answer *answer);
// Writes the answer to the socket; the connection is to be closed afterwards.
void web_answer_raw(struct web_request *request, const struct web_answer *answer);

// web_layout.c
// False where the head in libmicrohttpd's buffer is not what its strings say: a NUL, a bare LF, a folded or
// doubly spaced line. Adds the fields to the request's head on the way. `line_len` and `len` as
// web_head_end() wants them.
bool web_layout_read(
    struct web_request *request, const char *method, const char *version, size_t *line_len, size_t *len);

// web_linger.c
// Keeps the connection half closed until the peer is done, within bounds. Takes a copy of the descriptor.
void web_linger_start(struct web *web, int fd);
void web_linger_stop_all(struct web *web);
