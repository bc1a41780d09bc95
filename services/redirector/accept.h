// SPDX-License-Identifier: MIT
// What an Accept field asks for (RFC 9110 section 12.5.1), as far as our answers differ. Pure.
#pragma once

#include <stdbool.h>

// True where `accept` (NULL: no field) names `type` ("text/html") itself with a quality above 0; wildcards
// don't count.
bool accept_names(const char *accept, const char *type);
