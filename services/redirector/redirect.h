// SPDX-License-Identifier: MIT
// What a visitor gets for a link: the redirect, or why there is none. Pure.
#pragma once

#include "common/linkcache/linkcache.h"
#include "services/redirector/answer.h"

// Does this request only look ahead? Then it is redirected, not counted, and must not be kept. The values of
// the fields Sec-Purpose, Purpose, X-Purpose and X-Moz; NULL for none.
bool redirect_is_prefetch(
    const char *sec_purpose, const char *purpose, const char *x_purpose, const char *x_moz);

// Fills in an answer that answer_init() made; its header values may point into `link`. True where it is a
// redirect.
bool redirect_answer(
    struct answer *answer, const struct cached_link *link, int64_t now, bool prefetch, const char *accept);
