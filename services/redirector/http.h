// SPDX-License-Identifier: MIT
// The public HTTP face of one worker: takes each request, routes it, and answers: links by way of the lookup,
// the API by way of the gateway, the rest at once. On the worker's loop.
#pragma once

#include "common/loop/loop.h"
#include "common/status/status.h"
#include "services/redirector/click_ring.h"
#include "services/redirector/lookup.h"
#include "services/redirector/redirector.h"

struct http;

struct http_options {
    const struct redirector *redirector; // its gateway too
    struct loop *loop;
    struct lookup *lookup;
    struct click_ring *ring;
};

MUST_CHECK enum status http_open(const struct http_options *options, struct http **out, struct problem *why);
void http_drain(struct http *http);
void http_quiesce(struct http *http); // may be asked again and again
size_t http_in_flight(const struct http *http);
// Close the lookup first. Jobs at the gateway are waited for. NULL is fine.
void http_close(struct http *http);
