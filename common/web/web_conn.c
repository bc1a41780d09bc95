// SPDX-License-Identifier: MIT
// Connections and their deadlines. libmicrohttpd knows a timeout without activity only, which every byte puts
// off; how long a head or a body may take in all is kept here. A sweep visits each connection about once a
// second, some at a time: nothing is armed or moved per request.
#include "common/web/web_internal.h"

#include <linux/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#define TICKS_PER_ROUND 20
#define ROUND_MAX_MS 1000
// tcp_info counts in the kernel's ticks, of up to 10 ms.
#define CLOCK_SLACK_MS 20

struct web_conn *web_conn_of(struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

void web_conn_phase(struct web_conn *conn, enum web_phase phase) {
    conn->phase = phase;
    conn->since_ms = conn->web->now_ms;
}

static void begin(struct web *web, struct MHD_Connection *mhd, void **socket_context) {
    struct web_conn *conn = base_calloc(1, sizeof *conn);
    conn->web = web;
    conn->mhd = mhd;
    conn->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info != NULL && info->client_addr != NULL)
        web_address_text(info->client_addr, conn->peer, sizeof conn->peer);
    web_conn_phase(conn, WEB_PHASE_HEAD);
    TAILQ_INSERT_TAIL(&web->conns, conn, link);
    web->conn_count++;
    *socket_context = conn;
}

static void end(struct web *web, void **socket_context) {
    struct web_conn *conn = *socket_context;
    if (conn == NULL)
        return;
    *socket_context = NULL;
    if (conn->linger)
        web_linger_start(web, conn->fd);
    if (conn->request != NULL)
        conn->request->conn = NULL;
    TAILQ_REMOVE(&web->conns, conn, link);
    web->conn_count--;
    free(conn);
    // At its limit of connections libmicrohttpd had stopped listening; it looks again at its next run.
    web->again = true;
}

void web_conn_notify(
    void *cls, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        begin(cls, mhd, socket_context);
    else
        end(cls, socket_context);
}

static bool tcp_state(const struct web_conn *conn, struct tcp_info *out) {
    socklen_t len = sizeof *out;
    return getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, out, &len) == 0;
}

// libmicrohttpd says nothing of a request before its first line is whole; the kernel knows whether bytes have
// come.
static void notice_first_bytes(struct web_conn *conn) {
    struct tcp_info tcp = {0};
    int64_t idle = conn->web->now_ms - conn->since_ms;
    if (tcp_state(conn, &tcp) && (int64_t)tcp.tcpi_last_data_recv + CLOCK_SLACK_MS < idle)
        web_conn_phase(conn, WEB_PHASE_HEAD);
}

static void answer_late(struct web_conn *conn, const char *detail) {
    struct web *web = conn->web;
    struct tcp_info tcp = {0};
    conn->dead = true;
    if (conn->request != NULL) {
        web_request_refuse_raw(conn->request, 408, detail);
    } else if (tcp_state(conn, &tcp) && tcp.tcpi_bytes_received > 0) {
        // Not even a line: libmicrohttpd knows of no request, and won't tell us of its end.
        struct web_request *request = web_request_create(web, conn);
        conn->request = request;
        web_request_refuse_raw(request, 408, detail);
        web_request_finish(request);
    }
    // Shows up as a hang-up in libmicrohttpd, which then closes the connection.
    (void)shutdown(conn->fd, SHUT_RDWR);
    web_poke(web);
}

static void visit(struct web_conn *conn) {
    const struct web_options *options = &conn->web->options;
    int64_t age = conn->web->now_ms - conn->since_ms;
    if (conn->dead)
        return;
    if (conn->phase == WEB_PHASE_IDLE)
        notice_first_bytes(conn);
    else if (conn->phase == WEB_PHASE_HEAD && age >= options->head_timeout_ms)
        answer_late(conn, "The request head took too long to arrive.");
    else if (conn->phase == WEB_PHASE_BODY && age >= options->body_timeout_ms)
        answer_late(conn, "The request body took too long to arrive.");
}

// A tenth of the deadline is what a deadline may be late by.
int64_t web_conn_tick_ms(const struct web *web) {
    int64_t round = web->options.head_timeout_ms / 10;
    int64_t tick = (round < ROUND_MAX_MS ? round : ROUND_MAX_MS) / TICKS_PER_ROUND;
    return tick > 0 ? tick : 1;
}

void web_conn_sweep(struct web *web) {
    web->now_ms = base_monotonic_us() / US_PER_MS;
    // Nothing is freed here: what is ended is closed by the next run of libmicrohttpd.
    size_t share = (web->conn_count + TICKS_PER_ROUND - 1) / TICKS_PER_ROUND;
    while (share-- > 0) {
        struct web_conn *conn = TAILQ_FIRST(&web->conns);
        TAILQ_REMOVE(&web->conns, conn, link);
        TAILQ_INSERT_TAIL(&web->conns, conn, link);
        visit(conn);
    }
}
