// SPDX-License-Identifier: MIT
// Serves protobuf-c services over NNG rep. Requests wait in one bounded queue for a fixed set of worker
// threads; each worker has its own copies of the services, so that a handler may block on the worker's own
// database connection.
//
// Handled here, for every service: bounds, malformed envelopes and bodies, unknown methods, deadlines (work
// whose deadline is over is not begun), Health.Check (answered without a worker), metrics, and a listener
// that went deaf (it pings itself and is rebuilt; NNG issue 1518). Every string of a request is checked: it
// is UTF-8 without NUL, or the answer is INVALID_ARGUMENT with the field. A handler's request lives until the
// handler returns.
#pragma once

#include "common/metrics/metrics.h"
#include "common/rpc/rpc.h"
#include <protobuf-c/protobuf-c.h>

struct rpc_server;

#define RPC_SERVICES_MAX 4

// What one worker serves. The services are the module's: base first, its state behind.
struct rpc_worker {
    ProtobufCService *services[RPC_SERVICES_MAX];
    size_t service_count;
    void *state;
};

struct rpc_server_options {
    const char
        *listen; // "tcp://127.0.0.1:7001"; only loopback addresses are accepted until peers authenticate
    unsigned workers;
    unsigned queue_max;       // requests waiting or running; past it RESOURCE_EXHAUSTED, reason "QUEUE_FULL"
    int64_t timeout_us;       // for requests that carry no deadline, and the most that one may ask for
    bool (*ready)(void *arg); // what Health.Check says; any thread, must not block
    // Fills in a worker before its thread starts, and takes it down after it ended.
    void (*worker_open)(void *arg, unsigned index, struct rpc_worker *out);
    void (*worker_close)(void *arg, struct rpc_worker *worker);
    void *arg;
};

// Binds and starts the workers. `why` names the address.
MUST_CHECK enum status rpc_server_start(
    const struct rpc_server_options *options, struct rpc_server **out, struct problem *why);
// New requests get UNAVAILABLE, reason "DRAINING", from here on; what is queued or running is still answered.
void rpc_server_drain(struct rpc_server *server);
// Waits for what is queued and running (at most drain_us), then ends the workers.
void rpc_server_stop(struct rpc_server *server, int64_t drain_us);
// The bound port, for listen addresses that end in :0.
uint16_t rpc_server_port(const struct rpc_server *server);

extern const struct metric_family rpc_server_metrics[];
extern const size_t rpc_server_metrics_count;
