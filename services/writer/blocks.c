// SPDX-License-Identifier: MIT
#include "services/writer/blocks.h"
#include "common/log/log.h"
#include "common/rpc/rpc.h"
#include "dunlin/v1/keyrange.pb-c.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLAIM_TIMEOUT_US (2 * US_PER_S)
#define RETRY_MIN_US (100 * US_PER_MS)
#define RETRY_MAX_US (2 * US_PER_S)
#define TAKE_WAIT_US (500 * US_PER_MS)

struct block {
    uint64_t next;
    uint64_t end;
    uint64_t size;
    int64_t since_us; // when its first value was taken
};

struct blocks {
    struct blocks_options options;
    pthread_t thread;
    pthread_mutex_t lock; // guards what follows
    pthread_cond_t claim_wanted;
    pthread_cond_t claim_ended;
    struct block current;
    struct block spare;
    uint64_t size;      // of the next claim
    uint64_t known_end; // values below it were handed out, to us if to nobody else
    bool failing;       // the last claim failed…
    int64_t ready_at_us; // …because the slot's ceiling is not ready before then; 0: because of something else
    bool stopping;
    unsigned generation; // counts drops: a claim that was under way during one is not kept
};

static void wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_us) {
    struct timespec at = {.tv_sec = until_us / US_PER_S, .tv_nsec = until_us % US_PER_S * 1000};
    (void)pthread_cond_timedwait(condition, lock, &at);
}

static uint64_t values_in(const struct block *block) {
    return block->end - block->next;
}

static bool wants_claim(const struct blocks *blocks) {
    return values_in(&blocks->spare) == 0 && values_in(&blocks->current) <= blocks->current.size / 2;
}

static void show_left(struct blocks *blocks) {
    metric_set(blocks->options.left, (int64_t)(values_in(&blocks->current) + values_in(&blocks->spare)));
}

uint64_t blocks_next_size(uint64_t size, int64_t lasted_us, uint64_t size_min) {
    // Grows eightfold at most, so that one burst does not waste a year of codes in a restart; halves at most.
    if (lasted_us < 1)
        lasted_us = 1;
    double wanted = (double)size * (double)BLOCKS_LAST_US / (double)lasted_us;
    uint64_t next = wanted >= (double)size * 8 ? size * 8 : (uint64_t)wanted;
    if (next < size / 2)
        next = size / 2;
    if (next > BLOCKS_SIZE_MAX)
        next = BLOCKS_SIZE_MAX;
    return next < size_min ? size_min : next;
}

struct claim {
    bool done;
    uint64_t start, end;
};

static void claimed(const Dunlin__V1__Block *block, void *arg) {
    struct claim *claim = arg;
    if (block == NULL || block->end <= block->start)
        return;
    *claim = (struct claim){.done = true, .start = block->start, .end = block->end};
}

static struct claim ask(struct blocks *blocks, uint64_t size, uint64_t known_end) {
    Dunlin__V1__Known known = DUNLIN__V1__KNOWN__INIT;
    Dunlin__V1__Known *const words[] = {&known};
    known.slot = blocks->options.slot;
    known.has_counter = true;
    known.counter = known_end;
    Dunlin__V1__ClaimBlockRequest request = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    request.slot = blocks->options.slot;
    request.size = size;
    request.key_fingerprint.data = blocks->options.fingerprint;
    request.key_fingerprint.len = CODES_FINGERPRINT;
    request.n_known = known_end > 0;
    request.known = (Dunlin__V1__Known **)words;
    const struct rpc_context context = {.deadline_us = base_monotonic_us() + CLAIM_TIMEOUT_US};
    const struct rpc_context *before = rpc_context_swap(&context);
    struct claim claim = {0};
    dunlin__v1__keyrange__claim_block(blocks->options.keyrange, &request, claimed, &claim);
    (void)rpc_context_swap(before);
    return claim;
}

static void keep(struct blocks *blocks, const struct claim *claim) {
    struct block block = {.next = claim->start, .end = claim->end, .size = claim->end - claim->start};
    if (values_in(&blocks->current) == 0)
        blocks->current = block;
    else
        blocks->spare = block;
    metric_inc(blocks->options.claimed);
    show_left(blocks);
}

// Called with the lock held; lets go of it while it asks.
static void claim_once(struct blocks *blocks, int64_t *retry_us) {
    unsigned generation = blocks->generation;
    uint64_t size = blocks->size;
    uint64_t known_end = blocks->known_end;
    (void)pthread_mutex_unlock(&blocks->lock);
    struct claim claim = ask(blocks, size, known_end);
    struct problem why = *rpc_outcome();
    if (!claim.done && why.status == STATUS_OK)
        (void)problem_set(&why, STATUS_INTERNAL, "", "The block that came is empty.");
    if (!claim.done && strcmp(why.reason, "KEY_MISMATCH") == 0)
        blocks->options.mismatched(blocks->options.arg);
    (void)pthread_mutex_lock(&blocks->lock);
    if (claim.done && claim.end > blocks->known_end)
        blocks->known_end = claim.end;
    if (claim.done && generation == blocks->generation)
        keep(blocks, &claim);
    if (!claim.done && !blocks->failing)
        log_warn("no block could be claimed, trying again", log_text("status", status_name(why.status)),
            log_text("reason", why.reason), log_text("error", why.message));
    blocks->failing = !claim.done;
    blocks->ready_at_us = strcmp(why.reason, "CEILING_NOT_READY") == 0
                              ? base_monotonic_us() + (int64_t)why.retry_after_s * US_PER_S
                              : 0;
    (void)pthread_cond_broadcast(&blocks->claim_ended);
    if (claim.done) {
        *retry_us = RETRY_MIN_US;
        return;
    }
    int64_t until = base_monotonic_us() + *retry_us;
    while (!blocks->stopping && base_monotonic_us() < until)
        wait_until(&blocks->claim_wanted, &blocks->lock, until);
    *retry_us = *retry_us * 2 > RETRY_MAX_US ? RETRY_MAX_US : *retry_us * 2;
}

static void *run(void *arg) {
    struct blocks *blocks = arg;
    int64_t retry_us = RETRY_MIN_US;
    (void)pthread_mutex_lock(&blocks->lock);
    while (!blocks->stopping) {
        if (wants_claim(blocks))
            claim_once(blocks, &retry_us);
        else
            (void)pthread_cond_wait(&blocks->claim_wanted, &blocks->lock);
    }
    (void)pthread_mutex_unlock(&blocks->lock);
    return NULL;
}

struct blocks *blocks_start(const struct blocks_options *options) {
    struct blocks *blocks = base_calloc(1, sizeof *blocks);
    blocks->options = *options;
    blocks->size = options->size_min;
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&blocks->lock, NULL);
    (void)pthread_cond_init(&blocks->claim_wanted, &monotonic);
    (void)pthread_cond_init(&blocks->claim_ended, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    REQUIRE(pthread_create(&blocks->thread, NULL, run, blocks) == 0);
    return blocks;
}

void blocks_stop(struct blocks *blocks) {
    if (blocks == NULL)
        return;
    (void)pthread_mutex_lock(&blocks->lock);
    blocks->stopping = true;
    (void)pthread_cond_broadcast(&blocks->claim_wanted);
    (void)pthread_cond_broadcast(&blocks->claim_ended);
    (void)pthread_mutex_unlock(&blocks->lock);
    (void)pthread_join(blocks->thread, NULL);
    (void)pthread_cond_destroy(&blocks->claim_wanted);
    (void)pthread_cond_destroy(&blocks->claim_ended);
    (void)pthread_mutex_destroy(&blocks->lock);
    free(blocks);
}

// The spare becomes the current block; its size tells what to claim next.
static void turn_over(struct blocks *blocks) {
    if (blocks->current.since_us != 0)
        blocks->size = blocks_next_size(
            blocks->current.size, base_monotonic_us() - blocks->current.since_us, blocks->options.size_min);
    blocks->current = blocks->spare;
    blocks->spare = (struct block){0};
}

static enum status refuse(int64_t ready_at_us, struct problem *why) {
    int64_t wait_us = ready_at_us - base_monotonic_us();
    if (ready_at_us == 0)
        (void)problem_set(why, STATUS_UNAVAILABLE, "KEYRANGE_UNAVAILABLE",
            "No counter values are left and the keyrange service gives none.");
    else
        (void)problem_set(why, STATUS_UNAVAILABLE, "CEILING_NOT_READY",
            "This region's counter is being made ready for its first links.");
    if (why != NULL)
        why->retry_after_s = ready_at_us != 0 && wait_us > US_PER_S ? (uint32_t)(wait_us / US_PER_S) + 1 : 1;
    return STATUS_UNAVAILABLE;
}

enum status blocks_take(struct blocks *blocks, int64_t deadline_us, uint64_t *counter, struct problem *why) {
    int64_t until = base_monotonic_us() + TAKE_WAIT_US;
    if (deadline_us != 0 && deadline_us < until)
        until = deadline_us;
    (void)pthread_mutex_lock(&blocks->lock);
    if (values_in(&blocks->current) == 0)
        turn_over(blocks);
    while (values_in(&blocks->current) == 0 && !blocks->failing && !blocks->stopping &&
           base_monotonic_us() < until) {
        (void)pthread_cond_signal(&blocks->claim_wanted);
        wait_until(&blocks->claim_ended, &blocks->lock, until);
        if (values_in(&blocks->current) == 0)
            turn_over(blocks);
    }
    bool has = values_in(&blocks->current) > 0;
    int64_t ready_at_us = blocks->ready_at_us;
    if (has) {
        if (blocks->current.since_us == 0)
            blocks->current.since_us = base_monotonic_us();
        *counter = blocks->current.next++;
        show_left(blocks);
    }
    if (wants_claim(blocks) && !blocks->failing)
        (void)pthread_cond_signal(&blocks->claim_wanted);
    (void)pthread_mutex_unlock(&blocks->lock);
    return has ? STATUS_OK : refuse(ready_at_us, why);
}

void blocks_drop(struct blocks *blocks) {
    (void)pthread_mutex_lock(&blocks->lock);
    blocks->current = (struct block){0};
    blocks->spare = (struct block){0};
    blocks->generation++;
    show_left(blocks);
    (void)pthread_cond_signal(&blocks->claim_wanted);
    (void)pthread_mutex_unlock(&blocks->lock);
}

bool blocks_is_ready(struct blocks *blocks) {
    (void)pthread_mutex_lock(&blocks->lock);
    bool ready = values_in(&blocks->current) + values_in(&blocks->spare) > 0;
    (void)pthread_mutex_unlock(&blocks->lock);
    return ready;
}
