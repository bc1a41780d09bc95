// SPDX-License-Identifier: MIT
// The parts that every service of straight-line threads has: Postgres, watched, and RPC, served. A service
// fills in the options in the start of a part of its own that stands before these.
#pragma once

#include "common/db/db_watch.h"
#include "common/rpc/rpc_server.h"
#include "common/service/service.h"

struct parts_postgres {
    struct db_options options; // of the watch's own connection
    struct db_watch *watch;
};
// Named "postgres"; ready while Postgres can be used.
struct service_part parts_postgres(struct parts_postgres *postgres);

struct parts_rpc {
    struct rpc_server_options options;
    struct rpc_server *server;
};
// Named "rpc"; drains, and stops within what time there is.
struct service_part parts_rpc(struct parts_rpc *rpc);
