// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_listener.h"
#include "common/rpc/rpc_close.h"

#include "common/log/log.h"
#include "common/rpc/rpc_probe.h"
#include "common/rpc/rpc_resolve.h"
#include "common/rpc/rpc_server.h"
#include "common/rpc/rpc_stats.h"
#include "common/rpc/rpc_thread.h"
#include <arpa/inet.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEND_MS 5000 // a peer that does not read its answers holds a slot for this long
#define WATCH_US (1 * US_PER_S)
#define PROBE_US (2 * US_PER_S)
#define PROBE_MISSES 3
#define LINGER_US (500 * US_PER_MS)

struct slot {
    struct rpc_slot seen; // first, so that the holder's pointer is ours
    struct rpc_listener *listener;
    nng_ctx ctx;
    nng_aio *aio;
    nng_msg *request;
    bool sending;
};

struct rpc_listener {
    struct rpc_listener_options options;
    char url[RPC_ADDRESS_MAX + 8];
    struct sockaddr_storage address; // what was bound
    nng_socket socket;
    nng_listener nng; // id 0: none; a rebuild failed and is tried again
    struct slot *slots;
    atomic_size_t sending;
    struct rpc_ticker watch;
    struct metric *rebuilds;
    unsigned misses; // the watch's
};

static void receive(struct slot *slot) {
    slot->sending = false;
    nng_aio_set_timeout(slot->aio, NNG_DURATION_INFINITE);
    nng_ctx_recv(slot->ctx, slot->aio);
}

// After each send and each receive, on an NNG thread. A stopped aio starts nothing and calls nobody.
static void slot_event(void *arg) {
    struct slot *slot = arg;
    int result = nng_aio_result(slot->aio);
    if (slot->sending) {
        if (result != 0)
            nng_msg_free(nng_aio_get_msg(slot->aio));
        (void)atomic_fetch_sub(&slot->listener->sending, 1);
        receive(slot);
        return;
    }
    if (result == NNG_ECLOSED || result == NNG_ECANCELED)
        return;
    if (result != 0) {
        receive(slot);
        return;
    }
    slot->request = nng_aio_get_msg(slot->aio);
    nng_aio_set_msg(slot->aio, NULL);
    slot->seen = (struct rpc_slot){.bytes = nng_msg_body(slot->request),
        .len = nng_msg_len(slot->request),
        .received_us = base_monotonic_us()};
    slot->listener->options.arrived(slot->listener->options.arg, &slot->seen);
}

void rpc_slot_answer(struct rpc_slot *slot, const Dunlin__V1__RpcResponse *answer) {
    struct slot *self = (struct slot *)slot;
    nng_msg *message = NULL;
    nng_msg_free(self->request);
    self->request = NULL;
    if (nng_msg_alloc(&message, dunlin__v1__rpc_response__get_packed_size(answer)) != 0) {
        receive(self); // no memory: the caller's deadline tells it
        return;
    }
    (void)dunlin__v1__rpc_response__pack(answer, nng_msg_body(message));
    (void)atomic_fetch_add(&self->listener->sending, 1);
    self->sending = true;
    nng_aio_set_msg(self->aio, message);
    nng_aio_set_timeout(self->aio, SEND_MS);
    nng_ctx_send(self->ctx, self->aio);
}

static int listen_on(struct rpc_listener *listener) {
    int result = nng_listener_create(&listener->nng, listener->socket, listener->url);
    if (result == 0)
        result = nng_listener_set_size(listener->nng, NNG_OPT_RECVMAXSZ, RPC_FRAME_MAX);
    if (result == 0)
        result = nng_listener_start(listener->nng, 0);
    if (result != 0) {
        (void)nng_listener_close(listener->nng);
        listener->nng = (nng_listener)NNG_LISTENER_INITIALIZER;
    }
    return result;
}

static void rebuild(struct rpc_listener *listener) {
    log_error("the RPC listener is deaf and is made anew", log_text("listen", listener->url));
    metric_inc(listener->rebuilds);
    if (nng_listener_id(listener->nng) > 0)
        (void)nng_listener_close(listener->nng);
    int result = listen_on(listener);
    if (result != 0)
        log_error("the RPC listener can't be made anew", log_text("listen", listener->url),
            log_text("error", nng_strerror(result)));
}

static void watch(void *arg) {
    struct rpc_listener *listener = arg;
    if (rpc_probe(&listener->address, PROBE_US)) {
        listener->misses = 0;
        return;
    }
    if (++listener->misses < PROBE_MISSES && nng_listener_id(listener->nng) > 0)
        return;
    listener->misses = 0;
    rebuild(listener);
}

// Learns the port that was bound, for the probe and for a rebuild.
static void learn_port(struct rpc_listener *listener) {
    nng_sockaddr bound = {0};
    char text[INET6_ADDRSTRLEN] = "";
    REQUIRE(nng_listener_get_addr(listener->nng, NNG_OPT_LOCADDR, &bound) == 0);
    if (bound.s_family == NNG_AF_INET6) {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)&listener->address;
        *six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = bound.s_in6.sa_port};
        memcpy(&six->sin6_addr, bound.s_in6.sa_addr, sizeof six->sin6_addr);
        (void)inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
        (void)snprintf(listener->url, sizeof listener->url, "tcp://[%s]:%u", text, ntohs(six->sin6_port));
        return;
    }
    struct sockaddr_in *four = (struct sockaddr_in *)&listener->address;
    *four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = bound.s_in.sa_port};
    four->sin_addr.s_addr = bound.s_in.sa_addr;
    (void)inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
    (void)snprintf(listener->url, sizeof listener->url, "tcp://%s:%u", text, ntohs(four->sin_port));
}

static enum status bind_socket(struct rpc_listener *listener, const char *listen, struct problem *why) {
    // Before the listener exists: NNG takes messages of any size otherwise.
    int result = nng_socket_set_size(listener->socket, NNG_OPT_RECVMAXSZ, RPC_FRAME_MAX);
    if (result == 0)
        result = listen_on(listener);
    if (result != 0)
        return problem_set(why, STATUS_UNAVAILABLE, "LISTEN_FAILED", "Can't listen on %s: %s.", listen,
            nng_strerror(result));
    learn_port(listener);
    return STATUS_OK;
}

static bool open_slots(struct rpc_listener *listener) {
    listener->slots = base_calloc(listener->options.slots, sizeof *listener->slots);
    for (size_t i = 0; i < listener->options.slots; i++) {
        struct slot *slot = &listener->slots[i];
        slot->listener = listener;
        if (nng_ctx_open(&slot->ctx, listener->socket) != 0 ||
            nng_aio_alloc(&slot->aio, slot_event, slot) != 0)
            return false;
    }
    return true;
}

enum status rpc_listener_open(
    const struct rpc_listener_options *options, struct rpc_listener **out, struct problem *why) {
    char address[RPC_ADDRESS_MAX];
    enum status status = rpc_resolve_loopback(options->listen, address, why);
    if (status != STATUS_OK)
        return status;
    struct rpc_listener *listener = base_calloc(1, sizeof *listener);
    listener->options = *options;
    listener->rebuilds = metric_add(&rpc_server_metrics[RPC_SERVER_REBUILDS]);
    (void)snprintf(listener->url, sizeof listener->url, "tcp://%s", address);
    REQUIRE(nng_rep0_open(&listener->socket) == 0 && open_slots(listener));
    status = bind_socket(listener, options->listen, why);
    if (status != STATUS_OK) {
        rpc_listener_close(listener);
        return status;
    }
    for (size_t i = 0; i < options->slots; i++)
        receive(&listener->slots[i]);
    rpc_ticker_start(&listener->watch, WATCH_US, watch, listener);
    *out = listener;
    return STATUS_OK;
}

// NNG's close does not linger. A send is complete once its bytes are with the kernel, or with the pipe that
// is still writing them: the second pause is for those.
static void linger(struct rpc_listener *listener) {
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int64_t end_us = base_monotonic_us() + LINGER_US;
    while (atomic_load(&listener->sending) > 0 && base_monotonic_us() < end_us)
        (void)nanosleep(&pause, NULL);
    (void)nanosleep(&pause, NULL);
}

// Every operation is over before the socket closes: NNG 1.5 may hang in a close that races with one.
void rpc_listener_close(struct rpc_listener *listener) {
    rpc_ticker_stop(&listener->watch);
    rpc_ticker_done(&listener->watch);
    linger(listener);
    for (size_t i = 0; i < listener->options.slots; i++)
        nng_aio_stop(listener->slots[i].aio);
    for (size_t i = 0; i < listener->options.slots; i++)
        (void)nng_ctx_close(listener->slots[i].ctx);
    if (!rpc_close_socket(listener->socket.id)) {
        rpc_close_abandon(listener);
        return;
    }
    for (size_t i = 0; i < listener->options.slots; i++)
        nng_aio_free(listener->slots[i].aio);
    free(listener->slots);
    free(listener);
}

uint16_t rpc_listener_port(const struct rpc_listener *listener) {
    const struct sockaddr_storage *address = &listener->address;
    return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                                : ((const struct sockaddr_in *)address)->sin_port);
}
