// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_pool.h"

#include "common/log/log.h"
#include "common/rpc/rpc_client.h"
#include "common/rpc/rpc_stats.h"
#include "common/rpc/rpc_thread.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PING_PERIOD_US (1 * US_PER_S)
#define PING_MISSES_GONE 3
#define RESOLVE_PERIOD_US (5 * US_PER_S)
#define GRACE_US (500 * US_PER_MS)    // for the first connection, once addresses are known
#define GRACE_NAMES_US (2 * US_PER_S) // for the first answer of the name service
#define REDIAL_MIN_US (5 * US_PER_S)  // an NNG dialer may stop trying for good (NNG issue 1518's twin)
#define REDIAL_MAX_US (60 * US_PER_S)

struct member {
    struct rpc_member seen; // first, so that the borrower's pointer is ours
    char address[RPC_ADDRESS_MAX];
    unsigned borrowed; // under the pool's lock
    bool was_up;       // these are the keeper's alone
    bool gave_up;
    int64_t down_since_us;
    int64_t redial_us;
    int64_t pinged_us;
    struct member *next; // of those that leave
};

struct rpc_pool {
    char *name;
    struct rpc_targets targets;
    struct metric *up;
    struct metric *rebuilds;
    _Atomic uint64_t random;
    uint64_t last_id;
    struct rpc_ticker keeper;
    struct rpc_ticker resolver;
    struct member *leaving; // the keeper's alone

    pthread_mutex_t lock; // guards what follows; no NNG call happens under it
    pthread_cond_t came_up;
    struct member *members[RPC_ADDRESSES_MAX]; // changed by the keeper alone
    size_t count;
    struct rpc_addresses found; // by the resolver, not yet used
    bool found_fresh;
    bool was_up;
    int64_t grace_end_us;
};

// SplitMix64 (Steele et al., 2014) over a shared counter.
uint64_t rpc_pool_random(struct rpc_pool *pool) {
    uint64_t mix = atomic_fetch_add(&pool->random, UINT64_C(0x9E3779B97F4A7C15));
    mix = (mix ^ (mix >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mix = (mix ^ (mix >> 27)) * UINT64_C(0x94D049BB133111EB);
    return mix ^ (mix >> 31);
}

static size_t candidates(const struct rpc_pool *pool, enum rpc_peer_state state, uint64_t without,
    struct member *out[RPC_ADDRESSES_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < pool->count; i++)
        if (pool->members[i]->seen.id != without && rpc_peer_state(pool->members[i]->seen.peer) == state)
            out[count++] = pool->members[i];
    return count;
}

// Serving ones first; a peer that says NOT_SERVING is still asked when there is no other, and gives its own
// reason.
static struct member *choose_locked(struct rpc_pool *pool, uint64_t without) {
    struct member *found[RPC_ADDRESSES_MAX];
    size_t count = candidates(pool, RPC_PEER_SERVING, without, found);
    if (count == 0)
        count = candidates(pool, RPC_PEER_NOT_SERVING, without, found);
    if (count == 0)
        return NULL;
    uint64_t random = rpc_pool_random(pool);
    struct member *one = found[(random & UINT32_MAX) % count];
    struct member *two = found[(random >> 32) % count];
    return two->borrowed < one->borrowed ? two : one;
}

static struct member *find_locked(struct rpc_pool *pool, const struct rpc_avoid *avoid) {
    struct member *member = choose_locked(pool, avoid->id);
    if (member == NULL && avoid->id != 0 && !avoid->never)
        member = choose_locked(pool, 0);
    return member;
}

struct rpc_member *rpc_pool_borrow(
    struct rpc_pool *pool, const struct rpc_avoid *avoid, int64_t deadline_us) {
    (void)pthread_mutex_lock(&pool->lock);
    struct member *member = find_locked(pool, avoid);
    while (member == NULL && !pool->was_up) {
        int64_t until_us = pool->grace_end_us < deadline_us ? pool->grace_end_us : deadline_us;
        if (base_monotonic_us() >= until_us)
            break;
        (void)rpc_cond_wait_until(&pool->came_up, &pool->lock, until_us);
        member = find_locked(pool, avoid);
    }
    if (member != NULL)
        member->borrowed++;
    (void)pthread_mutex_unlock(&pool->lock);
    return member == NULL ? NULL : &member->seen;
}

void rpc_pool_give_back(struct rpc_pool *pool, struct rpc_member *member) {
    struct member *self = (struct member *)member;
    (void)pthread_mutex_lock(&pool->lock);
    self->borrowed--;
    (void)pthread_mutex_unlock(&pool->lock);
}

bool rpc_pool_is_up(struct rpc_pool *pool) {
    struct member *found[RPC_ADDRESSES_MAX];
    (void)pthread_mutex_lock(&pool->lock);
    size_t count = candidates(pool, RPC_PEER_SERVING, 0, found);
    (void)pthread_mutex_unlock(&pool->lock);
    return count > 0;
}

// On an NNG thread.
static void peer_changed(void *arg) {
    struct rpc_pool *pool = arg;
    (void)pthread_mutex_lock(&pool->lock);
    (void)pthread_cond_broadcast(&pool->came_up);
    (void)pthread_mutex_unlock(&pool->lock);
    rpc_ticker_kick(&pool->keeper);
}

static struct member *create_member(struct rpc_pool *pool, const char *address) {
    struct member *member = base_calloc(1, sizeof *member);
    (void)memcpy(member->address, address, strnlen(address, RPC_ADDRESS_MAX - 1));
    member->seen.id = ++pool->last_id;
    member->down_since_us = base_monotonic_us();
    member->redial_us = REDIAL_MIN_US;
    member->seen.peer = rpc_peer_open(member->address, peer_changed, pool);
    return member;
}

// Puts `member` (NULL: nothing) in the place of the one there, which leaves once its calls are over.
static void replace(struct rpc_pool *pool, size_t at, struct member *member) {
    (void)pthread_mutex_lock(&pool->lock);
    struct member *old = pool->members[at];
    pool->members[at] = member != NULL ? member : pool->members[--pool->count];
    (void)pthread_mutex_unlock(&pool->lock);
    old->next = pool->leaving;
    pool->leaving = old;
}

static void rebuild(struct rpc_pool *pool, size_t at) {
    struct member *old = pool->members[at];
    struct member *member = create_member(pool, old->address);
    member->redial_us = old->redial_us * 2 < REDIAL_MAX_US ? old->redial_us * 2 : REDIAL_MAX_US;
    old->gave_up = true;
    metric_inc(pool->rebuilds);
    replace(pool, at, member);
}

static bool is_listed(const struct rpc_addresses *addresses, const char *address) {
    for (size_t i = 0; i < addresses->count; i++)
        if (strcmp(addresses->items[i], address) == 0)
            return true;
    return false;
}

static bool is_member(const struct rpc_pool *pool, const char *address) {
    for (size_t i = 0; i < pool->count; i++)
        if (strcmp(pool->members[i]->address, address) == 0)
            return true;
    return false;
}

static void append(struct rpc_pool *pool, struct member *member) {
    (void)pthread_mutex_lock(&pool->lock);
    pool->members[pool->count++] = member;
    (void)pthread_mutex_unlock(&pool->lock);
}

// An address is dropped only by a complete answer, so that a name service that is down takes nothing away.
static void follow(struct rpc_pool *pool, const struct rpc_addresses *found) {
    for (size_t i = pool->count; found->complete && i > 0; i--)
        if (!is_listed(found, pool->members[i - 1]->address))
            replace(pool, i - 1, NULL);
    for (size_t i = 0; i < found->count && pool->count < RPC_ADDRESSES_MAX; i++)
        if (!is_member(pool, found->items[i]))
            append(pool, create_member(pool, found->items[i]));
}

static void follow_names(struct rpc_pool *pool) {
    (void)pthread_mutex_lock(&pool->lock);
    struct rpc_addresses found = pool->found;
    bool fresh = pool->found_fresh;
    pool->found_fresh = false;
    (void)pthread_mutex_unlock(&pool->lock);
    if (fresh)
        follow(pool, &found);
}

static bool note_state(struct rpc_pool *pool, struct member *member, int64_t now_us) {
    bool up = rpc_peer_state(member->seen.peer) != RPC_PEER_DOWN;
    if (up != member->was_up) {
        log_info(up ? "an RPC peer is up" : "an RPC peer is down", log_text("peer", pool->name),
            log_text("address", member->address));
        member->down_since_us = now_us;
    }
    if (up)
        member->redial_us = REDIAL_MIN_US;
    member->was_up = up;
    return up;
}

static void tend(struct rpc_pool *pool, size_t at, int64_t now_us) {
    struct member *member = pool->members[at];
    bool up = note_state(pool, member, now_us);
    bool silent = rpc_peer_misses(member->seen.peer) >= PING_MISSES_GONE;
    bool stuck =
        !rpc_peer_is_connected(member->seen.peer) && now_us - member->down_since_us >= member->redial_us;
    if (silent || stuck) {
        rebuild(pool, at);
        return;
    }
    // A connection that was not heard yet is asked at once; it is up after its first answer.
    if (!rpc_peer_is_connected(member->seen.peer)) {
        member->pinged_us = 0;
    } else if ((!up && rpc_peer_misses(member->seen.peer) == 0 && member->pinged_us == 0) ||
               now_us - member->pinged_us >= PING_PERIOD_US) {
        if (rpc_peer_ping(member->seen.peer))
            member->pinged_us = now_us;
    }
}

static bool is_borrowed(struct rpc_pool *pool, const struct member *member) {
    (void)pthread_mutex_lock(&pool->lock);
    bool borrowed = member->borrowed > 0;
    (void)pthread_mutex_unlock(&pool->lock);
    return borrowed;
}

static void see_off(struct rpc_pool *pool) {
    for (struct member **at = &pool->leaving; *at != NULL;) {
        struct member *member = *at;
        if (is_borrowed(pool, member)) {
            if (member->gave_up)
                rpc_peer_abort(member->seen.peer);
            at = &member->next;
            continue;
        }
        *at = member->next;
        rpc_peer_close(member->seen.peer);
        free(member);
    }
}

static void keep(void *arg) {
    struct rpc_pool *pool = arg;
    int64_t serving = 0;
    follow_names(pool);
    for (size_t i = 0; i < pool->count; i++) {
        tend(pool, i, base_monotonic_us());
        if (rpc_peer_state(pool->members[i]->seen.peer) == RPC_PEER_SERVING)
            serving++;
    }
    metric_set(pool->up, serving);
    if (serving > 0) {
        (void)pthread_mutex_lock(&pool->lock);
        pool->was_up = true;
        (void)pthread_mutex_unlock(&pool->lock);
    }
    see_off(pool);
}

static void resolve(void *arg) {
    struct rpc_pool *pool = arg;
    static struct log_limit limit;
    struct rpc_addresses found;
    int64_t suppressed;
    rpc_resolve(&pool->targets, &found);
    if (!found.complete && log_allowed(&limit, &suppressed))
        log_warn("an RPC peer's name does not resolve", log_text("peer", pool->name),
            log_int("suppressed", suppressed));
    (void)pthread_mutex_lock(&pool->lock);
    pool->found = found;
    pool->found_fresh = true;
    if (pool->count == 0 && found.count > 0)
        pool->grace_end_us = base_monotonic_us() + GRACE_US;
    (void)pthread_cond_broadcast(&pool->came_up);
    (void)pthread_mutex_unlock(&pool->lock);
    rpc_ticker_kick(&pool->keeper);
}

struct rpc_pool *rpc_pool_open(const char *name, const struct rpc_targets *targets) {
    struct rpc_pool *pool = base_calloc(1, sizeof *pool);
    bool numeric = rpc_resolve_is_numeric(targets);
    int64_t now_us = base_monotonic_us();
    pool->name = base_strdup(name);
    pool->targets = *targets;
    pool->up = metric_add(&rpc_client_metrics[RPC_CLIENT_PEER_UP], name);
    pool->rebuilds = metric_add(&rpc_client_metrics[RPC_CLIENT_REBUILDS], name);
    pool->random = (uint64_t)now_us ^ (uint64_t)(uintptr_t)pool;
    pool->grace_end_us = now_us + (numeric ? GRACE_US : GRACE_NAMES_US);
    REQUIRE(pthread_mutex_init(&pool->lock, NULL) == 0);
    rpc_cond_init(&pool->came_up);
    if (numeric) {
        rpc_resolve(targets, &pool->found);
        pool->found_fresh = true;
    }
    rpc_ticker_start(&pool->keeper, PING_PERIOD_US, keep, pool);
    if (!numeric)
        rpc_ticker_start(&pool->resolver, RESOLVE_PERIOD_US, resolve, pool);
    return pool;
}

void rpc_pool_close(struct rpc_pool *pool) {
    rpc_ticker_stop(&pool->resolver);
    rpc_ticker_stop(&pool->keeper);
    while (pool->count > 0)
        replace(pool, pool->count - 1, NULL);
    see_off(pool);
    rpc_ticker_done(&pool->resolver);
    rpc_ticker_done(&pool->keeper);
    metric_set(pool->up, 0);
    (void)pthread_cond_destroy(&pool->came_up);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->name);
    free(pool);
}
