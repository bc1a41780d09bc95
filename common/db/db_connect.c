// SPDX-License-Identifier: MIT
#include "common/db/db_internal.h"

#include <errno.h>
#include <libpq-fe.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_FIRST_US (100 * US_PER_MS)
#define BACKOFF_MAX_US (2 * US_PER_S)

int db_wait(const PGconn *conn, short events, int64_t deadline_us) {
    struct pollfd poll_fd = {.fd = PQsocket(conn), .events = events};
    for (;;) {
        int64_t left_us = deadline_us - base_monotonic_us();
        int64_t ms = left_us <= 0 ? 0 : (left_us + US_PER_MS - 1) / US_PER_MS;
        int count = poll(&poll_fd, 1, ms > INT_MAX ? INT_MAX : (int)ms);
        if (count > 0)
            return poll_fd.revents;
        if (count == 0 && left_us <= 0)
            return 0;
        REQUIRE(count == 0 || errno == EINTR || errno == EAGAIN);
    }
}

int64_t db_backoff_us(int64_t *backoff_us) {
    int64_t span = *backoff_us == 0 ? BACKOFF_FIRST_US : *backoff_us;
    *backoff_us = span * 2 < BACKOFF_MAX_US ? span * 2 : BACKOFF_MAX_US;
    return span / 2 + arc4random_uniform((uint32_t)(span / 2));
}

// libpq prints notices to standard error unless told otherwise.
static void ignore_notice(void *arg, const char *message) {
    (void)arg;
    (void)message;
}

// libpq's complaints about a connection string quote it, password and all: what it would refuse is refused
// here.
static bool conninfo_is_sound(const char *conninfo) {
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    if (options == NULL)
        return false;
    bool sound = true;
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        if (strcmp(option->keyword, "port") == 0 && option->val != NULL)
            sound = option->val[strspn(option->val, "0123456789,")] == '\0';
    }
    PQconninfoFree(options);
    return sound;
}

static PGconn *begin(const char *conninfo, const char *application) {
    // The connection string stands in "dbname" and overrides what comes before it. An unacknowledged packet,
    // a SYN too, gives up after 3 s, so that the next host of a list has its turn within a usual deadline.
    static const char *const keywords[] = {"application_name", "keepalives", "keepalives_idle",
        "keepalives_interval", "keepalives_count", "tcp_user_timeout", "gssencmode", "dbname",
        "client_encoding", NULL};
    const char *const values[] = {
        application, "1", "15", "5", "3", "3000", "disable", conninfo, "UTF8", NULL};
    PGconn *conn = PQconnectStartParams(keywords, values, 1);
    REQUIRE(conn != NULL);
    (void)PQsetNoticeProcessor(conn, ignore_notice, NULL);
    return conn;
}

PGconn *db_connect(
    const char *conninfo, const char *application, int64_t deadline_us, struct db_fault *fault) {
    if (!conninfo_is_sound(conninfo)) {
        db_fault_set(fault, "the connection string is malformed");
        return NULL;
    }
    PGconn *conn = begin(conninfo, application);
    PostgresPollingStatusType wish =
        PQstatus(conn) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
    while (wish == PGRES_POLLING_READING || wish == PGRES_POLLING_WRITING) {
        if (db_wait(conn, wish == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_us) == 0) {
            db_fault_set(fault, "no connection within the deadline");
            PQfinish(conn);
            return NULL;
        }
        wish = PQconnectPoll(conn);
    }
    if (wish != PGRES_POLLING_OK || PQsetnonblocking(conn, 1) != 0) {
        db_fault_from_conn(fault, conn);
        PQfinish(conn);
        return NULL;
    }
    return conn;
}
