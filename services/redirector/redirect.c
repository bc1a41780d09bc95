// SPDX-License-Identifier: MIT
#include "services/redirector/redirect.h"
#include "common/target/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PERMANENT_MAX_AGE 86400

static bool holds_word(const char *value, const char *word) {
    return value != NULL && strcasestr(value, word) != NULL;
}

bool redirect_is_prefetch(
    const char *sec_purpose, const char *purpose, const char *x_purpose, const char *x_moz) {
    const char *const others[] = {purpose, x_purpose, x_moz};
    if (holds_word(sec_purpose, "prefetch") || holds_word(sec_purpose, "prerender"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (holds_word(others[i], "prefetch") || holds_word(others[i], "preview"))
            return true;
    return false;
}

static void cache_control(struct answer *answer, const struct cached_link *link, int64_t now, bool prefetch) {
    int64_t seconds = link->permanent ? PERMANENT_MAX_AGE : link->max_age;
    if (link->has_expiry && (link->expires_at - now) / US_PER_S < seconds)
        seconds = (link->expires_at - now) / US_PER_S;
    if (prefetch || seconds <= 0) {
        answer_header(answer, "Cache-Control", "private, no-store");
        return;
    }
    char value[48];
    (void)snprintf(
        value, sizeof value, "%s, max-age=%" PRId64, link->permanent ? "public" : "private", seconds);
    answer_header_copy(answer, "Cache-Control", value);
}

static bool refuse(struct answer *answer, int http_status, const char *accept) {
    const struct problem why = {0};
    answer_error(answer, http_status, &why, accept);
    return false;
}

bool redirect_answer(
    struct answer *answer, const struct cached_link *link, int64_t now, bool prefetch, const char *accept) {
    if (cached_link_is_retired(link, now))
        return refuse(answer, 410, accept);
    if (link->state != LINK_ACTIVE)
        return refuse(answer, 404, accept);
    // A row that other rules let in, or that came in beside them.
    if (link->url == NULL || !target_is_sendable(link->url, link->url_len))
        return refuse(answer, 500, accept);
    answer->status = link->redirect_status;
    answer_header(answer, "Location", link->url);
    cache_control(answer, link, now, prefetch);
    answer_header(answer, "X-Robots-Tag", "noindex");
    return true;
}
