// SPDX-License-Identifier: MIT
#include "services/keyrange/keyrange_rpc.h"
#include "common/codes/codes.h"
#include "common/log/log.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include "services/keyrange/keyrange.h"
#include "services/keyrange/keyrange_sql.h"

#include <inttypes.h>
#include <stdlib.h>

#define BLOCK_MAX (UINT64_C(1) << 24)

// The generated base comes first: a handler's service pointer is this.
struct worker {
    Dunlin__V1__Keyrange_Service base;
    struct keyrange *keyrange;
    struct db *db;
    struct identity identity;
};

static enum status check(const Dunlin__V1__ClaimBlockRequest *request, struct problem *why) {
    if (request->slot >= KEYRANGE_SLOTS)
        (void)problem_violate(why, "slot", "It must be 0 to %d.", KEYRANGE_SLOTS - 1);
    if (request->size < 1 || request->size > BLOCK_MAX)
        (void)problem_violate(why, "size", "It must be 1 to %" PRIu64 ".", BLOCK_MAX);
    if (request->key_fingerprint.len != CODES_FINGERPRINT)
        (void)problem_violate(why, "key_fingerprint", "It must be %d bytes.", CODES_FINGERPRINT);
    return why->status;
}

static enum status claim(struct worker *worker, const Dunlin__V1__ClaimBlockRequest *request,
    struct keyrange_block *out, struct problem *why) {
    enum status status = check(request, why);
    if (status != STATUS_OK)
        return status;
    char fingerprint[2 * CODES_FINGERPRINT + 1];
    crypto_hex(fingerprint, request->key_fingerprint.data, CODES_FINGERPRINT);
    status = keyrange_sql_claim(
        worker->db, rpc_context()->deadline_us, request->slot, request->size, fingerprint, out, why);
    if (status != STATUS_OK)
        return status;
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
