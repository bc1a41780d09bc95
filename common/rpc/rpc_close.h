// SPDX-License-Identifier: MIT
// Closing an NNG socket without trusting it to end: NNG 1.5 may wait in nng_close() for ever for a connection
// that is just going away (NNG issues 1813 and 1827). Inside the module only.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

// Every operation on the socket is over. False where the close did not end in time: it goes on by itself, and
// whatever the socket's callbacks point at must stay: hand it to rpc_close_abandon().
MUST_CHECK bool rpc_close_socket(uint32_t socket_id);
// Keeps `memory` for the rest of the process. Happens rarely; says so in the log.
void rpc_close_abandon(void *memory);
