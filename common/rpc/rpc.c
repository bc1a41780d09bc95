// SPDX-License-Identifier: MIT
#include "common/rpc/rpc.h"

static const struct rpc_context nothing;
static _Thread_local const struct rpc_context *current;
static _Thread_local struct problem outcome;

const struct rpc_context *rpc_context(void) {
    return current != NULL ? current : &nothing;
}

const struct rpc_context *rpc_context_swap(const struct rpc_context *context) {
    const struct rpc_context *previous = rpc_context();
    current = context;
    return previous;
}

int64_t rpc_time_left_us(int64_t preset_us) {
    int64_t deadline_us = rpc_context()->deadline_us;
    if (deadline_us == 0)
        return preset_us;
    int64_t left_us = deadline_us - base_monotonic_us();
    return left_us > 0 ? left_us : 0;
}

void rpc_fail(const struct problem *why) {
    if (why != &outcome)
        outcome = *why;
}

void rpc_succeed(void) {
    outcome = (struct problem){.status = STATUS_OK};
}

const struct problem *rpc_outcome(void) {
    return &outcome;
}
