// SPDX-License-Identifier: MIT
// The service's edge to Redis: a new link is written through, so that its first redirect finds it there.
#pragma once

#include "common/cache/cache.h"
#include "common/target/target.h"
#include "services/writer/writer_sql.h"

// Best effort: Redis is never the only copy, so a failure costs one later miss. `cache` NULL: there is no
// Redis. False on a failure.
bool writer_cache_put(struct cache *cache, int64_t jumps, const struct stored_link *link);
