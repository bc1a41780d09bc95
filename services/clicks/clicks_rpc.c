// SPDX-License-Identifier: MIT
#include "services/clicks/clicks_rpc.h"

#include "common/auth/auth.h"
#include "common/codes/codes.h"
#include "common/instant/instant.h"
#include "common/log/log.h"
#include "dunlin/v1/clicks.pb-c.h"
#include "services/clicks/clicks.h"
#include "services/clicks/clicks_sql.h"

#include <stdlib.h>
#include <string.h>

// 0001-01-01 and 9999-12-31: the days that have a text.
#define DAY_MIN (-719162)
#define DAY_MAX 2932896

// The generated base comes first: a handler's service pointer is this.
struct worker {
    Dunlin__V1__Clicks_Service base;
    struct db *db;
};

static bool has_text(int32_t day, const char *field, struct problem *why) {
    if (day >= DAY_MIN && day <= DAY_MAX)
        return true;
    (void)problem_violate(why, field, "A day must lie in the years 1 to 9999.");
    return false;
}

enum status clicks_span_resolve(struct clicks_span *span, int32_t today, struct problem *why) {
    if ((span->has_from && !has_text(span->from, "from", why)) ||
        (span->has_to && !has_text(span->to, "to", why)))
        return why->status;
    int32_t to = span->has_to ? span->to : today;
    int32_t from = span->has_from ? span->from : to - (CLICKS_DAYS_DEFAULT - 1);
    if (from < DAY_MIN)
        from = DAY_MIN;
    if (from > to)
        return problem_violate(why, "from", "The first day must not be after the last one.");
    if (to - from >= CLICKS_DAYS_MAX)
        return problem_violate(why, span->has_to ? "to" : "from", "At most %d days.", CLICKS_DAYS_MAX);
    span->from = from;
    span->to = to;
    return STATUS_OK;
}

static enum status no_link(struct problem *why) {
    return problem_set(why, STATUS_NOT_FOUND, "LINK_NOT_FOUND", "There is no such link of yours.");
}

// A query may be asked again, so an unknown outcome is no more than no answer.
static enum status explain(struct db *db, enum status status, struct problem *why) {
    log_error("clicks can't be read", log_text("status", status_name(status)),
        log_text("error", db_error_text(db)));
    if (status == STATUS_INTERNAL)
        return problem_set(why, status, "", "Postgres refused the query.");
    if (status == STATUS_DEADLINE_EXCEEDED)
        return problem_set(why, status, "", "Postgres did not answer in time.");
    return problem_set(why, STATUS_UNAVAILABLE, "POSTGRES_UNAVAILABLE", "Postgres can't be asked now.");
}

static enum status find(struct db *db, const Dunlin__V1__GetClicksRequest *request, struct clicks_span *span,
    struct db_rows **out, struct problem *why) {
    int64_t deadline_us = rpc_context()->deadline_us;
    struct auth_caller caller;
    enum status status = auth_check(db, deadline_us, &caller, why);
    if (status == STATUS_OK)
        status = clicks_span_resolve(span, instant_day(base_wall_us()), why);
    if (status != STATUS_OK)
        return status;
    if (!codes_is_plausible(request->code, strlen(request->code)))
        return no_link(why);
    const char *owner = caller.scope == AUTH_OPERATOR ? NULL : caller.owner;
    status = clicks_sql_get(db, deadline_us, request->code, owner, span->from, span->to, out);
    if (status != STATUS_OK)
        return explain(db, status, why);
    if (db_rows_count(*out) > 0)
        return STATUS_OK;
    db_rows_free(*out);
    return no_link(why);
}

static void answer(const Dunlin__V1__GetClicksRequest *request, const struct clicks_span *span,
    const struct db_rows *rows, Dunlin__V1__GetClicksResponse_Closure closure, void *closure_data) {
    Dunlin__V1__GetClicksResponse response = DUNLIN__V1__GET_CLICKS_RESPONSE__INIT;
    size_t count = db_rows_count(rows);
    Dunlin__V1__DayClicks *days = base_calloc(count, sizeof *days);
    Dunlin__V1__DayClicks **pointers = base_calloc(count, sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        dunlin__v1__day_clicks__init(&days[i]);
        days[i].day = (int32_t)db_int64(rows, i, 0);
        days[i].clicks = (uint64_t)db_int64(rows, i, 1);
        response.total += days[i].clicks;
        pointers[i] = &days[i];
    }
    response.code = request->code;
    response.from_day = span->from;
    response.to_day = span->to;
    response.lifetime = (uint64_t)db_int64(rows, 0, 2);
    response.n_days = count;
    response.days = pointers;
    closure(&response, closure_data);
    free(pointers);
    free(days);
}

static void get_clicks(Dunlin__V1__Clicks_Service *service, const Dunlin__V1__GetClicksRequest *request,
    Dunlin__V1__GetClicksResponse_Closure closure, void *closure_data) {
    struct worker *worker = (struct worker *)service;
    struct clicks_span span = {
        .has_from = request->has_from_day,
        .has_to = request->has_to_day,
        .from = request->from_day,
        .to = request->to_day,
    };
    struct db_rows *rows = NULL;
    struct problem why = {0};
    if (find(worker->db, request, &span, &rows, &why) != STATUS_OK) {
        RPC_REFUSE(closure, &why, closure_data);
        return;
    }
    answer(request, &span, rows, closure, closure_data);
    db_rows_free(rows);
}

void clicks_rpc_open(void *arg, unsigned index, struct rpc_worker *out) {
    (void)index;
    const struct clicks *clicks = arg;
    struct worker *worker = base_calloc(1, sizeof *worker);
    worker->base = (Dunlin__V1__Clicks_Service)DUNLIN__V1__CLICKS__INIT();
    worker->base.get_clicks = get_clicks;
    const struct db_options options = clicks_db_options(&clicks->config);
    worker->db = db_create(&options);
    *out = (struct rpc_worker){.services = {&worker->base.base}, .service_count = 1, .state = worker};
}

void clicks_rpc_close(void *arg, struct rpc_worker *rpc_worker) {
    (void)arg;
    struct worker *worker = rpc_worker->state;
    db_free(worker->db);
    free(worker);
}
