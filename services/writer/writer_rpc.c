// SPDX-License-Identifier: MIT
#include "services/writer/writer_rpc.h"
#include "common/auth/auth.h"
#include "services/writer/create.h"
#include "services/writer/writer_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REDIS_TIMEOUT_US (100 * US_PER_MS)

static struct writer_worker *worker_of(Dunlin__V1__Writer_Service *service) {
    return ((struct writer_service *)service)->worker;
}

// ---- what create_link() needs

static enum status take(void *arg, int64_t deadline_us, uint64_t *counter, struct problem *why) {
    struct writer_worker *worker = arg;
    return blocks_take(worker->writer->blocks, deadline_us, counter, why);
}

static void drop(void *arg) {
    struct writer_worker *worker = arg;
    blocks_drop(worker->writer->blocks);
}

static enum status insert(void *arg, int64_t deadline_us, const struct new_link *link,
    enum create_outcome *outcome, struct stored_link *made, struct problem *why) {
    struct writer_worker *worker = arg;
    return writer_sql_create(worker->db, deadline_us, link, outcome, made, why);
}

static void collided(void *arg) {
    struct writer_worker *worker = arg;
    metric_inc(worker->writer->collisions_range);
}

static void asked_again(void *arg) {
    struct writer_worker *worker = arg;
    metric_inc(worker->writer->unknown);
}

// ---- handlers

static enum status create(struct writer_worker *worker, const Dunlin__V1__CreateLinkRequest *request,
    struct stored_link *made, struct problem *why) {
    struct writer *writer = worker->writer;
    int64_t deadline_us = rpc_context()->deadline_us;
    struct auth_caller caller;
    enum status status = auth_check(worker->db, deadline_us, &caller, why);
    if (status != STATUS_OK)
        return status;
    const struct create_means means = {
        .rules = &writer->rules,
        .key = &writer->key,
        .slot = (unsigned)writer->config.slot,
        .arg = worker,
        .take = take,
        .drop = drop,
        .insert = insert,
        .collided = collided,
        .asked_again = asked_again,
    };
    const struct create_wish wish = {
        .owner = caller.owner,
        .url = (const char *)request->url.data,
        .url_len = request->url.len,
        .alias = request->alias,
        .has_expiry = request->has_expires_at_us,
        .expires_at = request->expires_at_us,
    };
    status = create_link(&means, deadline_us, &wish, made, why);
    if (status != STATUS_OK)
        return status;
    metric_inc(request->alias != NULL ? writer->created_alias : writer->created_range);
    if (!writer_cache_put(worker->cache, worker->identity.jumps, made))
        metric_inc(writer->cache_failures);
    return STATUS_OK;
}

static enum status get(struct writer_worker *worker, const Dunlin__V1__GetLinkRequest *request,
    struct stored_link *out, struct problem *why) {
    struct auth_caller caller;
    int64_t deadline_us = rpc_context()->deadline_us;
    enum status status = auth_check(worker->db, deadline_us, &caller, why);
    if (status != STATUS_OK)
        return status;
    if (!codes_is_plausible(request->code, strlen(request->code)))
        return problem_set(why, STATUS_NOT_FOUND, "LINK_NOT_FOUND", "There is no such link of yours.");
    const char *owner = caller.scope == AUTH_OPERATOR ? NULL : caller.owner;
    return writer_sql_get(worker->db, deadline_us, request->code, owner, out, why);
}

// Answers with the link, which is released, or fails.
static void answer_link(struct writer_worker *worker, enum status status, struct stored_link *link,
    const struct problem *why, Dunlin__V1__Link_Closure closure, void *closure_data) {
    if (status != STATUS_OK) {
        RPC_REFUSE(closure, why, closure_data);
        return;
    }
    char short_url[sizeof worker->writer->public_url + 1 + CODES_TEXT];
    (void)snprintf(short_url, sizeof short_url, "%s/%s", worker->writer->public_url, link->code);
    Dunlin__V1__Link answer = DUNLIN__V1__LINK__INIT;
    answer.code = link->code;
    answer.short_url = short_url;
    answer.has_url = link->url != NULL;
    answer.url.data = (uint8_t *)link->url;
    answer.url.len = link->url_len;
    answer.owner = link->owner;
    answer.state = (Dunlin__V1__LinkState)link->state;
    answer.source = link->source;
    answer.version = link->version;
    answer.created_at_us = link->created_at;
    answer.updated_at_us = link->updated_at;
    answer.has_expires_at_us = link->has_expiry;
    answer.expires_at_us = link->expires_at;
    closure(&answer, closure_data);
    stored_link_done(link);
}

static void handle_create_link(Dunlin__V1__Writer_Service *service,
    const Dunlin__V1__CreateLinkRequest *request, Dunlin__V1__Link_Closure closure, void *closure_data) {
    struct stored_link link;
    struct problem why = {0};
    enum status status = create(worker_of(service), request, &link, &why);
    answer_link(worker_of(service), status, &link, &why, closure, closure_data);
}

static void handle_get_link(Dunlin__V1__Writer_Service *service, const Dunlin__V1__GetLinkRequest *request,
    Dunlin__V1__Link_Closure closure, void *closure_data) {
    struct stored_link link;
    struct problem why = {0};
    enum status status = get(worker_of(service), request, &link, &why);
    answer_link(worker_of(service), status, &link, &why, closure, closure_data);
}

static void handle_who_am_i(Dunlin__V1__Writer_Service *service, const Dunlin__V1__WhoAmIRequest *request,
    Dunlin__V1__WhoAmIResponse_Closure closure, void *closure_data) {
    (void)request;
    struct auth_caller caller;
    struct problem why = {0};
    if (auth_check(worker_of(service)->db, rpc_context()->deadline_us, &caller, &why) != STATUS_OK) {
        RPC_REFUSE(closure, &why, closure_data);
        return;
    }
    Dunlin__V1__WhoAmIResponse answer = DUNLIN__V1__WHO_AM_IRESPONSE__INIT;
    answer.owner = caller.owner;
    answer.scope = (char *)auth_scope_name(caller.scope);
    closure(&answer, closure_data);
}

static void handle_decode_code(Dunlin__V1__Writer_Service *service,
    const Dunlin__V1__DecodeCodeRequest *request, Dunlin__V1__DecodeCodeResponse_Closure closure,
    void *closure_data) {
    struct problem why = {0};
    Dunlin__V1__DecodeCodeResponse answer = DUNLIN__V1__DECODE_CODE_RESPONSE__INIT;
    answer.code = request->code;
    if (codes_decode(&worker_of(service)->writer->key, request->code, &answer.slot, &answer.counter)) {
        closure(&answer, closure_data);
        return;
    }
    (void)problem_violate(&why, "code", "It must be shaped like a generated code: %d or %d of [0-9A-Za-z].",
        CODES_MIN_LEN, CODES_MAX_LEN);
    RPC_REFUSE(closure, &why, closure_data);
}

void writer_rpc_open(void *arg, unsigned index, struct rpc_worker *out) {
    (void)index;
    struct writer *writer = arg;
    struct writer_worker *worker = base_calloc(1, sizeof *worker);
    worker->writer = writer;
    struct db_options options = writer_db_options(writer, &worker->identity);
    worker->db = db_create(&options);
    if (writer->config.redis_url[0] != '\0')
        REQUIRE(cache_create(writer->config.redis_url, REDIS_TIMEOUT_US, &worker->cache, NULL) == STATUS_OK);
    worker->links.base = (Dunlin__V1__Writer_Service)DUNLIN__V1__WRITER__INIT(handle_);
    worker->links.worker = worker;
    keys_rpc_init(&worker->keys, worker);
    *out = (struct rpc_worker){
        .services = {&worker->links.base.base, &worker->keys.base.base},
        .service_count = 2,
        .state = worker,
    };
}

void writer_rpc_close(void *arg, struct rpc_worker *rpc_worker) {
    (void)arg;
    struct writer_worker *worker = rpc_worker->state;
    cache_free(worker->cache);
    db_free(worker->db);
    free(worker);
}
