// SPDX-License-Identifier: MIT
// dunlin-redirector: the public HTTP face. Wiring only.
#include "common/bus/bus.h"
#include "common/cache/cache_async.h"
#include "common/db/db_async.h"
#include "common/service/service.h"
#include "common/web/web.h"
#include "dunlin/v1/clicks.pb-c.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include "dunlin/v1/writer.pb-c.h"
#include "services/redirector/click_sender.h"
#include "services/redirector/gateway.h"
#include "services/redirector/never_issued.h"
#include "services/redirector/redirector.h"
#include "services/redirector/worker.h"

#include <stdio.h>
#include <stdlib.h>

// ---- clicks: the workers' rings and who empties them

static enum status clicks_start(void *state, struct problem *why) {
    struct redirector *redirector = state;
    enum status status = redirector_init(redirector, why);
    if (status != STATUS_OK)
        return status;
    redirector->rings = base_calloc(redirector->worker_count, sizeof(struct click_ring *));
    for (size_t i = 0; i < redirector->worker_count; i++)
        redirector->rings[i] = click_ring_create((size_t)redirector->config.ring);
    const struct click_sender_options options = {
        .brokers = redirector->config.brokers,
        .topic = redirector->config.topic,
        .rings = redirector->rings,
        .ring_count = redirector->worker_count,
    };
    redirector->sender = click_sender_start(&options);
    return STATUS_OK;
}

static void clicks_stop(void *state) {
    struct redirector *redirector = state;
    click_sender_stop(redirector->sender, service_stop_time_left_us());
    for (size_t i = 0; i < redirector->worker_count; i++)
        click_ring_free(redirector->rings[i]);
    free(redirector->rings);
    redirector_done(redirector);
}

// ---- the API's way to the other services

static enum status open_client(const char *peer, const char *target,
    const ProtobufCServiceDescriptor *service, const char *const *repeatable, struct rpc_client **out,
    struct problem *why) {
    const struct rpc_client_options options = {
        .peer = peer,
        .target = target,
        .service = service,
        .repeatable = repeatable,
        .timeout_us = API_TIMEOUT_US,
    };
    return rpc_client_open(&options, out, why);
}

static enum status api_start(void *state, struct problem *why) {
    // A create is not among them: without an idempotency key, asking again could make a second link.
    static const char *const writer_repeatable[] = {"WhoAmI", "GetLink", "DecodeCode", NULL};
    static const char *const clicks_repeatable[] = {"GetClicks", NULL};
    struct redirector *redirector = state;
    enum status status = open_client("writer", redirector->config.writer, &dunlin__v1__writer__descriptor,
        writer_repeatable, &redirector->writer, why);
    if (status != STATUS_OK)
        return status;
    status = open_client("clicks", redirector->config.clicks, &dunlin__v1__clicks__descriptor,
        clicks_repeatable, &redirector->clicks, why);
    if (status != STATUS_OK) {
        rpc_client_close(redirector->writer);
        return status;
    }
    const struct gateway_options options = {
        .threads = (unsigned)redirector->config.api_threads,
        .queue_max = (unsigned)redirector->config.api_queue,
        .api = {.writer = rpc_client_service(redirector->writer),
            .clicks = rpc_client_service(redirector->clicks)},
    };
    redirector->gateway = gateway_start(&options);
    return STATUS_OK;
}

static void api_stop(void *state) {
    struct redirector *redirector = state;
    gateway_stop(redirector->gateway);
    rpc_client_close(redirector->clicks);
    rpc_client_close(redirector->writer);
}

// ---- the ceilings

static enum status ceilings_start(void *state, struct problem *why) {
    static const char *const repeatable[] = {"GetCeilings", NULL};
    struct redirector *redirector = state;
    const struct never_issued_config *config = &redirector->never_issued_config;
    bool has_key = config->permutation_key[0] != '\0';
    struct codes_key key;
    if (has_key && !codes_key_parse(config->permutation_key, &key))
        return problem_set(why, STATUS_FAILED_PRECONDITION, "BAD_SETTING",
            "PERMUTATION_KEY: must be 32 hex digits, or empty");
    enum status status = open_client("keyrange", config->keyrange, &dunlin__v1__keyrange__descriptor,
        repeatable, &redirector->keyrange, why);
    if (status == STATUS_OK)
        redirector->never_issued = never_issued_start(
            rpc_client_service(redirector->keyrange), has_key ? &key : NULL, NEVER_ISSUED_EVERY_US);
    return status;
}

static void ceilings_stop(void *state) {
    struct redirector *redirector = state;
    never_issued_stop(redirector->never_issued);
    rpc_client_close(redirector->keyrange);
}

// ---- the workers

static void workers_stop(void *state) {
    struct redirector *redirector = state;
    for (size_t i = 0; i < redirector->worker_count; i++)
        worker_stop(redirector->workers[i], service_stop_time_left_us());
    free(redirector->workers);
}

static enum status workers_start(void *state, struct problem *why) {
    struct redirector *redirector = state;
    // The workers share the port, so that a second process could take half the visitors.
    enum status status = web_port_is_free(redirector->address, redirector->port, why);
    if (status != STATUS_OK)
        return status;
    redirector->workers = base_calloc(redirector->worker_count, sizeof(struct worker *));
    for (size_t i = 0; i < redirector->worker_count && status == STATUS_OK; i++)
        status = worker_start(redirector, redirector->rings[i], &redirector->workers[i], why);
    if (status != STATUS_OK)
        workers_stop(redirector);
    return status;
}

static void workers_leaving(void *state) {
    struct redirector *redirector = state;
    for (size_t i = 0; i < redirector->worker_count; i++)
        worker_drain(redirector->workers[i]);
}

static bool workers_ready(void *state, char *why, size_t size) {
    const struct redirector *redirector = state;
    for (size_t i = 0; i < redirector->worker_count; i++) {
        if (worker_is_up(redirector->workers[i]))
            continue;
        (void)snprintf(why, size, "worker %zu reaches neither Postgres nor Redis", i);
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static struct redirector redirector;
    const struct config_section config[] = {
        {"redirector", redirector_config_fields, redirector_config_count, &redirector.config},
        {"never-issued codes", never_issued_config_fields, never_issued_config_count,
            &redirector.never_issued_config},
    };
    const struct metric_section metrics[] = {
        {"redirector", redirector_metrics, redirector_metrics_count},
        {"never-issued codes", never_issued_metrics, never_issued_metrics_count},
        {"rpc client", rpc_client_metrics, rpc_client_metrics_count},
        {"Redis", cache_async_metrics, cache_async_metrics_count},
        {"Postgres", db_async_metrics, db_async_metrics_count},
        {"Kafka", bus_metrics, bus_metrics_count},
    };
    // Kafka, the writer, the clicks service and keyrange are in nobody's readiness: redirects go on without
    // them.
    const struct service_part parts[] = {
        {.name = "clicks", .start = clicks_start, .stop = clicks_stop, .state = &redirector},
        {.name = "api", .start = api_start, .stop = api_stop, .state = &redirector},
        {.name = "ceilings", .start = ceilings_start, .stop = ceilings_stop, .state = &redirector},
        {.name = "workers",
            .start = workers_start,
            .leaving = workers_leaving,
            .stop = workers_stop,
            .ready = workers_ready,
            .state = &redirector},
    };
    const struct service service = {
        .name = "redirector",
        .summary = "Redirects short links, and serves the JSON API.",
        .admin_preset = "127.0.0.1:9100",
        .config = config,
        .config_count = ARRAY_LEN(config),
        .metrics = metrics,
        .metrics_count = ARRAY_LEN(metrics),
        .parts = parts,
        .part_count = ARRAY_LEN(parts),
    };
    return service_main(&service, argc, argv);
}
