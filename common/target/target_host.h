// SPDX-License-Identifier: MIT
// The part of a target between "//" and the path: host and port. For common/target alone.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

#define TARGET_HOST_MAX 253 // without a trailing dot

struct target_authority {
    // As it is stored: the letter case as sent, a trailing dot and brackets kept, A-labels for what is not
    // ASCII.
    char host[TARGET_HOST_MAX + 2];
    // To compare hosts by: A-labels, lower case, no trailing dot, an IPv6 address in its one spelling.
    char key[TARGET_HOST_MAX + 2];
    // Effective, for comparing: 443 is told as 80, because both are the front door of one host.
    uint16_t port;
    // Where the host ends in the text that was parsed; what follows ("", ":", ":0443") is stored as it is.
    size_t host_len;
};

// NULL, or the broken rule as a sentence with `out` undefined. Static text.
MUST_CHECK const char *target_authority_parse(
    const char *text, size_t len, uint16_t default_port, struct target_authority *out);
