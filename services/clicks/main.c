// SPDX-License-Identifier: MIT
// dunlin-clicks: counts the click stream and answers statistics queries. Wiring only.
#include "common/bus/bus.h"
#include "services/clicks/clicks.h"
#include "services/clicks/clicks_rpc.h"
#include "services/clicks/consume.h"

#include <stdio.h>

// Queries need Postgres alone.
static bool serving(void *arg) {
    const struct clicks *clicks = arg;
    return db_watch_is_up(clicks->postgres.watch);
}

static enum status setup(void *state, struct problem *why) {
    (void)why;
    struct clicks *clicks = state;
    clicks_init(clicks);
    clicks->postgres.options = clicks_db_options(&clicks->config);
    clicks->rpc.options = (struct rpc_server_options){
        .listen = clicks->config.listen,
        .workers = (unsigned)clicks->config.workers,
        .queue_max = (unsigned)clicks->config.queue,
        .timeout_us = 5 * US_PER_S,
        .ready = serving,
        .worker_open = clicks_rpc_open,
        .worker_close = clicks_rpc_close,
        .arg = clicks,
    };
    return STATUS_OK;
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
        {.name = "setup", .start = setup, .state = &clicks},
        parts_postgres(&clicks.postgres),
        {.name = "stream",
            .start = consume_part_start,
            .stop = consume_part_stop,
            .ready = consume_ready,
            .state = &clicks},
        parts_rpc(&clicks.rpc),
    };
    const struct service service = {
        .name = "clicks",
        .summary = "Counts the click stream exactly once and answers statistics queries.",
        .admin_preset = "127.0.0.1:9103",
        .config = config,
        .config_count = ARRAY_LEN(config),
        .metrics = metrics,
        .metrics_count = ARRAY_LEN(metrics),
        .parts = parts,
        .part_count = ARRAY_LEN(parts),
    };
    return service_main(&service, argc, argv);
}
