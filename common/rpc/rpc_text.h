// SPDX-License-Identifier: MIT
// Text from a peer: is it what `string` promises? protobuf-c does not ask.
#pragma once

#include "common/status/status.h"
#include <protobuf-c/protobuf-c.h>

// Puts '?' for each byte that is not part of a character: for texts that were cut to a size.
void rpc_text_mend(char *text);

// Walks all `string` fields of a message that was unpacked with a struct rpc_arena, nested and repeated ones
// too. The first one that is no UTF-8 or holds a NUL makes it false, with a violation that names the field
// ("links[2].url").
MUST_CHECK bool rpc_text_check(const ProtobufCMessage *message, struct problem *why);
