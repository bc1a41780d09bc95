// SPDX-License-Identifier: MIT
// The few answers of the short host that need no lookup. Pure.
#pragma once

#include "services/redirector/answer.h"
#include "services/redirector/route.h"

// True where the route is one of them; then the answer, which answer_init() made, is filled in.
bool pages_answer(struct answer *answer, enum route_kind kind);
