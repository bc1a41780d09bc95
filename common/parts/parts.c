// SPDX-License-Identifier: MIT
#include "common/parts/parts.h"

#include <stdio.h>

static enum status postgres_start(void *state, struct problem *why) {
    (void)why;
    struct parts_postgres *postgres = state;
    postgres->watch = db_watch_start(&postgres->options);
    return STATUS_OK;
}

static void postgres_stop(void *state) {
    struct parts_postgres *postgres = state;
    db_watch_stop(postgres->watch);
}

static bool postgres_ready(void *state, char *why, size_t size) {
    const struct parts_postgres *postgres = state;
    if (db_watch_is_up(postgres->watch))
        return true;
    (void)snprintf(why, size, "Postgres is not reachable");
    return false;
}

struct service_part parts_postgres(struct parts_postgres *postgres) {
    return (struct service_part){
        .name = "postgres",
        .start = postgres_start,
        .stop = postgres_stop,
        .ready = postgres_ready,
        .state = postgres,
    };
}

static enum status rpc_start(void *state, struct problem *why) {
    struct parts_rpc *rpc = state;
    return rpc_server_start(&rpc->options, &rpc->server, why);
}

static void rpc_drain(void *state) {
    struct parts_rpc *rpc = state;
    rpc_server_drain(rpc->server);
}

static void rpc_stop(void *state) {
    struct parts_rpc *rpc = state;
    rpc_server_stop(rpc->server, service_stop_time_left_us());
}

struct service_part parts_rpc(struct parts_rpc *rpc) {
    return (struct service_part){
        .name = "rpc", .start = rpc_start, .drain = rpc_drain, .stop = rpc_stop, .state = rpc};
}
