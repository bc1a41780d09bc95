// SPDX-License-Identifier: MIT
#include "services/redirector/never_issued.h"
#include "common/log/log.h"
#include "common/rpc/rpc.h"
#include "dunlin/v1/keyrange.pb-c.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FETCH_TIMEOUT_US (2 * US_PER_S)
#define RETRY_US (500 * US_PER_MS)
#define ALARM_EVERY_US (60 * US_PER_S)

#define CONFIG_STRUCT never_issued_config
const struct config_field never_issued_config_fields[] = {NEVER_ISSUED_CONFIG(CONFIG_ROW)};
const size_t never_issued_config_count = ARRAY_LEN(never_issued_config_fields);

const struct metric_family never_issued_metrics[] = {NEVER_ISSUED_METRICS(METRIC_ROW)};
const size_t never_issued_metrics_count = ARRAY_LEN(never_issued_metrics);

// ---- the check

void never_issued_init(struct never_issued_state *state, const struct codes_key *key) {
    memset(state, 0, sizeof *state);
    state->has_key = key != NULL;
    if (key == NULL)
        return;
    state->key = *key;
    codes_fingerprint(key, state->fingerprint);
}

enum never_issued_answer never_issued_check(
    const struct never_issued_state *state, const char *code, int64_t now_us) {
    if (!codes_is_generated_shape(code, strlen(code)))
        return NEVER_ISSUED_LOOK_UP;
    // Read before the ceilings, which only grow: those that it vouches for are there, or larger ones.
    if (now_us >= atomic_load_explicit(&state->trusted_until_us, memory_order_acquire))
        return NEVER_ISSUED_UNKNOWN;
    unsigned slot;
    uint64_t counter;
    if (!codes_decode(&state->key, code, &slot, &counter) || slot == CODES_SLOT_OTHER)
        return NEVER_ISSUED_LOOK_UP;
    return counter >= atomic_load_explicit(&state->ceiling[slot], memory_order_relaxed)
               ? NEVER_ISSUED_NO_LOOKUP
               : NEVER_ISSUED_LOOK_UP;
}

bool never_issued_is_counters(const struct never_issued_state *state, const char *code) {
    unsigned slot;
    uint64_t counter;
    if (!codes_is_generated_shape(code, strlen(code)))
        return false;
    return !atomic_load(&state->key_is_right) || !codes_decode(&state->key, code, &slot, &counter) ||
           slot != CODES_SLOT_OTHER;
}

enum never_issued_verdict never_issued_take(
    struct never_issued_state *state, int64_t asked_us, const struct never_issued_news *news) {
    bool right = state->has_key && news->has_fingerprint &&
                 memcmp(news->fingerprint, state->fingerprint, CODES_FINGERPRINT) == 0;
    atomic_store(&state->key_is_right, right);
    if (!right) {
        atomic_store(&state->trusted_until_us, 0);
        return news->has_fingerprint ? NEVER_ISSUED_WRONG_KEY : NEVER_ISSUED_UNCLAIMED;
    }
    if (news->jumps > atomic_load(&state->jumps))
        atomic_store(&state->jumps, news->jumps);
    for (unsigned slot = 0; slot < NEVER_ISSUED_SLOTS; slot++)
        if (news->ceiling[slot] > atomic_load(&state->ceiling[slot]))
            atomic_store(&state->ceiling[slot], news->ceiling[slot]);
    atomic_store_explicit(&state->trusted_until_us, asked_us + NEVER_ISSUED_TRUST_US, memory_order_release);
    return NEVER_ISSUED_TRUSTED;
}

// ---- fetching

enum result { RESULT_OK, RESULT_FAILED, RESULT_UNCLAIMED, RESULT_WRONG_KEY, RESULT_COUNT };

struct never_issued {
    struct never_issued_state state;
    ProtobufCService *keyrange;
    int64_t every_us;
    // The thread's alone.
    uint64_t counter[NEVER_ISSUED_SLOTS]; // the largest seen: our word to a database that was put back
    uint64_t jumps;                       // of the last answer, with the position
    uint64_t position;
    enum result last;
    int64_t next_alarm_us;
    struct metric *results[RESULT_COUNT];
    bool running;
    pthread_t thread;
    pthread_mutex_t lock; // guards `stopping`
    pthread_cond_t wake;
    bool stopping;
};

struct answer {
    bool whole;
    struct never_issued_news news;
    uint64_t counter[NEVER_ISSUED_SLOTS];
    uint64_t position;
};

// Ceilings that lack a slot would make its links unissued ones: they count as no answer.
static void answered(const Dunlin__V1__Ceilings *ceilings, void *arg) {
    struct answer *answer = arg;
    unsigned seen = 0;
    if (ceilings == NULL)
        return;
    for (size_t i = 0; i < ceilings->n_ceilings; i++) {
        const Dunlin__V1__Ceiling *ceiling = ceilings->ceilings[i];
        if (ceiling->slot >= NEVER_ISSUED_SLOTS)
            return;
        seen |= 1U << ceiling->slot;
        answer->news.ceiling[ceiling->slot] = ceiling->ceiling;
        answer->counter[ceiling->slot] = ceiling->counter;
    }
    answer->news.has_fingerprint =
        ceilings->has_key_fingerprint && ceilings->key_fingerprint.len == CODES_FINGERPRINT;
    if (answer->news.has_fingerprint)
        memcpy(answer->news.fingerprint, ceilings->key_fingerprint.data, CODES_FINGERPRINT);
    answer->news.jumps = (int64_t)ceilings->jumps;
    answer->position = ceilings->position;
    answer->whole = seen == (1U << NEVER_ISSUED_SLOTS) - 1;
}

static void ask(struct never_issued *never_issued, struct answer *answer) {
    const struct never_issued_state *state = &never_issued->state;
    Dunlin__V1__Known words[NEVER_ISSUED_SLOTS];
    Dunlin__V1__Known *list[NEVER_ISSUED_SLOTS];
    for (unsigned slot = 0; slot < NEVER_ISSUED_SLOTS; slot++) {
        words[slot] = (Dunlin__V1__Known)DUNLIN__V1__KNOWN__INIT;
        words[slot].slot = slot;
        words[slot].has_counter = words[slot].has_ceiling = true;
        words[slot].counter = never_issued->counter[slot];
        words[slot].ceiling = atomic_load(&state->ceiling[slot]);
        list[slot] = &words[slot];
    }
    Dunlin__V1__GetCeilingsRequest request = DUNLIN__V1__GET_CEILINGS_REQUEST__INIT;
    request.has_key_fingerprint = true;
    request.key_fingerprint.data = (uint8_t *)state->fingerprint;
    request.key_fingerprint.len = CODES_FINGERPRINT;
    request.n_known = NEVER_ISSUED_SLOTS;
    request.known = list;
    request.has_known_jumps = request.has_known_position = never_issued->position > 0;
    request.known_jumps = never_issued->jumps;
    request.known_position = never_issued->position;
    const struct rpc_context context = {.deadline_us = base_monotonic_us() + FETCH_TIMEOUT_US};
    const struct rpc_context *before = rpc_context_swap(&context);
    dunlin__v1__keyrange__get_ceilings(never_issued->keyrange, &request, answered, answer);
    (void)rpc_context_swap(before);
}

static enum result fetch(struct never_issued *never_issued) {
    int64_t asked_us = base_monotonic_us();
    struct answer answer = {0};
    ask(never_issued, &answer);
    if (!answer.whole)
        return RESULT_FAILED;
    enum never_issued_verdict verdict = never_issued_take(&never_issued->state, asked_us, &answer.news);
    if (verdict == NEVER_ISSUED_UNCLAIMED)
        return RESULT_UNCLAIMED;
    if (verdict == NEVER_ISSUED_WRONG_KEY)
        return RESULT_WRONG_KEY;
    for (unsigned slot = 0; slot < NEVER_ISSUED_SLOTS; slot++)
        if (answer.counter[slot] > never_issued->counter[slot])
            never_issued->counter[slot] = answer.counter[slot];
    never_issued->jumps = (uint64_t)answer.news.jumps;
    never_issued->position = answer.position;
    return RESULT_OK;
}

static void tell(struct never_issued *never_issued, enum result result) {
    bool changed = result != never_issued->last;
    never_issued->last = result;
    metric_inc(never_issued->results[result]);
    if (result == RESULT_WRONG_KEY && (changed || base_monotonic_us() >= never_issued->next_alarm_us)) {
        never_issued->next_alarm_us = base_monotonic_us() + ALARM_EVERY_US;
        log_critical("PERMUTATION_KEY is not the counters' key: every code is looked up");
    } else if (changed && result == RESULT_OK) {
        log_info("the ceilings are known: codes that were never issued are not looked up");
    } else if (changed && result == RESULT_FAILED) {
        log_warn("the ceilings can't be fetched; without them every code is looked up",
            log_text("reason", rpc_outcome()->reason), log_text("error", rpc_outcome()->message));
    }
}

static void *run(void *arg) {
    struct never_issued *never_issued = arg;
    (void)pthread_mutex_lock(&never_issued->lock);
    while (!never_issued->stopping) {
        (void)pthread_mutex_unlock(&never_issued->lock);
        int64_t next_us = base_monotonic_us();
        enum result result = fetch(never_issued);
        tell(never_issued, result);
        next_us += result == RESULT_OK || result == RESULT_WRONG_KEY ? never_issued->every_us : RETRY_US;
        const struct timespec at = {.tv_sec = next_us / US_PER_S, .tv_nsec = next_us % US_PER_S * 1000};
        (void)pthread_mutex_lock(&never_issued->lock);
        while (!never_issued->stopping && base_monotonic_us() < next_us)
            (void)pthread_cond_timedwait(&never_issued->wake, &never_issued->lock, &at);
    }
    (void)pthread_mutex_unlock(&never_issued->lock);
    return NULL;
}

// ---- life

static int64_t is_trusted(void *arg) {
    const struct never_issued_state *state = arg;
    return base_monotonic_us() < atomic_load(&state->trusted_until_us);
}

static void start_thread(struct never_issued *never_issued) {
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&never_issued->lock, NULL);
    (void)pthread_cond_init(&never_issued->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    never_issued->running = true;
    REQUIRE(pthread_create(&never_issued->thread, NULL, run, never_issued) == 0);
}

struct never_issued *never_issued_start(
    ProtobufCService *keyrange, const struct codes_key *key, int64_t every_us) {
    static const char *const results[] = {"ok", "failed", "unclaimed", "wrong_key"};
    struct never_issued *never_issued = base_calloc(1, sizeof *never_issued);
    never_issued_init(&never_issued->state, key);
    never_issued->keyrange = keyrange;
    never_issued->every_us = every_us;
    never_issued->last = RESULT_UNCLAIMED;
    for (size_t i = 0; i < RESULT_COUNT; i++)
        never_issued->results[i] = metric_add(&never_issued_metrics[NEVER_ISSUED_METRIC_FETCHES], results[i]);
    metric_add_read(&never_issued_metrics[NEVER_ISSUED_METRIC_TRUSTED], is_trusted, &never_issued->state);
    if (key != NULL)
        start_thread(never_issued);
    else
        log_warn("without PERMUTATION_KEY every code is looked up");
    return never_issued;
}

void never_issued_stop(struct never_issued *never_issued) {
    if (never_issued == NULL)
        return;
    if (never_issued->running) {
        (void)pthread_mutex_lock(&never_issued->lock);
        never_issued->stopping = true;
        (void)pthread_cond_signal(&never_issued->wake);
        (void)pthread_mutex_unlock(&never_issued->lock);
        (void)pthread_join(never_issued->thread, NULL);
        (void)pthread_cond_destroy(&never_issued->wake);
        (void)pthread_mutex_destroy(&never_issued->lock);
    }
    free(never_issued);
}

const struct never_issued_state *never_issued_state(const struct never_issued *never_issued) {
    return &never_issued->state;
}
