// SPDX-License-Identifier: MIT
// The JSON API (docs/http-api.md): each request becomes one RPC to the writer or the clicks service, and its
// outcome a status and a document. Runs on the gateway's threads and may block; knows no connection and no
// loop.
#pragma once

#include "services/redirector/api_call.h"

#define API_TIMEOUT_US (3 * US_PER_S)

// Fills in an answer that answer_init() made.
void api_answer(const struct api *api, const struct api_request *request, struct answer *answer);
