// SPDX-License-Identifier: MIT
// "ADDRESS:PORT", as listening sockets are configured. Pure.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

// Splits "127.0.0.1:8080" or "[::1]:8080"; the address must be numeric. Port 0 is any free one.
MUST_CHECK bool web_listen_parse(const char *text, char *address, size_t size, uint16_t *port);
