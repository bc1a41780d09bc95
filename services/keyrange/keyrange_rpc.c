// SPDX-License-Identifier: MIT
#include "services/keyrange/keyrange_rpc.h"
#include "common/log/log.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include "services/keyrange/keyrange.h"
#include "services/keyrange/keyrange_sql.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MAX (UINT64_C(1) << 24)
#define COUNTERS_END UINT64_C(27732715023888) // codes of 8 characters included (docs/codes.md)

// The generated base comes first: a handler's service pointer is this.
struct worker {
    Dunlin__V1__Keyrange_Service base;
    struct keyrange *keyrange;
    struct db *db;
    struct identity identity;
};

// ---- what is known outside Postgres

static enum status check_slot(uint32_t slot, const char *field, struct problem *why) {
    if (slot >= KEYRANGE_SLOTS)
        (void)problem_violate(why, field, "It must be 0 to %d.", KEYRANGE_SLOTS - 1);
    return why->status;
}

static enum status check_fingerprint(const ProtobufCBinaryData *fingerprint, struct problem *why) {
    if (fingerprint->len != CODES_FINGERPRINT)
        (void)problem_violate(why, "key_fingerprint", "It must be %d bytes.", CODES_FINGERPRINT);
    return why->status;
}

static enum status read_words(
    Dunlin__V1__Known *const *words, size_t count, struct known *out, struct problem *why) {
    struct known known = {0};
    if (count > KEYRANGE_SLOTS)
        return problem_violate(why, "known", "There must be at most %d.", KEYRANGE_SLOTS);
    for (size_t i = 0; i < count; i++) {
        if (check_slot(words[i]->slot, "known.slot", why) != STATUS_OK)
            return why->status;
        if (words[i]->counter > COUNTERS_END || words[i]->ceiling > COUNTERS_END)
            return problem_violate(why, "known", "It must be at most %" PRIu64 ".", COUNTERS_END);
        known.counter[words[i]->slot] = words[i]->counter;
        known.ceiling[words[i]->slot] = words[i]->ceiling;
    }
    *out = known;
    return STATUS_OK;
}

// Compares the database with what its callers and we know of it, before it is believed.
static enum status recall(
    struct worker *worker, const uint8_t *fingerprint, struct known *known, struct problem *why) {
    static struct log_limit limit;
    memory_read(worker->keyrange->memory, fingerprint, known);
    if (known_is_empty(known))
        return STATUS_OK;
    bool jumped = false;
    int64_t suppressed;
    char hex[2 * CODES_FINGERPRINT + 1];
    crypto_hex(hex, fingerprint, CODES_FINGERPRINT);
    enum status status =
        keyrange_sql_recall(worker->db, rpc_context()->deadline_us, hex, known, &jumped, why);
    if (jumped) {
        metric_inc(worker->keyrange->jumped);
        log_critical("the database is behind what is remembered of it: all counters jumped");
    }
    if (strcmp(why->reason, "COUNTERS_FAR_BEHIND") == 0) {
        metric_inc(worker->keyrange->far_behind);
        if (log_allowed(&limit, &suppressed))
            log_critical("the database is too far behind what is remembered of it, nothing is handed out",
                log_int("suppressed", suppressed));
    }
    return status;
}

static void learn(struct worker *worker, const uint8_t *fingerprint, const struct known *known) {
    static struct log_limit limit;
    int64_t suppressed;
    if (memory_learn(worker->keyrange->memory, fingerprint, known))
        return;
    metric_inc(worker->keyrange->memory_failures);
    if (log_allowed(&limit, &suppressed))
        log_error("KEYRANGE_MEMORY could not be written", log_int("suppressed", suppressed));
}

// ---- ClaimBlock

static enum status check_claim(
    const Dunlin__V1__ClaimBlockRequest *request, struct known *known, struct problem *why) {
    (void)check_slot(request->slot, "slot", why);
    if (request->size < 1 || request->size > BLOCK_MAX)
        (void)problem_violate(why, "size", "It must be 1 to %" PRIu64 ".", BLOCK_MAX);
    (void)check_fingerprint(&request->key_fingerprint, why);
    return why->status == STATUS_OK ? read_words(request->known, request->n_known, known, why) : why->status;
}

static enum status claim(struct worker *worker, const Dunlin__V1__ClaimBlockRequest *request,
    struct keyrange_block *out, struct problem *why) {
    struct known known;
    const uint8_t *key = request->key_fingerprint.data;
    enum status status = check_claim(request, &known, why);
    if (status == STATUS_OK)
        status = recall(worker, key, &known, why);
    if (status != STATUS_OK)
        return status;
    char fingerprint[2 * CODES_FINGERPRINT + 1];
    crypto_hex(fingerprint, key, CODES_FINGERPRINT);
    status = keyrange_sql_claim(
        worker->db, rpc_context()->deadline_us, request->slot, request->size, fingerprint, out, why);
    if (strcmp(why->reason, "CEILING_NOT_READY") == 0)
        metric_inc(worker->keyrange->not_ready);
    if (status != STATUS_OK)
        return status;
    known.counter[out->slot] = out->end;
    learn(worker, key, &known);
    metric_inc(worker->keyrange->blocks[out->slot]);
    metric_count(worker->keyrange->values[out->slot], out->end - out->start);
    log_info("handed out a block", log_int("slot", out->slot), log_int("start", (int64_t)out->start),
        log_int("end", (int64_t)out->end));
    return STATUS_OK;
}

static void handle_claim_block(Dunlin__V1__Keyrange_Service *service,
    const Dunlin__V1__ClaimBlockRequest *request, Dunlin__V1__Block_Closure closure, void *closure_data) {
    struct keyrange_block block;
    struct problem why = {0};
    if (claim((struct worker *)service, request, &block, &why) != STATUS_OK) {
        RPC_REFUSE(closure, &why, closure_data);
        return;
    }
    Dunlin__V1__Block answer = DUNLIN__V1__BLOCK__INIT;
    answer.slot = block.slot;
    answer.start = block.start;
    answer.end = block.end;
    closure(&answer, closure_data);
}

// ---- GetCeilings

static enum status get_ceilings(struct worker *worker, const Dunlin__V1__GetCeilingsRequest *request,
    struct keyrange_ceilings *out, struct problem *why) {
    struct known known;
    enum status status = read_words(request->known, request->n_known, &known, why);
    if (status == STATUS_OK && (request->known_jumps > INT64_MAX / 2 || request->known_position > INT64_MAX))
        status = problem_violate(why, "known_jumps", "It must be below 2^62, and known_position below 2^63.");
    known.jumps = request->known_jumps;
    known.position = request->known_position;
    if (status == STATUS_OK && request->has_key_fingerprint)
        status = check_fingerprint(&request->key_fingerprint, why);
    if (status == STATUS_OK && request->has_key_fingerprint)
        status = recall(worker, request->key_fingerprint.data, &known, why);
    if (status == STATUS_OK)
        status = keyrange_sql_ceilings(worker->db, rpc_context()->deadline_us, out, why);
    if (status != STATUS_OK)
        return status;
    if (out->has_fingerprint)
        learn(worker, out->fingerprint, &out->now);
    for (unsigned slot = 0; slot < KEYRANGE_SLOTS; slot++)
        metric_set(worker->keyrange->ceilings[slot], (int64_t)out->now.ceiling[slot]);
    return STATUS_OK;
}

static void handle_get_ceilings(Dunlin__V1__Keyrange_Service *service,
    const Dunlin__V1__GetCeilingsRequest *request, Dunlin__V1__Ceilings_Closure closure, void *closure_data) {
    struct keyrange_ceilings ceilings;
    struct problem why = {0};
    if (get_ceilings((struct worker *)service, request, &ceilings, &why) != STATUS_OK) {
        RPC_REFUSE(closure, &why, closure_data);
        return;
    }
    Dunlin__V1__Ceiling slots[KEYRANGE_SLOTS];
    Dunlin__V1__Ceiling *list[KEYRANGE_SLOTS];
    for (unsigned slot = 0; slot < KEYRANGE_SLOTS; slot++) {
        slots[slot] = (Dunlin__V1__Ceiling)DUNLIN__V1__CEILING__INIT;
        slots[slot].slot = slot;
        slots[slot].counter = ceilings.now.counter[slot];
        slots[slot].ceiling = ceilings.now.ceiling[slot];
        list[slot] = &slots[slot];
    }
    Dunlin__V1__Ceilings answer = DUNLIN__V1__CEILINGS__INIT;
    answer.n_ceilings = KEYRANGE_SLOTS;
    answer.ceilings = list;
    answer.has_key_fingerprint = ceilings.has_fingerprint;
    answer.key_fingerprint = (ProtobufCBinaryData){.len = CODES_FINGERPRINT, .data = ceilings.fingerprint};
    answer.jumps = ceilings.now.jumps;
    answer.position = ceilings.now.position;
    closure(&answer, closure_data);
}

// ---- AdvanceCounter

static enum status advance(struct worker *worker, const Dunlin__V1__AdvanceCounterRequest *request,
    uint64_t *counter, struct problem *why) {
    (void)check_slot(request->slot, "slot", why);
    if (request->to > COUNTERS_END)
        (void)problem_violate(why, "to", "It must be at most %" PRIu64 ".", COUNTERS_END);
    if (why->status != STATUS_OK)
        return why->status;
    enum status status = keyrange_sql_advance(
        worker->db, rpc_context()->deadline_us, request->slot, request->to, request->force, counter, why);
    if (status == STATUS_OK)
        log_warn("a counter was advanced by hand", log_int("slot", request->slot),
            log_int("to", (int64_t)request->to), log_int("counter", (int64_t)*counter));
    return status;
}

static void handle_advance_counter(Dunlin__V1__Keyrange_Service *service,
    const Dunlin__V1__AdvanceCounterRequest *request, Dunlin__V1__AdvanceCounterResponse_Closure closure,
    void *closure_data) {
    struct problem why = {0};
    Dunlin__V1__AdvanceCounterResponse answer = DUNLIN__V1__ADVANCE_COUNTER_RESPONSE__INIT;
    answer.slot = request->slot;
    if (advance((struct worker *)service, request, &answer.counter, &why) != STATUS_OK)
        RPC_REFUSE(closure, &why, closure_data);
    else
        closure(&answer, closure_data);
}

// ---- life

void keyrange_rpc_open(void *arg, unsigned index, struct rpc_worker *out) {
    (void)index;
    struct keyrange *keyrange = arg;
    struct worker *worker = base_calloc(1, sizeof *worker);
    worker->base = (Dunlin__V1__Keyrange_Service)DUNLIN__V1__KEYRANGE__INIT(handle_);
    worker->keyrange = keyrange;
    struct db_options options = keyrange_db_options(keyrange, &worker->identity);
    worker->db = db_create(&options);
    *out = (struct rpc_worker){.services = {&worker->base.base}, .service_count = 1, .state = worker};
}

void keyrange_rpc_close(void *arg, struct rpc_worker *rpc_worker) {
    (void)arg;
    struct worker *worker = rpc_worker->state;
    db_free(worker->db);
    free(worker);
}
