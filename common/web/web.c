// SPDX-License-Identifier: MIT
// The server: its listener, and the contract between libmicrohttpd and the loop.
//
// libmicrohttpd keeps an epoll descriptor of its own, and the loop watches that. It stays silent while bytes
// are already buffered inside libmicrohttpd or a connection was just resumed, so each MHD_run() is followed
// by the question whether there is more to do at once; after a number of rounds the loop's other work has its
// turn first.
#include "common/web/web_internal.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// One run serves every connection that is ready once.
#define RUNS_PER_TURN 64
#define MS_PER_TURN 2

// Per connection: a head of 12 KB with 100 fields, a second copy of its cookies, which libmicrohttpd makes,
// with 64 bytes for each of 180 (browsers keep no more for a site), and beside them an answer with an
// 8,192-byte Location. libmicrohttpd clears all of it for each request, so no more than that.
#define CONNECTION_MEMORY 49152

// With an empty accept queue there is nobody whom closing the listener would reset.
static void finish_quiescing(struct web *web) {
    struct pollfd listener = {.fd = web->listen_fd, .events = POLLIN};
    if (web->listen_fd < 0 || poll(&listener, 1, 0) > 0)
        return;
    (void)MHD_quiesce_daemon(web->daemon);
    (void)close(web->listen_fd);
    web->listen_fd = -1;
}

static bool run_once(struct web *web) {
    MHD_UNSIGNED_LONG_LONG ms = 0;
    web->again = false;
    web->now_ms = base_monotonic_us() / US_PER_MS;
    (void)MHD_run(web->daemon);
    return web->again || (MHD_get_timeout(web->daemon, &ms) == MHD_YES && ms == 0);
}

static void run(struct web *web) {
    web->running = true;
    bool more = run_once(web);
    int64_t begin_ms = web->now_ms;
    for (int i = 1; more && i < RUNS_PER_TURN && web->now_ms - begin_ms < MS_PER_TURN; i++)
        more = run_once(web);
    if (web->quiescing)
        finish_quiescing(web);
    web->running = false;
    if (more)
        loop_timer_start(web->turn, 0);
    // The tick also is what libmicrohttpd's own timeouts are noticed by: they are long.
    if (!web->ticking && (web->conn_count > 0 || (web->quiescing && web->listen_fd >= 0))) {
        web->ticking = true;
        loop_timer_start(web->tick, web_conn_tick_ms(web));
    }
}

static void on_ready(void *arg, unsigned events) {
    (void)events;
    run(arg);
}

static void on_turn(void *arg) {
    run(arg);
}

static void on_tick(void *arg) {
    struct web *web = arg;
    web->ticking = false;
    web_conn_sweep(web);
    run(web);
}

void web_poke(struct web *web) {
    if (web->running)
        web->again = true;
    else
        loop_timer_start(web->turn, 0);
}

// Percent-encoding is the service's business; here it would also cut the path at %00.
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *text) {
    (void)cls, (void)mhd;
    return strlen(text);
}

// The old parser's strictest level, -1, is the new one's laxest. There the layout is checked by us
// (web_layout.c), here the parser is strict itself.
#if MHD_VERSION < 0x01000000
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT, -1
#else
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1
#endif

static struct MHD_Daemon *start_daemon(struct web *web) {
    const struct web_options *options = &web->options;
    // Suspending brings a descriptor for waking another thread's poll with it: two system calls per resume,
    // and no use on one thread.
    unsigned flags = MHD_USE_EPOLL | ((unsigned)MHD_ALLOW_SUSPEND_RESUME & ~(unsigned)MHD_USE_ITC);
    return MHD_start_daemon(flags, web->port, NULL, NULL, web_request_step, web,            //
        MHD_OPTION_LISTEN_SOCKET, web->listen_fd,                                           //
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)options->connections_max,                    //
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,                      //
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((options->idle_timeout_ms + 999) / 1000), //
        STRICTNESS,                                                                         //
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,                                   //
        MHD_OPTION_URI_LOG_CALLBACK, web_request_begin, web,                                //
        MHD_OPTION_NOTIFY_COMPLETED, web_request_end, web,                                  //
        MHD_OPTION_NOTIFY_CONNECTION, web_conn_notify, web,                                 //
        MHD_OPTION_END);
}

static void use_defaults(struct web_options *options) {
    if (options->head_timeout_ms == 0)
        options->head_timeout_ms = WEB_HEAD_TIMEOUT_MS;
    if (options->body_timeout_ms == 0)
        options->body_timeout_ms = WEB_BODY_TIMEOUT_MS;
    if (options->idle_timeout_ms == 0)
        options->idle_timeout_ms = WEB_IDLE_TIMEOUT_MS;
}

enum status web_open(const struct web_options *options, struct web **out, struct problem *why) {
    int fd = -1;
    enum status status = web_socket_listen(options, &fd, why);
    if (status != STATUS_OK)
        return status;
    struct web *web = base_calloc(1, sizeof *web);
    web->options = *options;
    use_defaults(&web->options);
    web->listen_fd = fd;
    web->port = web_socket_port(fd);
    web->now_ms = base_monotonic_us() / US_PER_MS;
    TAILQ_INIT(&web->conns);
    SLIST_INIT(&web->spare);
    LIST_INIT(&web->lingers);
    web->daemon = start_daemon(web);
    if (web->daemon == NULL) {
        // libmicrohttpd has closed the socket, on all but unlikely ways out.
        free(web);
        return problem_set(why, STATUS_UNAVAILABLE, "CANNOT_LISTEN",
            "The HTTP server can't start on port %u.", (unsigned)options->port);
    }
    int epoll_fd = MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    web->turn = loop_timer_create(options->loop, on_turn, web);
    web->tick = loop_timer_create(options->loop, on_tick, web);
    web->watch = loop_watch_create(options->loop, epoll_fd, on_ready, web);
    loop_watch_set(web->watch, LOOP_READ);
    web_poke(web); // the first run is what puts the listener into libmicrohttpd's epoll set
    *out = web;
    return STATUS_OK;
}

uint16_t web_port(const struct web *web) {
    return web->port;
}

void web_drain(struct web *web) {
    web->draining = true;
}

void web_quiesce(struct web *web) {
    web->quiescing = true;
    web_poke(web);
}

size_t web_in_flight(const struct web *web) {
    return web->in_flight;
}

// libmicrohttpd must not be stopped while a connection is suspended.
static void resume_all(struct web *web) {
    struct web_conn *conn = NULL;
    TAILQ_FOREACH(conn, &web->conns, link) {
        if (conn->request != NULL && conn->request->suspended)
            MHD_resume_connection(conn->mhd);
    }
}

void web_close(struct web *web) {
    if (web == NULL)
        return;
    REQUIRE(!web->running);
    web->closing = true;
    resume_all(web);
    loop_watch_free(web->watch);
    // Closes its connections and, unless it was quiesced, the listener.
    MHD_stop_daemon(web->daemon);
    web_linger_stop_all(web);
    web_request_free_spares(web);
    loop_timer_free(web->turn);
    loop_timer_free(web->tick);
    free(web);
}
