// SPDX-License-Identifier: MIT
// A Health.Check over a TCP connection of its own, by hand: SP over TCP is two handshakes of 8 bytes and a
// length before each message. An NNG socket kept open would not notice a listener that accepts nobody new,
// and one made for each probe is the churn that NNG 1.5 does not bear.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

// True where an answer came in time, whatever it says. Blocks.
bool rpc_probe(const struct sockaddr_storage *address, int64_t timeout_us);
