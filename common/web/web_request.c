// SPDX-License-Identifier: MIT
// A request's life: its target arrives, its head passes the gate, its body comes, the service has it, it is
// answered.
//
// An answer that libmicrohttpd gets in its handler's first call closes the connection; one that it gets when
// the request is whole keeps it. So a refusal is answered in the first call and everything else after it.
#include "common/web/web_internal.h"

#include <stdlib.h>
#include <string.h>

#define SPARES_MAX 64
// What is read of a chunked body that is too large, so that it can be answered like any other request.
#define DROPPED_MAX ((size_t)64 << 20)

struct web_request *web_request_create(struct web *web, struct web_conn *conn) {
    struct web_request *request = SLIST_FIRST(&web->spare);
    if (request == NULL) {
        request = base_calloc(1, sizeof *request);
    } else {
        SLIST_REMOVE_HEAD(&web->spare, free);
        web->spare_count--;
        memset(request, 0, offsetof(struct web_request, target));
    }
    request->web = web;
    request->conn = conn;
    request->parts.path = "/";
    request->head.method = WEB_OTHER;
    request->head.detail = "";
    buf_init(&request->body, web->options.body_max);
    return request;
}

static void release(struct web_request *request) {
    struct web *web = request->web;
    buf_done(&request->body);
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    if (web->spare_count >= SPARES_MAX) {
        free(request);
        return;
    }
    SLIST_INSERT_HEAD(&web->spare, request, free);
    web->spare_count++;
}

void web_request_free_spares(struct web *web) {
    while (!SLIST_EMPTY(&web->spare)) {
        struct web_request *request = SLIST_FIRST(&web->spare);
        SLIST_REMOVE_HEAD(&web->spare, free);
        free(request);
    }
}

void *web_request_begin(void *cls, const char *target, struct MHD_Connection *mhd) {
    struct web_conn *conn = web_conn_of(mhd);
    if (conn == NULL || conn->request != NULL)
        return NULL;
    struct web_request *request = web_request_create(cls, conn);
    conn->request = request;
    if (conn->phase == WEB_PHASE_IDLE)
        web_conn_phase(conn, WEB_PHASE_HEAD);
    if (target == NULL)
        return request;
    size_t len = strlen(target);
    request->line_target = target;
    request->target_len = len;
    // What is cut here makes the request line too long anyway.
    size_t kept = len < sizeof request->target ? len : sizeof request->target - 1;
    memcpy(request->target, target, kept);
    request->target[kept] = '\0';
    // libmicrohttpd would now split the query into arguments, a record each, in memory that a legal query can
    // exhaust. The text is its own buffer's; an empty query is quickly split.
    char *query = strchr((char *)(uintptr_t)target, '?');
    if (query != NULL)
        query[1] = '\0';
    return request;
}

static web_result queue(struct web_request *request) {
    struct MHD_Response *response = request->response;
    request->response = NULL;
    request->stage = WEB_STAGE_ANSWERED;
    web_result result = MHD_queue_response(request->conn->mhd, request->status, response);
    MHD_destroy_response(response);
    return result;
}

static void call_handler(struct web_request *request, web_handler *handler) {
    struct web *web = request->web;
    request->stage = WEB_STAGE_HANDED;
    web_conn_phase(request->conn, WEB_PHASE_BUSY);
    web->in_flight++;
    handler(web->options.arg, request);
}

static web_result hand_over(struct web_request *request, web_handler *handler) {
    call_handler(request, handler);
    if (request->response != NULL)
        return queue(request);
    if (request->stage != WEB_STAGE_HANDED)
        return MHD_YES;
    MHD_suspend_connection(request->conn->mhd);
    request->suspended = true;
    return MHD_YES;
}

static void await_body(struct web_request *request) {
    request->stage = WEB_STAGE_BODY;
    web_conn_phase(request->conn, WEB_PHASE_BODY);
}

static web_result check_head(struct web_request *request, const char *method, const char *version) {
    struct web_head *head = &request->head;
    size_t line_len = 0;
    size_t len = 0;
    web_head_begin(head);
    web_head_line(head, method, request->target, version);
    if (!web_layout_read(request, method, version, &line_len, &len))
        web_head_refuse(head, 400, "The request head is malformed.");
    web_head_end(head, line_len, len, request->web->options.body_max);
    request->head_read = true;
    if (!head->bad_target)
        web_head_split(request->target, &request->parts);
    const struct web_options *options = &request->web->options;
    bool asks = head->expects && options->expecting != NULL;
    if (head->refusal != 0 || asks) {
        request->conn->linger = true; // an answer now comes before the body
        return hand_over(request, head->refusal != 0 ? options->handler : options->expecting);
    }
    await_body(request);
    return MHD_YES;
}

void web_request_refuse_raw(struct web_request *request, int status, const char *detail) {
    request->head.refusal = status; // whatever else was wrong before
    request->head.detail = detail;
    request->raw = true;
    call_handler(request, request->web->options.handler);
}

static web_result take_body(struct web_request *request, const char *bytes, size_t *len) {
    size_t n = *len;
    *len = 0;
    if (request->dropped == 0) {
        buf_append(&request->body, bytes, n);
        if (buf_ok(&request->body))
            return MHD_YES;
        buf_done(&request->body);
    }
    // A chunked body tells its size only by passing the limit, and libmicrohttpd takes no answer amid a body:
    // it is answered at its end.
    web_head_refuse(&request->head, 413, "The request body is too large.");
    request->conn->linger = true;
    request->dropped += n;
    if (request->dropped <= DROPPED_MAX)
        return MHD_YES;
    request->conn->dead = true;
    web_request_refuse_raw(request, 413, "The request body is too large.");
    return MHD_NO;
}

web_result web_request_step(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *upload, size_t *upload_len, void **con_cls) {
    struct web_request *request = *con_cls;
    (void)cls, (void)mhd, (void)url;
    if (request == NULL || request->conn == NULL || request->conn->dead)
        return MHD_NO;
    switch (request->stage) {
    case WEB_STAGE_LINE:
        return check_head(request, method, version);
    case WEB_STAGE_WANTED:
        await_body(request);
        return MHD_YES;
    case WEB_STAGE_BODY:
        return *upload_len > 0 ? take_body(request, upload, upload_len)
                               : hand_over(request, request->web->options.handler);
    case WEB_STAGE_HANDED:
        return request->response != NULL ? queue(request) : MHD_NO;
    default:
        return MHD_YES;
    }
}

void web_request_finish(struct web_request *request) {
    struct web_conn *conn = request->conn;
    if (conn != NULL) {
        conn->request = NULL;
        web_conn_phase(conn, WEB_PHASE_IDLE);
    }
    request->conn = NULL;
    if (request->raw && request->stage == WEB_STAGE_HANDED)
        return;
    if (request->stage >= WEB_STAGE_HANDED)
        request->web->in_flight--;
    release(request);
}

void web_request_end(
    void *cls, struct MHD_Connection *mhd, void **con_cls, enum MHD_RequestTerminationCode code) {
    (void)cls, (void)mhd, (void)code;
    struct web_request *request = *con_cls;
    *con_cls = NULL;
    if (request != NULL)
        web_request_finish(request);
}

static void answer_raw(struct web_request *request, const struct web_answer *answer) {
    if (request->conn != NULL) {
        web_answer_raw(request, answer);
        request->stage = WEB_STAGE_ANSWERED;
        return;
    }
    request->web->in_flight--;
    release(request);
}

void web_answer(struct web_request *request, const struct web_answer *answer) {
    REQUIRE(request->stage == WEB_STAGE_HANDED && request->response == NULL);
    if (request->raw) {
        answer_raw(request, answer);
        return;
    }
    request->response = web_answer_build(request, answer);
    if (request->suspended) {
        request->suspended = false;
        MHD_resume_connection(request->conn->mhd);
        web_poke(request->web);
    }
}

void web_go_on(struct web_request *request) {
    REQUIRE(request->stage == WEB_STAGE_HANDED && request->head.expects && request->response == NULL);
    request->head.expects = false;
    request->web->in_flight--;
    request->conn->linger = false;
    if (!request->suspended) {
        await_body(request);
        return;
    }
    request->stage = WEB_STAGE_WANTED;
    request->suspended = false;
    MHD_resume_connection(request->conn->mhd);
    web_poke(request->web);
}

int web_refusal(const struct web_request *request) {
    return request->head.refusal;
}

const char *web_refusal_detail(const struct web_request *request) {
    return request->head.detail;
}

enum web_method web_method(const struct web_request *request) {
    return request->head.method;
}

const char *web_path(const struct web_request *request) {
    return request->parts.path;
}

const char *web_query(const struct web_request *request) {
    return request->parts.query;
}

const char *web_host(const struct web_request *request) {
    return request->parts.host != NULL ? request->parts.host : web_header(request, "Host");
}

const char *web_header(const struct web_request *request, const char *name) {
    if (!request->head_read || request->conn == NULL)
        return NULL;
    return MHD_lookup_connection_value(request->conn->mhd, MHD_HEADER_KIND, name);
}

const char *web_body(const struct web_request *request, size_t *len) {
    *len = request->body.len;
    return buf_text(&request->body);
}

const char *web_peer(const struct web_request *request) {
    return request->conn == NULL ? "" : request->conn->peer;
}
