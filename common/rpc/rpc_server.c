// SPDX-License-Identifier: MIT
// Request flow: an NNG thread brings a slot to arrived(), which answers pings and refusals itself and queues
// the rest; a worker takes the slot, runs it through its dispatch, and the answer sends the slot back to
// receiving.
#include "common/rpc/rpc_server.h"

#include "common/log/log.h"
#include "common/rpc/rpc_dispatch.h"
#include "common/rpc/rpc_listener.h"
#include "common/rpc/rpc_thread.h"
#include <stdatomic.h>
#include <stdlib.h>

// Slots past queue_max: they answer pings while the queue is full, so that a busy server is not taken for a
// dead one.
#define SPARE_SLOTS 16
#define PING_ARENA 4096

struct worker_thread {
    pthread_t thread;
    struct rpc_server *server;
    struct rpc_worker worker;
    struct rpc_dispatch dispatch;
};

struct rpc_server {
    struct rpc_server_options options;
    struct rpc_listener *listener;
    struct rpc_dispatch pings; // without a worker: from any NNG thread
    struct worker_thread *workers;
    atomic_bool draining;
    struct metric *queue_full;
    struct metric *drained;
    struct metric *depth;

    pthread_mutex_t lock; // guards what follows; no call goes out while it is held
    pthread_cond_t arrival;
    pthread_cond_t idle;
    struct rpc_slot *first; // waiting, oldest first
    struct rpc_slot **last;
    unsigned held; // waiting or running
    bool stopping;
};

static bool is_serving(void *arg) {
    const struct rpc_server *server = arg;
    return !atomic_load(&server->draining) &&
           (server->options.ready == NULL || server->options.ready(server->options.arg));
}

static void answer_ping(struct rpc_server *server, struct rpc_slot *slot) {
    struct rpc_response response;
    struct rpc_arena arena;
    rpc_arena_init(&arena, PING_ARENA);
    rpc_response_init(&response);
    rpc_dispatch_run(&server->pings, &arena, slot->bytes, slot->len, slot->received_us, &response);
    rpc_slot_answer(slot, &response.message);
    rpc_response_done(&response);
    rpc_arena_done(&arena);
}

static void refuse(struct rpc_slot *slot, enum status status, const char *reason, const char *message) {
    struct rpc_response response;
    struct problem why;
    (void)problem_set(&why, status, reason, "%s", message);
    why.retry_after_s = 1;
    rpc_response_init(&response);
    rpc_response_refuse(&response, &why);
    rpc_slot_answer(slot, &response.message);
    rpc_response_done(&response);
}

static void refuse_draining(struct rpc_server *server, struct rpc_slot *slot) {
    metric_inc(server->drained);
    refuse(slot, STATUS_UNAVAILABLE, "DRAINING", "This process is about to end; ask another one.");
}

static bool enqueue(struct rpc_server *server, struct rpc_slot *slot) {
    (void)pthread_mutex_lock(&server->lock);
    bool room = server->held < server->options.queue_max;
    if (room) {
        slot->next = NULL;
        *server->last = slot;
        server->last = &slot->next;
        server->held++;
        metric_set(server->depth, server->held);
        (void)pthread_cond_signal(&server->arrival);
    }
    (void)pthread_mutex_unlock(&server->lock);
    return room;
}

static void arrived(void *arg, struct rpc_slot *slot) {
    struct rpc_server *server = arg;
    if (rpc_dispatch_is_ping(slot->bytes, slot->len)) {
        answer_ping(server, slot);
    } else if (atomic_load(&server->draining)) {
        refuse_draining(server, slot);
    } else if (!enqueue(server, slot)) {
        metric_inc(server->queue_full);
        refuse(slot, STATUS_RESOURCE_EXHAUSTED, "QUEUE_FULL", "Too many requests wait here already.");
    }
}

static struct rpc_slot *take_locked(struct rpc_server *server) {
    struct rpc_slot *slot = server->first;
    if (slot == NULL)
        return NULL;
    server->first = slot->next;
    if (server->first == NULL)
        server->last = &server->first;
    return slot;
}

// NULL: the server stops.
static struct rpc_slot *take(struct rpc_server *server) {
    struct rpc_slot *slot = NULL;
    (void)pthread_mutex_lock(&server->lock);
    while (!server->stopping && (slot = take_locked(server)) == NULL)
        (void)pthread_cond_wait(&server->arrival, &server->lock);
    (void)pthread_mutex_unlock(&server->lock);
    return slot;
}

static void release(struct rpc_server *server) {
    (void)pthread_mutex_lock(&server->lock);
    server->held--;
    metric_set(server->depth, server->held);
    if (server->held == 0)
        (void)pthread_cond_signal(&server->idle);
    (void)pthread_mutex_unlock(&server->lock);
}

static void *work(void *arg) {
    struct worker_thread *self = arg;
    struct rpc_server *server = self->server;
    struct rpc_arena arena;
    struct rpc_response response;
    rpc_arena_init(&arena, RPC_ARENA_MAX);
    rpc_response_init(&response);
    for (struct rpc_slot *slot; (slot = take(server)) != NULL;) {
        rpc_arena_clear(&arena);
        rpc_dispatch_run(&self->dispatch, &arena, slot->bytes, slot->len, slot->received_us, &response);
        rpc_slot_answer(slot, &response.message);
        rpc_response_done(&response);
        rpc_response_init(&response);
        release(server);
    }
    rpc_arena_done(&arena);
    return NULL;
}

static void start_worker(struct rpc_server *server, unsigned index) {
    struct worker_thread *worker = &server->workers[index];
    worker->server = server;
    server->options.worker_open(server->options.arg, index, &worker->worker);
    REQUIRE(worker->worker.service_count <= RPC_SERVICES_MAX);
    rpc_dispatch_init(&worker->dispatch, &worker->worker, server->options.timeout_us, is_serving, server);
    REQUIRE(pthread_create(&worker->thread, NULL, work, worker) == 0);
}

static void stop_worker(struct rpc_server *server, unsigned index) {
    struct worker_thread *worker = &server->workers[index];
    (void)pthread_join(worker->thread, NULL);
    rpc_dispatch_done(&worker->dispatch);
    if (server->options.worker_close != NULL)
        server->options.worker_close(server->options.arg, &worker->worker);
}

static void free_server(struct rpc_server *server) {
    rpc_dispatch_done(&server->pings);
    (void)pthread_mutex_destroy(&server->lock);
    (void)pthread_cond_destroy(&server->arrival);
    (void)pthread_cond_destroy(&server->idle);
    free(server->workers);
    free(server);
}

static struct rpc_server *create_server(const struct rpc_server_options *options) {
    struct rpc_server *server = base_calloc(1, sizeof *server);
    server->options = *options;
    server->last = &server->first;
    server->workers = base_calloc(options->workers, sizeof *server->workers);
    REQUIRE(pthread_mutex_init(&server->lock, NULL) == 0);
    rpc_cond_init(&server->arrival);
    rpc_cond_init(&server->idle);
    server->queue_full = metric_add(&rpc_server_metrics[RPC_SERVER_REFUSED], "QUEUE_FULL");
    server->drained = metric_add(&rpc_server_metrics[RPC_SERVER_REFUSED], "DRAINING");
    server->depth = metric_add(&rpc_server_metrics[RPC_SERVER_QUEUE]);
    rpc_dispatch_init(&server->pings, NULL, options->timeout_us, is_serving, server);
    return server;
}

enum status rpc_server_start(
    const struct rpc_server_options *options, struct rpc_server **out, struct problem *why) {
    REQUIRE(options->workers > 0 && options->queue_max > 0 && options->timeout_us > 0);
    struct rpc_server *server = create_server(options);
    const struct rpc_listener_options listen = {.listen = options->listen,
        .slots = (size_t)options->queue_max + SPARE_SLOTS,
        .arrived = arrived,
        .arg = server};
    enum status status = rpc_listener_open(&listen, &server->listener, why);
    if (status != STATUS_OK) {
        free_server(server);
        return status;
    }
    for (unsigned i = 0; i < options->workers; i++)
        start_worker(server, i);
    *out = server;
    return STATUS_OK;
}

void rpc_server_drain(struct rpc_server *server) {
    atomic_store(&server->draining, true);
}

// Ends the waiting for work, and returns what no worker will take any more.
static struct rpc_slot *stop_queue(struct rpc_server *server, int64_t end_us) {
    (void)pthread_mutex_lock(&server->lock);
    while (server->held > 0)
        if (!rpc_cond_wait_until(&server->idle, &server->lock, end_us))
            break;
    server->stopping = true;
    struct rpc_slot *left = server->first;
    server->first = NULL;
    server->last = &server->first;
    (void)pthread_cond_broadcast(&server->arrival);
    (void)pthread_mutex_unlock(&server->lock);
    return left;
}

void rpc_server_stop(struct rpc_server *server, int64_t drain_us) {
    rpc_server_drain(server);
    struct rpc_slot *left = stop_queue(server, base_monotonic_us() + drain_us);
    while (left != NULL) {
        struct rpc_slot *slot = left;
        left = slot->next;
        refuse_draining(server, slot);
        release(server);
    }
    for (unsigned i = 0; i < server->options.workers; i++)
        stop_worker(server, i);
    rpc_listener_close(server->listener);
    free_server(server);
}

uint16_t rpc_server_port(const struct rpc_server *server) {
    return rpc_listener_port(server->listener);
}
