// SPDX-License-Identifier: MIT
// One of the redirector's workers: a thread with a loop, an HTTP server on its own SO_REUSEPORT socket, its
// own connections to Redis and Postgres, and its ring of clicks. Workers share nothing but the gateway's
// queue.
#pragma once

#include "common/status/status.h"
#include "services/redirector/click_ring.h"
#include "services/redirector/redirector.h"

struct worker;

// The gateway is set in the redirector before; `ring` outlives the worker. Returns when the worker listens.
MUST_CHECK enum status worker_start(
    const struct redirector *redirector, struct click_ring *ring, struct worker **out, struct problem *why);
// From here on every answer ends its connection; new ones are still taken.
void worker_drain(struct worker *worker);
// Takes no more connections, finishes what is in flight for at most `us`, ends. NULL is fine.
void worker_stop(struct worker *worker, int64_t us);
// Can it find links? Any thread.
bool worker_is_up(const struct worker *worker);
