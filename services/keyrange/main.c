// SPDX-License-Identifier: MIT
// dunlin-keyrange: hands out blocks of counter values. Wiring only.
#include "common/service/service.h"
#include "services/keyrange/keyrange.h"
#include "services/keyrange/keyrange_rpc.h"

#include <stdio.h>

static bool postgres_ready(void *state, char *why, size_t size) {
    const struct keyrange *keyrange = state;
    if (db_watch_is_up(keyrange->watch))
        return true;
    (void)snprintf(why, size, "Postgres is not reachable");
    return false;
}

static enum status postgres_start(void *state, struct problem *why) {
    (void)why;
    struct keyrange *keyrange = state;
    keyrange_init(keyrange);
    struct db_options options = keyrange_db_options(keyrange, &keyrange->identity);
    keyrange->watch = db_watch_start(&options);
    return STATUS_OK;
}

static void postgres_stop(void *state) {
    struct keyrange *keyrange = state;
    db_watch_stop(keyrange->watch);
}

static bool serving(void *arg) {
    return postgres_ready(arg, (char[64]){0}, 64);
}

static enum status rpc_start(void *state, struct problem *why) {
    struct keyrange *keyrange = state;
    struct rpc_server_options options = {
        .listen = keyrange->config.listen,
        .workers = (unsigned)keyrange->config.workers,
        .queue_max = (unsigned)keyrange->config.queue,
        .timeout_us = 5 * US_PER_S,
        .ready = serving,
        .worker_open = keyrange_rpc_open,
        .worker_close = keyrange_rpc_close,
        .arg = keyrange,
    };
    return rpc_server_start(&options, &keyrange->server, why);
}

static void rpc_drain(void *state) {
    struct keyrange *keyrange = state;
    rpc_server_drain(keyrange->server);
}

static void rpc_stop(void *state) {
    struct keyrange *keyrange = state;
    rpc_server_stop(keyrange->server, service_stop_time_left_us());
}

int main(int argc, char **argv) {
    static struct keyrange keyrange;
    const struct config_section config[] = {
        {"keyrange", keyrange_config_fields, keyrange_config_count, &keyrange.config},
    };
    const struct metric_section metrics[] = {
        {"keyrange", keyrange_metrics, keyrange_metrics_count},
        {"rpc server", rpc_server_metrics, rpc_server_metrics_count},
    };
    const struct service_part parts[] = {
        {.name = "postgres", .start = postgres_start, .stop = postgres_stop, .ready = postgres_ready},
        {.name = "rpc", .start = rpc_start, .drain = rpc_drain, .stop = rpc_stop},
    };
    const struct service service = {
        .name = "keyrange",
        .summary = "Hands out blocks of counter values, which codes are made from.",
        .admin_preset = "127.0.0.1:9101",
        .config = config,
        .config_count = ARRAY_LEN(config),
        .metrics = metrics,
        .metrics_count = ARRAY_LEN(metrics),
        .parts = parts,
        .part_count = ARRAY_LEN(parts),
        .state = &keyrange,
    };
    return service_main(&service, argc, argv);
}
