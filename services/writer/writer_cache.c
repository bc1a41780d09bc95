// SPDX-License-Identifier: MIT
#include "services/writer/writer_cache.h"
#include "common/log/log.h"

#include <stdio.h>

#define REDIRECT_STATUS 302 // until links carry their own

static void to_cached(const struct stored_link *link, struct cached_link *out) {
    // Borrows the URL: never hand `out` to cached_link_done().
    *out = (struct cached_link){
        .version = link->version,
        .state = link->state,
        .has_expiry = link->has_expiry,
        .expires_at = link->expires_at,
        .redirect_status = REDIRECT_STATUS,
        .verified_at = link->updated_at,
        .url = link->url,
        .url_len = link->url_len,
    };
    (void)snprintf(out->code, sizeof out->code, "%s", link->code);
}

bool writer_cache_put(struct cache *cache, int64_t jumps, const struct stored_link *link) {
    if (cache == NULL)
        return true;
    struct cached_link cached;
    to_cached(link, &cached);
    char key[LINKCACHE_KEY];
    linkcache_key(key, jumps, cached.code);
    struct buf value;
    buf_init(&value, 2 * TARGET_MAX);
    linkcache_pack(&cached, &value);
    enum status status =
        cache_set(cache, key, value.data, value.len, linkcache_ttl_ms(&cached, base_wall_us()));
    buf_done(&value);
    if (status == STATUS_OK)
        return true;
    static struct log_limit limit;
    int64_t suppressed = 0;
    if (log_allowed(&limit, &suppressed))
        log_warn("a new link could not be written to Redis", log_text("error", cache_error_text(cache)),
            log_int("suppressed", suppressed));
    return false;
}
