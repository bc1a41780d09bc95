// SPDX-License-Identifier: MIT
#include "common/service/service_state.h"

#include <stdio.h>

static void put_reason(struct buf *out, const char *name, char *why) {
    for (char *at = why; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20)
            *at = ' ';
    buf_printf(out, "%s: %s\n", name, why);
}

static bool are_parts_ready(const struct service *service, struct buf *out) {
    bool is_ready = true;
    for (size_t i = 0; i < service->part_count; i++) {
        const struct service_part *part = &service->parts[i];
        char why[256] = "not ready";
        if (part->ready == NULL || part->ready(part->state, why, sizeof why))
            continue;
        put_reason(out, part->name, why);
        is_ready = false;
    }
    return is_ready;
}

bool service_state_ready(struct service_state *state, struct buf *out) {
    const struct service *service = state->service;
    bool is_ready = false;
    (void)pthread_mutex_lock(&state->lock);
    if (state->phase == SERVICE_RUNNING)
        is_ready = are_parts_ready(service, out);
    else
        buf_printf(out, "service: %s\n", state->phase == SERVICE_STARTING ? "starting" : "draining");
    (void)pthread_mutex_unlock(&state->lock);
    return is_ready;
}
