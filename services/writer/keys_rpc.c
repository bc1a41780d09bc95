// SPDX-License-Identifier: MIT
#include "common/auth/auth.h"
#include "common/log/log.h"
#include "services/writer/writer_rpc.h"
#include "services/writer/writer_sql.h"

#define KEY_ID 8 // random bytes of a key's id

struct new_key {
    char id[2 + 2 * KEY_ID + 1];
    char key[AUTH_KEY_TEXT];
    enum auth_scope scope;
};

static enum status create(struct writer_worker *worker, const Dunlin__V1__CreateKeyRequest *request,
    struct new_key *out, struct problem *why) {
    out->scope = AUTH_LINKS;
    if (!auth_owner_is_valid(request->owner))
        (void)problem_violate(why, "owner", "It must be 1 to %d of [0-9A-Za-z._-].", AUTH_OWNER_MAX);
    if (request->scope != NULL && !auth_scope_parse(request->scope, &out->scope))
        (void)problem_violate(why, "scope", "It must be \"links\" or \"operator\".");
    if (why->status != STATUS_OK)
        return why->status;
    uint8_t random[KEY_ID];
    crypto_random(random, sizeof random);
    out->id[0] = 'k';
    out->id[1] = '_';
    crypto_hex(out->id + 2, random, sizeof random);
    char hash[AUTH_HASH_HEX];
    auth_make_key(out->key, hash);
    return writer_sql_create_key(worker->db, rpc_context()->deadline_us, out->id, hash, request->owner,
        auth_scope_name(out->scope), why);
}

static void handle_create_key(Dunlin__V1__Keys_Service *service, const Dunlin__V1__CreateKeyRequest *request,
    Dunlin__V1__CreateKeyResponse_Closure closure, void *closure_data) {
    struct new_key made;
    struct problem why = {0};
    if (create(((struct keys_service *)service)->worker, request, &made, &why) != STATUS_OK) {
        RPC_REFUSE(closure, &why, closure_data);
        return;
    }
    log_info("made an API key", log_text("id", made.id), log_text("owner", request->owner),
        log_text("scope", auth_scope_name(made.scope)));
    Dunlin__V1__CreateKeyResponse answer = DUNLIN__V1__CREATE_KEY_RESPONSE__INIT;
    answer.id = made.id;
    answer.key = made.key;
    answer.owner = request->owner;
    answer.scope = (char *)auth_scope_name(made.scope);
    closure(&answer, closure_data);
}

void keys_rpc_init(struct keys_service *service, struct writer_worker *worker) {
    service->base = (Dunlin__V1__Keys_Service)DUNLIN__V1__KEYS__INIT(handle_);
    service->worker = worker;
}
