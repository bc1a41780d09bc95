// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_stats.h"

#include "common/rpc/rpc_client.h"
#include "common/rpc/rpc_server.h"
#include <stdatomic.h>

// In the order of the enums of rpc_stats.h.
#define SERVER_METRICS(M)                                                                                    \
    M(handled, COUNTER, "grpc_server_handled_total", "calls", "grpc_service,grpc_method,grpc_code",          \
        "Calls answered, by their outcome.",                                                                 \
        "INTERNAL and UNKNOWN are faults of this service: read its log. UNAVAILABLE: see what it needs.")    \
    M(seconds, HISTOGRAM, "grpc_server_handling_seconds", "seconds", "grpc_service,grpc_method",             \
        "From the arrival of a request to its answer, the wait for a worker included.",                      \
        "Compare with dunlin_rpc_queue_requests: a long queue asks for workers or for a faster database.")   \
    M(queue, GAUGE, "dunlin_rpc_queue_requests", "requests", NULL, "Requests that wait or run.",             \
        "Near its limit, callers get QUEUE_FULL: add workers or processes.")                                 \
    M(refused, COUNTER, "dunlin_rpc_refused_total", "requests", "reason",                                    \
        "Requests refused before they were read, because the queue was full or the service drains.",         \
        "QUEUE_FULL: add workers or processes.")                                                             \
    M(malformed, COUNTER, "dunlin_rpc_malformed_total", "requests", NULL, "Requests that are no envelope.",  \
        "Something that speaks another protocol knows this port: find it.")                                  \
    M(rebuilds, COUNTER, "dunlin_rpc_listener_rebuilds_total", "rebuilds", NULL,                             \
        "Times that the listener did not answer its own pings and was made anew.",                           \
        "Keep port scans, load balancers and TCP probes away from RPC ports.")

#define CLIENT_METRICS(M)                                                                                    \
    M(handled, COUNTER, "grpc_client_handled_total", "calls", "grpc_service,grpc_method,grpc_code",          \
        "Calls made, by their outcome, retries counted once.", "UNAVAILABLE: is the peer up?")               \
    M(seconds, HISTOGRAM, "grpc_client_handling_seconds", "seconds", "grpc_service,grpc_method",             \
        "From a call to its outcome, retries included.", "Compare with the peer's own time.")                \
    M(peer_up, GAUGE, "dunlin_rpc_peer_up", "addresses", "peer",                                             \
        "Addresses of a peer that answer their pings and serve.", "0: start the peer, or mend its address.") \
    M(rebuilds, COUNTER, "dunlin_rpc_socket_rebuilds_total", "rebuilds", "peer",                             \
        "Sockets made anew because their peer stopped answering.",                                           \
        "Look at the peer: it hangs or is cut off.")                                                         \
    M(retries, COUNTER, "dunlin_rpc_retries_total", "retries", "peer", "Attempts after a call's first.",     \
        "Some are normal while a peer restarts.")

const struct metric_family rpc_server_metrics[] = {SERVER_METRICS(METRIC_ROW)};
const size_t rpc_server_metrics_count = ARRAY_LEN(rpc_server_metrics);
const struct metric_family rpc_client_metrics[] = {CLIENT_METRICS(METRIC_ROW)};
const size_t rpc_client_metrics_count = ARRAY_LEN(rpc_client_metrics);

// Two threads may add one series at once; the registry sums shards, so that the one that is dropped does no
// harm.
static struct metric *series(struct rpc_method_stats *stats, enum status status) {
    struct metric *_Atomic *slot = &stats->codes[status];
    struct metric *metric = atomic_load_explicit(slot, memory_order_acquire);
    if (metric != NULL)
        return metric;
    metric = metric_add(stats->handled, stats->service, stats->method, status_name(status));
    struct metric *expected = NULL;
    if (!atomic_compare_exchange_strong(slot, &expected, metric))
        metric = expected;
    return metric;
}

void rpc_method_stats_init(struct rpc_method_stats *stats, const struct metric_family families[2],
    const char *service, const char *method) {
    *stats = (struct rpc_method_stats){.handled = &families[0], .service = service, .method = method};
    stats->seconds = metric_add(&families[1], service, method);
    (void)series(stats, STATUS_OK);
}

void rpc_method_stats_count(struct rpc_method_stats *stats, enum status status, int64_t took_us) {
    metric_inc(series(stats, status_from_wire((uint32_t)status)));
    metric_observe_us(stats->seconds, took_us);
}
