// SPDX-License-Identifier: MIT
#include "services/redirector/http.h"
#include "common/crypto/crypto.h"
#include "common/web/web.h"
#include "services/redirector/gateway.h"
#include "services/redirector/pages.h"
#include "services/redirector/redirect.h"
#include "services/redirector/route.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API_BODY_MAX ((size_t)64 * 1024)
#define REQUEST_ID_MAX 64
#define STATUS_MAX 600

struct http {
    struct http_options options;
    struct web *web;
    bool quiesced;
    uint64_t next_id;                   // of a request that brings none
    struct metric *answers[STATUS_MAX]; // by status, made when first needed
    struct metric *api_answers[STATUS_MAX];
    struct metric *cached_latency;
    struct metric *latency[2]; // by link_source
    struct metric *never_issued;
    struct metric *recorded;
    struct metric *lost;
    // Jobs come back from the gateway's threads through here.
    struct loop_wake *wake;
    pthread_mutex_t lock; // guards the list
    struct gateway_job *finished;
    size_t at_gateway; // the loop's thread alone
};

// ---- what every answer gets

static bool is_request_id(const char *text) {
    size_t len = text == NULL ? 0 : strlen(text);
    return len >= 1 && len <= REQUEST_ID_MAX &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static void request_id(struct http *http, const struct web_request *request, char out[REQUEST_ID_MAX + 1]) {
    const char *given = web_header(request, "X-Request-Id");
    if (is_request_id(given))
        (void)snprintf(out, REQUEST_ID_MAX + 1, "%s", given);
    else
        // A random start and an odd step: unique within a worker, and no two workers' runs meet in practice.
        (void)snprintf(out, REQUEST_ID_MAX + 1, "%016" PRIx64, http->next_id += UINT64_C(0x9e3779b97f4a7c15));
}

static void count(struct metric **series, enum redirector_metric family, int status) {
    if (status < 0 || status >= STATUS_MAX)
        return;
    if (series[status] == NULL) {
        char label[16];
        (void)snprintf(label, sizeof label, "%d", status);
        series[status] = metric_add(&redirector_metrics[family], label);
    }
    metric_inc(series[status]);
}

static void send_as(
    struct http *http, struct answer *answer, struct web_request *request, bool api, const char *id) {
    answer_header(answer, "X-Request-Id", id);
    count(api ? http->api_answers : http->answers, api ? REDIRECTOR_METRIC_API : REDIRECTOR_METRIC_ANSWERS,
        answer->status);
    answer_send(answer, request);
    answer_done(answer);
}

static void send(struct http *http, struct answer *answer, struct web_request *request, bool api) {
    char id[REQUEST_ID_MAX + 1];
    request_id(http, request, id);
    send_as(http, answer, request, api, id);
}

static void send_error(
    struct http *http, struct web_request *request, bool api, int status, const char *detail) {
    struct answer answer;
    struct problem why = {0};
    (void)snprintf(why.message, sizeof why.message, "%s", detail);
    answer_init(&answer, status);
    answer.close = web_refusal(request) != 0;
    if (api)
        answer_problem(&answer, status, &why);
    else
        answer_error(&answer, status, &why, web_header(request, "Accept"));
    send(http, &answer, request, api);
}

// ---- links

struct visit {
    struct lookup_waiter waiter; // first
    struct http *http;
    struct web_request *request;
    int64_t since_us;
};

static void record_click(struct http *http, int64_t now, const char *code) {
    if (click_ring_push(http->options.ring, now, code))
        metric_inc(http->recorded);
    else
        metric_inc(http->lost);
}

static bool is_prefetch(const struct web_request *request) {
    return redirect_is_prefetch(web_header(request, "Sec-Purpose"), web_header(request, "Purpose"),
        web_header(request, "X-Purpose"), web_header(request, "X-Moz"));
}

static void answer_link(struct http *http, struct web_request *request, const struct cached_link *link) {
    struct answer answer;
    answer_init(&answer, 500);
    int64_t now = base_wall_us();
    bool prefetch = is_prefetch(request);
    bool redirects = redirect_answer(&answer, link, now, prefetch, web_header(request, "Accept"));
    bool counts = redirects && !prefetch && web_method(request) == WEB_GET;
    send(http, &answer, request, false);
    if (counts)
        record_click(http, now, link->code);
}

static void found(struct lookup_waiter *waiter, enum status status, const struct cached_link *link,
    enum link_source source) {
    struct visit *visit = (struct visit *)waiter;
    struct http *http = visit->http;
    metric_observe_us(http->latency[source], base_monotonic_us() - visit->since_us);
    if (status == STATUS_OK)
        answer_link(http, visit->request, link);
    else
        send_error(http, visit->request, false,
            status == STATUS_NOT_FOUND   ? 404
            : status == STATUS_DATA_LOSS ? 500
                                         : 503,
            "");
    free(visit);
}

static void fetch_link(struct http *http, struct web_request *request, const char *code, int64_t now_us) {
    struct visit *visit = base_calloc(1, sizeof *visit);
    *visit = (struct visit){.waiter.done = found, .http = http, .request = request, .since_us = now_us};
    lookup_find(http->options.lookup, code, now_us, &visit->waiter);
}

static bool was_never_issued(struct http *http, const char *code, int64_t now_us) {
    const struct never_issued_state *state = never_issued_state(http->options.redirector->never_issued);
    if (never_issued_check(state, code, now_us) != NEVER_ISSUED_NO_LOOKUP)
        return false;
    metric_inc(http->never_issued);
    return true;
}

static void visit_link(struct http *http, struct web_request *request, const char *code) {
    int64_t now_us = base_monotonic_us();
    const struct cached_link *link;
    switch (lookup_cached(http->options.lookup, code, now_us, &link)) {
    case LOOKUP_FOUND:
        answer_link(http, request, link);
        metric_observe_us(http->cached_latency, base_monotonic_us() - now_us);
        break;
    case LOOKUP_ABSENT:
        send_error(http, request, false, 404, "");
        break;
    default:
        if (was_never_issued(http, code, now_us))
            send_error(http, request, false, 404, "");
        else
            fetch_link(http, request, code, now_us);
    }
}

// ---- the API

struct exchange {
    struct gateway_job job; // first
    struct http *http;
    struct web_request *request;
};

static void free_exchange(struct exchange *exchange) {
    api_request_done(&exchange->job.request);
    free(exchange);
}

static void job_done(struct gateway_job *job) {
    struct http *http = ((struct exchange *)job)->http;
    (void)pthread_mutex_lock(&http->lock);
    job->next = http->finished;
    http->finished = job;
    // Under the lock, so that http_close() can't free the wake in between.
    loop_wake_send(http->wake);
    (void)pthread_mutex_unlock(&http->lock);
}

static void finish_exchange(struct http *http, struct exchange *exchange) {
    struct answer *answer = &exchange->job.answer;
    if (answer->status == API_GO_ON) {
        answer_done(answer);
        web_go_on(exchange->request);
    } else {
        answer->close = exchange->job.request.refusal != 0;
        send_as(http, answer, exchange->request, true, exchange->job.request.request_id);
    }
    free_exchange(exchange);
}

static void collect(void *arg) {
    struct http *http = arg;
    (void)pthread_mutex_lock(&http->lock);
    struct gateway_job *job = http->finished;
    http->finished = NULL;
    (void)pthread_mutex_unlock(&http->lock);
    while (job != NULL) {
        struct exchange *exchange = (struct exchange *)job;
        job = job->next;
        http->at_gateway--;
        finish_exchange(http, exchange);
    }
}

static char *copy_text(const char *text) {
    return text == NULL ? NULL : base_strdup(text);
}

static void call_api(
    struct http *http, struct web_request *request, const struct route *route, bool awaits_body) {
    struct exchange *exchange = base_calloc(1, sizeof *exchange);
    exchange->http = http;
    exchange->request = request;
    exchange->job.done = job_done;
    struct api_request *api = &exchange->job.request;
    char id[REQUEST_ID_MAX + 1];
    request_id(http, request, id);
    *api = (struct api_request){
        .route = *route,
        .method = web_method(request),
        .refusal = web_refusal(request),
        .awaits_body = awaits_body,
        .refusal_detail = copy_text(web_refusal_detail(request)),
        .request_id = base_strdup(id),
        .authorization = copy_text(web_header(request, "Authorization")),
        .content_type = copy_text(web_header(request, "Content-Type")),
        .if_none_match = copy_text(web_header(request, "If-None-Match")),
        .query = copy_text(web_query(request)),
    };
    const char *body = web_body(request, &api->body_len);
    api->body = body == NULL ? NULL : base_strndup(body, api->body_len);
    answer_init(&exchange->job.answer, 200);
    if (gateway_submit(http->options.redirector->gateway, &exchange->job)) {
        http->at_gateway++;
        return;
    }
    answer_done(&exchange->job.answer);
    free_exchange(exchange);
    send_error(http, request, true, 503, "Too many API requests are waiting.");
}

// ---- every request

static void send_options(struct http *http, struct web_request *request, enum route_kind kind) {
    struct answer answer;
    answer_init(&answer, 204);
    answer_header(&answer, "Allow", route_allow(kind));
    send(http, &answer, request, route_is_api(kind));
}

static void send_not_offered(struct http *http, struct web_request *request, enum route_kind kind) {
    struct answer answer;
    struct problem why = {0};
    answer_init(&answer, 405);
    answer.close = web_refusal(request) != 0;
    answer_header(&answer, "Allow", route_allow(kind));
    if (route_is_api(kind))
        answer_problem(&answer, 405, &why);
    else
        answer_error(&answer, 405, &why, web_header(request, "Accept"));
    send(http, &answer, request, route_is_api(kind));
}

// The order of docs/http-api.md: malformed, too long, unknown or unoffered method, then what the resource
// says.
static void respond(struct http *http, struct web_request *request, bool awaits_body) {
    enum web_method method = web_method(request);
    int refusal = web_refusal(request);
    struct route route;
    route_parse(web_path(request), &route);
    bool api = route_is_api(route.kind);
    struct answer page;
    if (refusal != 0 && refusal != 413)
        send_error(http, request, api, refusal, web_refusal_detail(request));
    else if (!redirector_serves_host(http->options.redirector, web_host(request)))
        send_error(http, request, api, 421, "");
    else if (method == WEB_CONNECT)
        send_not_offered(http, request, ROUTE_NONE); // its target is no path
    else if (method == WEB_OTHER)
        send_error(http, request, api, 501, "");
    else if (route.kind == ROUTE_API_NONE)
        send_error(http, request, true, 404, "There is no such resource.");
    else if (!route_offers(route.kind, method))
        send_not_offered(http, request, route.kind);
    else if (method == WEB_OPTIONS)
        send_options(http, request, route.kind);
    else if (api)
        call_api(http, request, &route, awaits_body && method == WEB_POST);
    else if (refusal != 0)
        send_error(http, request, false, refusal, web_refusal_detail(request));
    else if (route.kind == ROUTE_CODE)
        visit_link(http, request, route.code);
    else {
        answer_init(&page, 404);
        if (pages_answer(&page, route.kind)) {
            send(http, &page, request, false);
        } else {
            answer_done(&page);
            send_error(http, request, false, 404, "");
        }
    }
}

static void handle(void *arg, struct web_request *request) {
    respond(arg, request, false);
}

// A client that holds its body back is told at once what its head alone decides.
static void handle_expecting(void *arg, struct web_request *request) {
    respond(arg, request, true);
}

// ---- life

enum status http_open(const struct http_options *options, struct http **out, struct problem *why) {
    struct http *http = base_calloc(1, sizeof *http);
    http->options = *options;
    http->next_id = crypto_random_u64();
    http->cached_latency = metric_add(&redirector_metrics[REDIRECTOR_METRIC_LATENCY], "memory");
    http->latency[LINK_FROM_REDIS] = metric_add(&redirector_metrics[REDIRECTOR_METRIC_LATENCY], "redis");
    http->latency[LINK_FROM_POSTGRES] =
        metric_add(&redirector_metrics[REDIRECTOR_METRIC_LATENCY], "postgres");
    http->never_issued = metric_add(&never_issued_metrics[NEVER_ISSUED_METRIC_ANSWERS]);
    http->recorded = metric_add(&redirector_metrics[REDIRECTOR_METRIC_CLICKS_RECORDED]);
    http->lost = metric_add(&redirector_metrics[REDIRECTOR_METRIC_CLICKS_LOST], "ring_full");
    const struct redirector *redirector = options->redirector;
    const struct web_options web = {
        .loop = options->loop,
        .address = redirector->address,
        .port = redirector->port,
        .shared = true,
        .body_max = API_BODY_MAX,
        .connections_max = (size_t)redirector->config.connections,
        .handler = handle,
        .expecting = handle_expecting,
        .arg = http,
    };
    enum status status = web_open(&web, &http->web, why);
    if (status != STATUS_OK) {
        free(http);
        return status;
    }
    (void)pthread_mutex_init(&http->lock, NULL);
    http->wake = loop_wake_create(options->loop, collect, http);
    *out = http;
    return STATUS_OK;
}

void http_drain(struct http *http) {
    web_drain(http->web);
}

void http_quiesce(struct http *http) {
    if (!http->quiesced)
        web_quiesce(http->web);
    http->quiesced = true;
}

size_t http_in_flight(const struct http *http) {
    return web_in_flight(http->web);
}

void http_close(struct http *http) {
    if (http == NULL)
        return;
    // The gateway's RPCs end by their deadlines.
    while (http->at_gateway > 0) {
        const struct timespec pause = {.tv_nsec = 1000000};
        collect(http);
        if (http->at_gateway > 0)
            (void)nanosleep(&pause, NULL);
    }
    web_close(http->web);
    loop_wake_free(http->wake);
    (void)pthread_mutex_destroy(&http->lock);
    free(http);
}
