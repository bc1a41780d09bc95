// SPDX-License-Identifier: MIT
// What the two ends of a call share: the context that travels with it, and its outcome. The interface of a
// service is the vtable that protobuf-c generates from its .proto; code that holds one cannot tell local,
// remote and fake apart.
//
// An outcome travels beside the answer, per thread: a handler that fails says rpc_fail() and closes with
// NULL; a caller whose closure got NULL reads rpc_outcome(). A handler calls its closure exactly once, before
// it returns; RPC_ANSWER and RPC_REFUSE say both halves at once. An answer lives until the caller's closure
// returns: copy what is to stay.
#pragma once

#include "common/base/base.h"
#include "common/status/status.h"
#include <stdbool.h>

#define RPC_MESSAGE_MAX ((size_t)2 << 20) // bytes of an envelope, equal on both sides
#define RPC_AUTHORIZATION_MAX 256
#define RPC_REQUEST_ID_MAX 64
#define RPC_TRACEPARENT_LEN 55

struct rpc_context {
    int64_t deadline_us;                           // CLOCK_MONOTONIC; 0: none, the client's default applies
    char authorization[RPC_AUTHORIZATION_MAX + 1]; // "" for none; a secret
    char request_id[RPC_REQUEST_ID_MAX + 1];       // "" for none
    char traceparent[RPC_TRACEPARENT_LEN + 1];     // "" for none
};

// The calling thread's context. A server sets it around each handler, so that calls made inside pass on the
// deadline and the metadata; other callers set their own (it must outlive the calls) and put the previous one
// back. Never NULL to read.
const struct rpc_context *rpc_context(void);
const struct rpc_context *rpc_context_swap(const struct rpc_context *context);
// Microseconds left of the context's deadline, at least 0; `preset_us` where it has none.
int64_t rpc_time_left_us(int64_t preset_us);

// The outcome of the calling thread's last call: status OK where its answer was not NULL.
void rpc_fail(const struct problem *why);
void rpc_succeed(void);
const struct problem *rpc_outcome(void);

// The end of a handler: its answer, or why there is none.
#define RPC_ANSWER(closure, answer, data) (rpc_succeed(), (closure)((answer), (data)))
#define RPC_REFUSE(closure, why, data) (rpc_fail(why), (closure)(NULL, (data)))
