// SPDX-License-Identifier: MIT
// dunlin-writer: creates links and API keys. Wiring only.
#include "dunlin/v1/keyrange.pb-c.h"
#include "services/writer/writer.h"
#include "services/writer/writer_rpc.h"

#include <stdio.h>

// Links are readable and aliases can be made as long as Postgres is there, counter values or not.
static bool serving(void *arg) {
    const struct writer *writer = arg;
    return db_watch_is_up(writer->postgres.watch);
}

static enum status setup(void *state, struct problem *why) {
    struct writer *writer = state;
    enum status status = writer_init(writer, why);
    if (status != STATUS_OK)
        return status;
    writer->postgres.options = writer_db_options(writer, &writer->identity);
    writer->rpc.options = (struct rpc_server_options){
        .listen = writer->config.listen,
        .workers = (unsigned)writer->config.workers,
        .queue_max = (unsigned)writer->config.queue,
        .timeout_us = 5 * US_PER_S,
        .ready = serving,
        .worker_open = writer_rpc_open,
        .worker_close = writer_rpc_close,
        .arg = writer,
    };
    return STATUS_OK;
}

static void teardown(void *state) {
    writer_done(state);
}

static void mismatched(void *arg) {
    (void)arg;
    service_fail("the counters belong to another PERMUTATION_KEY");
}

static enum status blocks_part_start(void *state, struct problem *why) {
    struct writer *writer = state;
    // A lost claim is a lost block and nothing worse.
    static const char *const repeatable[] = {"ClaimBlock", NULL};
    struct rpc_client_options client = {
        .peer = "keyrange",
        .target = writer->config.keyrange,
        .service = &dunlin__v1__keyrange__descriptor,
        .repeatable = repeatable,
        .timeout_us = 2 * US_PER_S,
    };
    enum status status = rpc_client_open(&client, &writer->keyrange, why);
    if (status != STATUS_OK)
        return status;
    struct blocks_options blocks = {
        .keyrange = rpc_client_service(writer->keyrange),
        .slot = (unsigned)writer->config.slot,
        .size_min = (uint64_t)writer->config.block_min,
        .mismatched = mismatched,
        .claimed = metric_add(&writer_metrics[WRITER_METRIC_BLOCKS]),
        .left = metric_add(&writer_metrics[WRITER_METRIC_VALUES_LEFT]),
    };
    codes_fingerprint(&writer->key, blocks.fingerprint);
    writer->blocks = blocks_start(&blocks);
    return STATUS_OK;
}

static void blocks_part_stop(void *state) {
    struct writer *writer = state;
    blocks_stop(writer->blocks);
    rpc_client_close(writer->keyrange);
}

static bool blocks_part_ready(void *state, char *why, size_t size) {
    const struct writer *writer = state;
    if (blocks_is_ready(writer->blocks))
        return true;
    (void)snprintf(why, size, "no counter values: is the keyrange service reachable?");
    return false;
}

int main(int argc, char **argv) {
    static struct writer writer;
    const struct config_section config[] = {
        {"writer", writer_config_fields, writer_config_count, &writer.config},
    };
    const struct metric_section metrics[] = {
        {"writer", writer_metrics, writer_metrics_count},
        {"rpc server", rpc_server_metrics, rpc_server_metrics_count},
        {"rpc client", rpc_client_metrics, rpc_client_metrics_count},
    };
    const struct service_part parts[] = {
        {.name = "setup", .start = setup, .stop = teardown, .state = &writer},
        parts_postgres(&writer.postgres),
        {.name = "blocks",
            .start = blocks_part_start,
            .stop = blocks_part_stop,
            .ready = blocks_part_ready,
            .state = &writer},
        parts_rpc(&writer.rpc),
    };
    const struct service service = {
        .name = "writer",
        .summary = "Creates links, and keeps the API keys. The only service that changes links.",
        .admin_preset = "127.0.0.1:9102",
        .config = config,
        .config_count = ARRAY_LEN(config),
        .metrics = metrics,
        .metrics_count = ARRAY_LEN(metrics),
        .parts = parts,
        .part_count = ARRAY_LEN(parts),
    };
    return service_main(&service, argc, argv);
}
