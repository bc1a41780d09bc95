// SPDX-License-Identifier: MIT
// A bounded arena for one unpacked message. protobuf-c can turn two bytes of a peer into a hundred of memory
// and sets no limit of its own; this allocator refuses past its limit, and the unpacking fails. Freed as a
// whole. One thread.
#pragma once

#include "common/base/base.h"
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

struct rpc_arena_chunk;

struct rpc_arena {
    ProtobufCAllocator allocator; // for protobuf-c; its free does nothing
    struct rpc_arena_chunk *chunks;
    size_t total; // memory held, at most limit
    size_t limit;
    bool exhausted; // something was refused since the last clear
};

// init/done: the struct is the caller's and must not move in between.
void rpc_arena_init(struct rpc_arena *arena, size_t limit);
void rpc_arena_done(struct rpc_arena *arena);
// Frees all that was handed out, and keeps one small chunk for the next message.
void rpc_arena_clear(struct rpc_arena *arena);

// The size that an allocation of an arena was asked for: protobuf-c stores a string with its length + 1, so
// this finds a NUL inside of it.
size_t rpc_arena_size_of(const void *allocation);
