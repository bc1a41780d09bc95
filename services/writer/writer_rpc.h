// SPDX-License-Identifier: MIT
// The service's edge to its callers. The two calls are rpc_server's worker_open and worker_close; their `arg`
// is the struct writer. writer_rpc.c answers dunlin.v1.Writer, keys_rpc.c dunlin.v1.Keys.
#pragma once

#include "common/cache/cache.h"
#include "common/rpc/rpc_server.h"
#include "dunlin/v1/writer.pb-c.h"
#include "services/writer/writer.h"

// One worker thread's own.
struct writer_worker {
    struct writer *writer;
    struct db *db;
    struct cache *cache;      // NULL: there is no Redis
    struct identity identity; // of the database that `db` is connected to
    struct writer_service {
        Dunlin__V1__Writer_Service base; // first: a handler's service pointer is this
        struct writer_worker *worker;
    } links;
    struct keys_service {
        Dunlin__V1__Keys_Service base; // first
        struct writer_worker *worker;
    } keys;
};

void writer_rpc_open(void *arg, unsigned index, struct rpc_worker *out);
void writer_rpc_close(void *arg, struct rpc_worker *worker);

void keys_rpc_init(struct keys_service *service, struct writer_worker *worker);
