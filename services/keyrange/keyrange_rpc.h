// SPDX-License-Identifier: MIT
// The service's edge to its callers: dunlin.v1.Keyrange. The two calls are rpc_server's worker_open and
// worker_close; their `arg` is the struct keyrange.
#pragma once

#include "common/rpc/rpc_server.h"

void keyrange_rpc_open(void *arg, unsigned index, struct rpc_worker *out);
void keyrange_rpc_close(void *arg, struct rpc_worker *worker);
