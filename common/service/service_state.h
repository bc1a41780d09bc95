// SPDX-License-Identifier: MIT
// What the main thread and the admin thread share: how far the service has come. Inside the module only.
#pragma once

#include "common/service/service.h"

#include <pthread.h>

enum service_phase {
    SERVICE_STARTING,
    SERVICE_RUNNING,
    SERVICE_LEAVING,  // the signal came; parts still work
    SERVICE_STOPPING, // parts are being stopped: nothing of theirs may be touched
};

struct service_state {
    const struct service *service;
    pthread_mutex_t lock; // held while the admin thread looks into parts, so that none goes away meanwhile
    enum service_phase phase;
};

// True where everything is ready. Else `out` gets a line "name: why" for each part that isn't, or one line
// for a phase that isn't running. Any thread.
bool service_state_ready(struct service_state *state, struct buf *out);

struct admin;

// Serves the admin port on a thread of its own. FAILED_PRECONDITION where it can't be opened,
// INVALID_ARGUMENT for an address that is none.
MUST_CHECK enum status admin_start(
    struct service_state *state, const char *listen, struct admin **out, struct problem *why);
void admin_stop(struct admin *admin); // NULL is fine

#define ADMIN_HOST_MAX 64
// The metrics that every process has. Returns the gauge that tells whether it is ready.
extern const struct metric_family service_metrics[];
extern const size_t service_metrics_count;
struct metric *service_metrics_add(const struct service *service);
