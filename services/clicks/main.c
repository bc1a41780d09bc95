// SPDX-License-Identifier: MIT
// dunlin-clicks: counts the click stream and answers statistics queries. Wiring only.
#include "common/bus/bus.h"
#include "common/service/service.h"
#include "services/clicks/clicks.h"
#include "services/clicks/clicks_rpc.h"
#include "services/clicks/consume.h"

#include <stdio.h>

static bool postgres_ready(void *state, char *why, size_t size) {
    const struct clicks *clicks = state;
    if (db_watch_is_up(clicks->watch))
        return true;
    (void)snprintf(why, size, "Postgres is not reachable");
    return false;
}

static enum status postgres_start(void *state, struct problem *why) {
    (void)why;
    struct clicks *clicks = state;
    clicks_init(clicks);
    const struct db_options options = clicks_db_options(&clicks->config);
    clicks->watch = db_watch_start(&options);
    return STATUS_OK;
}

static void postgres_stop(void *state) {
    struct clicks *clicks = state;
    db_watch_stop(clicks->watch);
}

static enum status consume_part_start(void *state, struct problem *why) {
    struct clicks *clicks = state;
    return consume_start(&clicks->config, &clicks->series, &clicks->consume, why);
}

static void consume_part_stop(void *state) {
    struct clicks *clicks = state;
    consume_stop(clicks->consume);
    clicks->consume = NULL;
}

static bool consume_ready(void *state, char *why, size_t size) {
    const struct clicks *clicks = state;
    if (consume_is_up(clicks->consume))
        return true;
    (void)snprintf(why, size, "Kafka is not reachable");
    return false;
}

// Queries need Postgres alone.
static bool serving(void *arg) {
    return postgres_ready(arg, (char[64]){0}, 64);
}

static enum status rpc_start(void *state, struct problem *why) {
    struct clicks *clicks = state;
    const struct rpc_server_options options = {
        .listen = clicks->config.listen,
        .workers = (unsigned)clicks->config.workers,
        .queue_max = (unsigned)clicks->config.queue,
        .timeout_us = 5 * US_PER_S,
        .ready = serving,
        .worker_open = clicks_rpc_open,
        .worker_close = clicks_rpc_close,
        .arg = clicks,
    };
    return rpc_server_start(&options, &clicks->server, why);
}

static void rpc_drain(void *state) {
    struct clicks *clicks = state;
    rpc_server_drain(clicks->server);
}

static void rpc_stop(void *state) {
    struct clicks *clicks = state;
    rpc_server_stop(clicks->server, service_stop_time_left_us());
}

int main(int argc, char **argv) {
    static struct clicks clicks;
    const struct config_section config[] = {
        {"clicks", clicks_config_fields, clicks_config_count, &clicks.config},
    };
    const struct metric_section metrics[] = {
        {"clicks", clicks_metrics, clicks_metrics_count},
        {"bus", bus_metrics, bus_metrics_count},
        {"rpc server", rpc_server_metrics, rpc_server_metrics_count},
    };
    const struct service_part parts[] = {
        {.name = "postgres", .start = postgres_start, .stop = postgres_stop, .ready = postgres_ready},
        {.name = "stream", .start = consume_part_start, .stop = consume_part_stop, .ready = consume_ready},
        {.name = "rpc", .start = rpc_start, .drain = rpc_drain, .stop = rpc_stop},
    };
    const struct service service = {
        .name = "clicks",
        .summary = "Counts the click stream exactly once and answers statistics queries.",
        .config = config,
        .config_count = ARRAY_LEN(config),
        .metrics = metrics,
        .metrics_count = ARRAY_LEN(metrics),
        .parts = parts,
        .part_count = ARRAY_LEN(parts),
        .state = &clicks,
    };
    return service_main(&service, argc, argv);
}
