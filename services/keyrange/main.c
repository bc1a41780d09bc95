// SPDX-License-Identifier: MIT
// dunlin-keyrange: hands out blocks of counter values. Wiring only.
#include "services/keyrange/keyrange.h"
#include "services/keyrange/keyrange_rpc.h"

static bool serving(void *arg) {
    const struct keyrange *keyrange = arg;
    return db_watch_is_up(keyrange->postgres.watch);
}

static enum status setup(void *state, struct problem *why) {
    struct keyrange *keyrange = state;
    enum status status = keyrange_init(keyrange, why);
    if (status != STATUS_OK)
        return status;
    keyrange->postgres.options = keyrange_db_options(keyrange, &keyrange->identity);
    keyrange->rpc.options = (struct rpc_server_options){
        .listen = keyrange->config.listen,
        .workers = (unsigned)keyrange->config.workers,
        .queue_max = (unsigned)keyrange->config.queue,
        .timeout_us = 5 * US_PER_S,
        .ready = serving,
        .worker_open = keyrange_rpc_open,
        .worker_close = keyrange_rpc_close,
        .arg = keyrange,
    };
    return STATUS_OK;
}

static void teardown(void *state) {
    keyrange_done(state);
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
        {.name = "setup", .start = setup, .stop = teardown, .state = &keyrange},
        parts_postgres(&keyrange.postgres),
        parts_rpc(&keyrange.rpc),
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
    };
    return service_main(&service, argc, argv);
}
