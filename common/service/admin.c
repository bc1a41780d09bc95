// SPDX-License-Identifier: MIT
#include "common/service/service_state.h"

#include "common/log/log.h"
#include "common/web/web.h"
#include "common/web/web_listen.h"
#include <stdlib.h>
#include <string.h>

#define RENDER_MAX ((size_t)16 << 20)
#define CONNECTIONS_MAX 64

struct admin {
    struct service_state *state;
    struct loop *loop;
    struct loop_wake *stop;
    struct web *web;
    pthread_t thread;
};

static void answer(struct web_request *request, int status, const char *type, const struct buf *body) {
    const struct web_header_field headers[] = {
        {"Content-Type", type},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Allow", "GET, HEAD"},
    };
    const struct web_answer full = {
        .status = status,
        .headers = headers,
        .header_count = status == 405 ? ARRAY_LEN(headers) : ARRAY_LEN(headers) - 1,
        .body = buf_text(body),
        .body_len = body->len,
    };
    web_answer(request, &full);
}

static void answer_text(struct web_request *request, int status, const struct buf *body) {
    answer(request, status, "text/plain; charset=utf-8", body);
}

static void answer_line(struct web_request *request, int status, const char *line) {
    struct buf body;
    buf_init(&body, 256);
    buf_printf(&body, "%s\n", line);
    answer_text(request, status, &body);
    buf_done(&body);
}

static void answer_rendered(struct web_request *request, const char *type, const struct buf *body) {
    if (buf_ok(body))
        answer(request, 200, type, body);
    else
        answer_line(request, 500, "The answer is larger than this port gives.");
}

static void serve_ready(struct admin *admin, struct web_request *request) {
    struct buf body;
    buf_init(&body, RENDER_MAX);
    bool is_ready = service_state_ready(admin->state, &body);
    if (is_ready)
        answer_line(request, 200, "ready");
    else
        answer_text(request, 503, &body);
    buf_done(&body);
}

// Series that are asked for at scrape belong to parts, so that the lock keeps those from stopping meanwhile.
static void serve_metrics(struct admin *admin, struct web_request *request) {
    struct service_state *state = admin->state;
    struct buf body;
    buf_init(&body, RENDER_MAX);
    (void)pthread_mutex_lock(&state->lock);
    bool is_served = state->phase != SERVICE_STOPPING;
    if (is_served)
        metrics_render(&body);
    (void)pthread_mutex_unlock(&state->lock);
    if (is_served)
        answer_rendered(request, "text/plain; version=0.0.4; charset=utf-8", &body);
    else
        answer_line(request, 503, "stopping");
    buf_done(&body);
}

static void serve_route(struct admin *admin, struct web_request *request, const struct service_route *route) {
    struct service_state *state = admin->state;
    struct buf body;
    buf_init(&body, RENDER_MAX);
    (void)pthread_mutex_lock(&state->lock);
    bool is_served = state->phase == SERVICE_RUNNING || state->phase == SERVICE_LEAVING;
    if (is_served)
        route->render(state->service->state, &body);
    (void)pthread_mutex_unlock(&state->lock);
    if (is_served)
        answer_rendered(request, "text/plain; charset=utf-8", &body);
    else
        answer_line(request, 503, "not running");
    buf_done(&body);
}

static void serve_path(struct admin *admin, struct web_request *request, const char *path) {
    const struct service *service = admin->state->service;
    if (strcmp(path, "/healthz") == 0) {
        answer_line(request, 200, "ok");
        return;
    }
    if (strcmp(path, "/readyz") == 0) {
        serve_ready(admin, request);
        return;
    }
    if (strcmp(path, "/metrics") == 0) {
        serve_metrics(admin, request);
        return;
    }
    for (size_t i = 0; i < service->route_count; i++) {
        if (strcmp(path, service->routes[i].path) == 0) {
            serve_route(admin, request, &service->routes[i]);
            return;
        }
    }
    answer_line(request, 404, "not found");
}

static void handle(void *arg, struct web_request *request) {
    int refusal = web_refusal(request);
    if (refusal != 0)
        answer_line(request, refusal, web_refusal_detail(request));
    else if (web_method(request) != WEB_GET && web_method(request) != WEB_HEAD)
        answer_line(request, 405, "GET and HEAD only");
    else
        serve_path(arg, request, web_path(request));
}

static void on_stop(void *arg) {
    loop_stop(arg);
}

static void *run(void *arg) {
    loop_run(arg);
    return NULL;
}

static enum status open_port(struct admin *admin, const char *listen, struct problem *why) {
    struct web_options options = {
        .loop = admin->loop,
        .body_max = 1024,
        .connections_max = CONNECTIONS_MAX,
        .handler = handle,
        .arg = admin,
    };
    char host[ADMIN_HOST_MAX];
    if (!web_listen_parse(listen, host, sizeof host, &options.port))
        return problem_set(why, STATUS_INVALID_ARGUMENT, "", "%s is no address with a port.", listen);
    options.address = host;
    enum status status = web_open(&options, &admin->web, why);
    if (status == STATUS_OK)
        log_info("admin port is open", log_text("address", host), log_int("port", web_port(admin->web)));
    return status;
}

enum status admin_start(
    struct service_state *state, const char *listen, struct admin **out, struct problem *why) {
    struct admin *admin = base_calloc(1, sizeof *admin);
    admin->state = state;
    admin->loop = loop_create();
    enum status status = open_port(admin, listen, why);
    if (status != STATUS_OK) {
        loop_free(admin->loop);
        free(admin);
        return status;
    }
    admin->stop = loop_wake_create(admin->loop, on_stop, admin->loop);
    REQUIRE(pthread_create(&admin->thread, NULL, run, admin->loop) == 0);
    *out = admin;
    return STATUS_OK;
}

void admin_stop(struct admin *admin) {
    if (admin == NULL)
        return;
    loop_wake_send(admin->stop);
    (void)pthread_join(admin->thread, NULL);
    web_close(admin->web);
    loop_wake_free(admin->stop);
    loop_free(admin->loop);
    free(admin);
}
