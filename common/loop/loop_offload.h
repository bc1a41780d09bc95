// SPDX-License-Identifier: MIT
// One blocking job on a thread of its own, for what has no other way (name lookup, a TLS handshake), with its
// end told on the loop. For rare work: each job is a new thread.
#pragma once

#include "common/loop/loop.h"

struct loop_offload;

// What is done with a job, which the offload owns from its start until done() or drop().
struct loop_offload_job {
    loop_call *work; // on the new thread; must end by itself
    loop_call *done; // on the loop, after work: takes the job back
    loop_call *drop; // instead of done, after a cancel: releases the job; on either thread
    void *job;
};

// The handle is gone once done() is called or the offload was cancelled. NULL where no thread could be made:
// the job stays the caller's.
MUST_CHECK struct loop_offload *loop_offload_start(struct loop *loop, const struct loop_offload_job *job);
// Does not wait for the work. NULL is fine.
void loop_offload_cancel(struct loop_offload *offload);
