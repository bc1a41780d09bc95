// SPDX-License-Identifier: MIT
// API requests leave the workers' loops here: a bounded queue and straight-line threads that may block on
// RPCs. The finished job goes back to the worker that it came from.
#pragma once

#include "services/redirector/api.h"

struct gateway;

struct gateway_job {
    struct api_request request; // owned texts; see api.h
    struct answer answer;       // made by the gateway
    void *owner;                // the worker's, untouched here
    // Called on the gateway's thread when the answer is made; from then on the job is the worker's again.
    void (*done)(struct gateway_job *job);
    struct gateway_job *next;
};

struct gateway_options {
    unsigned threads;
    unsigned queue_max;
    struct api api;
};

struct gateway *gateway_start(const struct gateway_options *options);
// Jobs that wait or run are finished first. NULL is fine.
void gateway_stop(struct gateway *gateway);
// False where the queue is full; the job stays the caller's. Any thread, does not block.
MUST_CHECK bool gateway_submit(struct gateway *gateway, struct gateway_job *job);
