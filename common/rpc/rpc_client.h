// SPDX-License-Identifier: MIT
// Calls a protobuf-c service over NNG req: rpc_client_service() is the generated base type, so the generated
// stubs work on it from any thread, blocking. Connections are made and kept in the background; one socket per
// backend address, pinged every second and made anew when it does not answer; calls go to the less busy of
// two.
//
// Never NNG's own resend. A call is tried again, on another address where there is one, only where it surely
// did not run or where its method is listed as safe to repeat, and within the deadline. Outcomes: see rpc.h;
// a peer that cannot be reached is UNAVAILABLE at once, not after the deadline.
#pragma once

#include "common/metrics/metrics.h"
#include "common/rpc/rpc.h"
#include <protobuf-c/protobuf-c.h>

struct rpc_client;

struct rpc_client_options {
    const char *peer;   // for people, logs and metrics: "writer"
    const char *target; // "tcp://host:port", several separated by ','; names are resolved again and again,
                        // all addresses
    const ProtobufCServiceDescriptor *service;
    const char *const *repeatable; // names of methods that are safe to repeat; NULL-terminated, may be NULL
    int64_t timeout_us;            // where the context has no deadline
};

// No I/O before it returns; INVALID_ARGUMENT for a target that is no address.
MUST_CHECK enum status rpc_client_open(
    const struct rpc_client_options *options, struct rpc_client **out, struct problem *why);
void rpc_client_close(struct rpc_client *client); // no call may be under way; NULL is fine

ProtobufCService *rpc_client_service(struct rpc_client *client);
// A second service of the same peer over the same sockets; lives as long as the client.
ProtobufCService *rpc_client_add_service(
    struct rpc_client *client, const ProtobufCServiceDescriptor *service, const char *const *repeatable);
// At least one address answered its last ping and is serving. Any thread, does not block.
bool rpc_client_is_up(const struct rpc_client *client);

extern const struct metric_family rpc_client_metrics[];
extern const size_t rpc_client_metrics_count;
