// SPDX-License-Identifier: MIT
// What travels around every call (dunlin/v1/envelope.proto), and its mapping to struct rpc_context and struct
// problem. Pure: bytes in, bytes out. Shared by both ends.
#pragma once

#include "common/rpc/rpc.h"
#include "common/rpc/rpc_arena.h"
#include "dunlin/v1/envelope.pb-c.h"

#define RPC_HEALTH_SERVICE "dunlin.v1.Health"
#define RPC_HEALTH_METHOD "dunlin.v1.Health/Check"

// What NNG may receive: an envelope behind the 4 bytes of its request id. Past it, NNG closes the connection.
#define RPC_FRAME_MAX ((size_t)RPC_MESSAGE_MAX + 4)

// Memory that one unpacked message may take; the sizes of our own messages stay under 3 times their bytes.
#define RPC_ARENA_MAX ((size_t)8 * RPC_MESSAGE_MAX)

// Unpacks and checks the texts. NULL: `why` is INVALID_ARGUMENT with `reason`, or RESOURCE_EXHAUSTED
// "MESSAGE_TOO_LARGE" where it needs more memory than the arena has. The result lives in the arena.
ProtobufCMessage *rpc_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len,
    struct rpc_arena *arena, const char *reason, struct problem *why);

// The metadata of a request; false with a violation that names the field. The deadline is not touched.
MUST_CHECK bool rpc_metadata_read(
    const Dunlin__V1__RpcRequest *request, struct rpc_context *out, struct problem *why);
// Points the request at the context's metadata.
void rpc_metadata_write(const struct rpc_context *context, Dunlin__V1__RpcRequest *request);

// An answer and what it points at; it must not move once filled. done() releases the body.
struct rpc_response {
    Dunlin__V1__RpcResponse message;
    struct problem problem;
    Dunlin__V1__FieldViolation violations[PROBLEM_VIOLATIONS_MAX];
    Dunlin__V1__FieldViolation *list[PROBLEM_VIOLATIONS_MAX];
    uint8_t *body; // owned
};
void rpc_response_init(struct rpc_response *response);
void rpc_response_done(struct rpc_response *response);
// An answer that says why there is none. A problem without a status becomes INTERNAL.
void rpc_response_refuse(struct rpc_response *response, const struct problem *why);
// The packed message as the body; refuses with RESOURCE_EXHAUSTED "MESSAGE_TOO_LARGE" what passes
// RPC_MESSAGE_MAX.
void rpc_response_answer(struct rpc_response *response, const ProtobufCMessage *message);

// What an answer with a code other than 0 says.
void rpc_problem_read(const Dunlin__V1__RpcResponse *message, struct problem *out);

// Health.Check's answer.
void rpc_health_answer(struct rpc_response *response, bool serving);
// True where the bytes are an answer to Health.Check, whatever it says.
bool rpc_health_read(const void *bytes, size_t len, bool *serving);
