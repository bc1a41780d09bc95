// SPDX-License-Identifier: MIT
#include "services/redirector/worker.h"
#include "services/redirector/http.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define TICK_MS 100 // how often a worker looks whether it is up, and whether it may end

enum order { ORDER_NONE, ORDER_DRAIN, ORDER_STOP };

struct worker {
    const struct redirector *redirector;
    struct click_ring *ring;
    pthread_t thread;
    struct loop *loop;
    struct loop_wake *wake;
    struct loop_timer *tick;
    struct fetch *fetch;
    struct lookup *lookup;
    struct http *http;
    int64_t stop_at_us; // written before the order
    _Atomic enum order order;
    atomic_bool up;
    // The start's outcome, for the thread that asked for it.
    pthread_mutex_t lock;
    pthread_cond_t started_changed;
    bool started;
    struct problem why;
};

static void obey(void *arg) {
    struct worker *worker = arg;
    enum order order = atomic_load(&worker->order);
    if (order == ORDER_DRAIN)
        http_drain(worker->http);
    if (order == ORDER_STOP) {
        http_quiesce(worker->http);
        if (http_in_flight(worker->http) == 0 || base_monotonic_us() >= worker->stop_at_us)
            loop_stop(worker->loop);
    }
}

static void tick(void *arg) {
    struct worker *worker = arg;
    const struct never_issued_state *ceilings = never_issued_state(worker->redirector->never_issued);
    fetch_raise_jumps(worker->fetch, atomic_load(&ceilings->jumps));
    atomic_store(&worker->up, fetch_is_up(worker->fetch));
    if (atomic_load(&worker->order) == ORDER_STOP)
        obey(worker);
    loop_timer_start(worker->tick, TICK_MS);
}

static enum status open_edges(struct worker *worker, struct problem *why) {
    const struct redirector_config *config = &worker->redirector->config;
    const struct fetch_options fetch = {
        .loop = worker->loop,
        .pg_url = config->pg_url,
        .pg_connections = (unsigned)config->pg_connections,
        .pg_queue = (unsigned)config->pg_queue,
        .pg_deadline_us = config->pg_deadline * US_PER_MS,
        .redis_url = config->redis_url,
        .redis_deadline_us = config->redis_deadline * US_PER_MS,
    };
    enum status status = fetch_open(&fetch, &worker->fetch, why);
    if (status != STATUS_OK)
        return status;
    const struct lookup_options lookup = {.fetch = worker->fetch, .cache_bytes = (size_t)config->cache_bytes};
    worker->lookup = lookup_create(&lookup);
    const struct http_options http = {
        .redirector = worker->redirector,
        .loop = worker->loop,
        .lookup = worker->lookup,
        .ring = worker->ring,
    };
    return http_open(&http, &worker->http, why);
}

static void close_edges(struct worker *worker) {
    fetch_close(worker->fetch); // what waits for a link is answered first
    http_close(worker->http);
    lookup_free(worker->lookup);
    loop_timer_free(worker->tick);
    loop_wake_free(worker->wake);
    loop_free(worker->loop);
}

static void report_start(struct worker *worker, const struct problem *why) {
    (void)pthread_mutex_lock(&worker->lock);
    worker->started = true;
    worker->why = *why;
    (void)pthread_cond_signal(&worker->started_changed);
    (void)pthread_mutex_unlock(&worker->lock);
}

static void *run(void *arg) {
    struct worker *worker = arg;
    (void)pthread_setname_np(pthread_self(), "worker");
    struct problem why = {0};
    worker->loop = loop_create();
    worker->wake = loop_wake_create(worker->loop, obey, worker);
    worker->tick = loop_timer_create(worker->loop, tick, worker);
    enum status status = open_edges(worker, &why);
    if (status == STATUS_OK)
        loop_timer_start(worker->tick, TICK_MS);
    report_start(worker, &why);
    if (status == STATUS_OK)
        loop_run(worker->loop);
    close_edges(worker);
    return NULL;
}

enum status worker_start(
    const struct redirector *redirector, struct click_ring *ring, struct worker **out, struct problem *why) {
    struct worker *worker = base_calloc(1, sizeof *worker);
    worker->redirector = redirector;
    worker->ring = ring;
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)pthread_cond_init(&worker->started_changed, NULL);
    REQUIRE(pthread_create(&worker->thread, NULL, run, worker) == 0);
    (void)pthread_mutex_lock(&worker->lock);
    while (!worker->started)
        (void)pthread_cond_wait(&worker->started_changed, &worker->lock);
    enum status status = worker->why.status;
    if (status != STATUS_OK)
        *why = worker->why;
    (void)pthread_mutex_unlock(&worker->lock);
    if (status == STATUS_OK) {
        *out = worker;
        return STATUS_OK;
    }
    (void)pthread_join(worker->thread, NULL);
    free(worker);
    return status;
}

void worker_drain(struct worker *worker) {
    atomic_store(&worker->order, ORDER_DRAIN);
    loop_wake_send(worker->wake);
}

void worker_stop(struct worker *worker, int64_t us) {
    if (worker == NULL)
        return;
    worker->stop_at_us = base_monotonic_us() + us;
    atomic_store(&worker->order, ORDER_STOP);
    loop_wake_send(worker->wake);
    (void)pthread_join(worker->thread, NULL);
    (void)pthread_cond_destroy(&worker->started_changed);
    (void)pthread_mutex_destroy(&worker->lock);
    free(worker);
}

bool worker_is_up(const struct worker *worker) {
    return atomic_load(&worker->up);
}
