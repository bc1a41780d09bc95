// SPDX-License-Identifier: MIT
// The frame of every service: command line, configuration, log, admin port, an ordered list of parts,
// signals, drain. A main.c names its tables and its parts and returns service_main().
//
// Command line: --help (usage and settings), --version, --check (validates the configuration),
// --describe=settings and --describe=metrics (Markdown for docs/configuration.md and docs/metrics.md). Exit
// codes: 0 done or drained, 1 a part failed or the end was forced, 2 usage or configuration.
//
// SIGTERM or SIGINT: /readyz says no and the parts' leaving() run; DRAIN_DELAY_MS passes (load balancers look
// away); the parts drain, then stop, both in reverse order; exit 0. A second signal, or stops that outlast
// SHUTDOWN_TIMEOUT_MS by a second, end the process at once with 1. SIGPIPE is ignored. Parts' threads inherit
// a mask that blocks SIGTERM and SIGINT: only the main thread takes them.
//
// The admin port (ADMIN_LISTEN), GET and HEAD: /metrics, /healthz (200: the process lives), /readyz (200, or
// 503 with a line "part: why" for each that is not ready), and what the service adds. It has a thread of its
// own, is open before the first part starts and until the last one has stopped; while parts stop, only
// /healthz and /readyz answer.
#pragma once

#include "common/config/config.h"
#include "common/metrics/metrics.h"
#include "common/status/status.h"

// A thing that starts and stops. All but ready() run on the main thread.
// start: when its dependencies are down it waits for them in the background and says so; it returns soon, and
// fails only for what waiting can't mend (a bad setting, a port in use). A part that failed is not stopped,
// the ones before it are. stop: bounded by SHUTDOWN_TIMEOUT_MS over all, see service_stop_time_left_us().
// ready: any thread, must not block, between start() and leaving() only; on false `why` (of `size` bytes)
// gets a reason. NULL: ready once started.
struct service_part {
    const char *name;
    enum status (*start)(void *state, struct problem *why);
    // The signal came, NULL where there is nothing to do: goes on taking work for DRAIN_DELAY_MS, but tells
    // clients to come back elsewhere. In reverse order.
    void (*leaving)(void *state);
    // DRAIN_DELAY_MS is over, NULL where there is nothing to do: takes no new work. In reverse order, before
    // any stop().
    void (*drain)(void *state);
    void (*stop)(void *state);
    bool (*ready)(void *state, char *why, size_t size);
    void *state; // given to each of them
};

struct service_route {
    const char *path; // "/debug/hot-keys"
    // text/plain; on the admin thread, while all parts are started and none has stopped
    void (*render)(void *state, struct buf *out);
};

struct service {
    const char *name;         // "keyrange": the log's service, "dunlin-keyrange" on the command line
    const char *summary;      // one line for --help
    const char *admin_preset; // the default of ADMIN_LISTEN, its own for each service: "127.0.0.1:9101"
    const struct config_section *config;
    size_t config_count;
    const struct metric_section *metrics;
    size_t metrics_count;
    const struct service_part *parts;
    size_t part_count;
    const struct service_route *routes;
    size_t route_count;
    void *state; // given to every function of routes
};

// Adds the settings that every service has (ADMIN_LISTEN, LOG_LEVEL, DRAIN_DELAY_MS, SHUTDOWN_TIMEOUT_MS) and
// the metrics that every process has. Once per process, from the thread that entered main(). Returns the exit
// code.
int service_main(const struct service *service, int argc, char **argv);

// This process must not go on: drains and exits with 1. `reason` is logged as critical. Any thread.
void service_fail(const char *reason);

// Microseconds that a part's stop() may still take, at least 0. Any thread; before the drain, the whole time.
int64_t service_stop_time_left_us(void);
