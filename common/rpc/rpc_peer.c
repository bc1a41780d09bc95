// SPDX-License-Identifier: MIT
// Always send, wait, then receive: NNG 1.5 crashes when a receive that was posted beside an unfinished send
// times out (NNG issue 1702). The resend timer is off: NNG would repeat requests that are not safe to repeat.
#include "common/rpc/rpc_peer.h"
#include "common/rpc/rpc_close.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define RECONNECT_MIN_MS 50
#define RECONNECT_MAX_MS 2000
#define SEND_MAX_MS 1000 // a connection whose buffers stay full for this long is no connection
#define PING_MS 1000
#define PING_MISSES_DOWN 2

struct call {
    nng_ctx ctx;
    nng_aio *aio;
    struct call *next_free;
    struct call *next; // of all
};

enum ping_stage { PING_IDLE, PING_SENDING, PING_RECEIVING };

struct rpc_peer {
    nng_socket socket;
    void (*changed)(void *arg);
    void *arg;

    pthread_mutex_t lock; // guards the two lists; no NNG call happens under it
    struct call *free;
    struct call *all;

    nng_ctx ping_ctx;
    nng_aio *ping_aio;
    _Atomic enum ping_stage ping_stage;
    _Atomic int64_t ping_us; // when the last one was sent
    _Atomic uint32_t ping_pipe;
    _Atomic int64_t heard_us; // when the last answer to anything came
    _Atomic uint32_t pipe;    // the connection, 0: none
    _Atomic bool proven;      // a ping was answered on this connection
    _Atomic bool serving;
    _Atomic bool condemned;
    _Atomic unsigned misses;
};

void rpc_answer_done(struct rpc_answer *answer) {
    if (answer->message != NULL)
        nng_msg_free(answer->message);
    *answer = (struct rpc_answer){0};
}

static void connected(nng_pipe pipe, nng_pipe_ev event, void *arg) {
    (void)event;
    struct rpc_peer *peer = arg;
    atomic_store(&peer->proven, false);
    atomic_store(&peer->misses, 0);
    atomic_store(&peer->pipe, (uint32_t)nng_pipe_id(pipe));
    peer->changed(peer->arg);
}

static void disconnected(nng_pipe pipe, nng_pipe_ev event, void *arg) {
    (void)event;
    struct rpc_peer *peer = arg;
    uint32_t id = (uint32_t)nng_pipe_id(pipe);
    if (atomic_compare_exchange_strong(&peer->pipe, &id, 0))
        peer->changed(peer->arg);
}

static nng_msg *pack(const Dunlin__V1__RpcRequest *request) {
    nng_msg *message = NULL;
    if (nng_msg_alloc(&message, dunlin__v1__rpc_request__get_packed_size(request)) != 0)
        return NULL;
    (void)dunlin__v1__rpc_request__pack(request, nng_msg_body(message));
    return message;
}

static void end_ping(struct rpc_peer *peer) {
    atomic_store(&peer->ping_stage, PING_IDLE);
    peer->changed(peer->arg);
}

// A peer that answered anything since the ping left is slow, not gone; a connection that came since is not to
// blame.
static void miss_ping(struct rpc_peer *peer) {
    if (atomic_load(&peer->pipe) == atomic_load(&peer->ping_pipe) &&
        atomic_load(&peer->heard_us) < atomic_load(&peer->ping_us))
        (void)atomic_fetch_add(&peer->misses, 1);
    end_ping(peer);
}

static void read_ping(struct rpc_peer *peer) {
    nng_msg *message = nng_aio_get_msg(peer->ping_aio);
    bool serving = false;
    bool understood = rpc_health_read(nng_msg_body(message), nng_msg_len(message), &serving);
    nng_msg_free(message);
    if (!understood) {
        miss_ping(peer);
        return;
    }
    atomic_store(&peer->heard_us, base_monotonic_us());
    atomic_store(&peer->serving, serving);
    atomic_store(&peer->misses, 0);
    atomic_store(&peer->proven, true);
    end_ping(peer);
}

// On an NNG thread, after the ping's send and after its receive.
static void ping_event(void *arg) {
    struct rpc_peer *peer = arg;
    int result = nng_aio_result(peer->ping_aio);
    if (atomic_load(&peer->ping_stage) == PING_RECEIVING) {
        if (result == 0)
            read_ping(peer);
        else
            miss_ping(peer);
        return;
    }
    if (result != 0) {
        nng_msg_free(nng_aio_get_msg(peer->ping_aio));
        miss_ping(peer);
        return;
    }
    atomic_store(&peer->ping_stage, PING_RECEIVING);
    nng_aio_set_timeout(peer->ping_aio, PING_MS);
    nng_ctx_recv(peer->ping_ctx, peer->ping_aio);
}

bool rpc_peer_ping(struct rpc_peer *peer) {
    static char method[] = RPC_HEALTH_METHOD;
    enum ping_stage idle = PING_IDLE;
    if (!rpc_peer_is_connected(peer) ||
        !atomic_compare_exchange_strong(&peer->ping_stage, &idle, PING_SENDING))
        return false;
    Dunlin__V1__RpcRequest request = DUNLIN__V1__RPC_REQUEST__INIT;
    request.method = method;
    request.has_timeout_ms = true;
    request.timeout_ms = PING_MS;
    nng_msg *message = pack(&request);
    if (message == NULL) {
        atomic_store(&peer->ping_stage, PING_IDLE);
        return false;
    }
    atomic_store(&peer->ping_us, base_monotonic_us());
    atomic_store(&peer->ping_pipe, atomic_load(&peer->pipe));
    nng_aio_set_msg(peer->ping_aio, message);
    nng_aio_set_timeout(peer->ping_aio, PING_MS);
    nng_ctx_send(peer->ping_ctx, peer->ping_aio);
    return true;
}

bool rpc_peer_is_connected(const struct rpc_peer *peer) {
    return atomic_load(&peer->pipe) != 0;
}

unsigned rpc_peer_misses(const struct rpc_peer *peer) {
    return atomic_load(&peer->misses);
}

enum rpc_peer_state rpc_peer_state(const struct rpc_peer *peer) {
    if (!rpc_peer_is_connected(peer) || !atomic_load(&peer->proven) ||
        rpc_peer_misses(peer) >= PING_MISSES_DOWN)
        return RPC_PEER_DOWN;
    return atomic_load(&peer->serving) ? RPC_PEER_SERVING : RPC_PEER_NOT_SERVING;
}

// All options before the dialer exists: it takes them over when it is made.
static int configure(nng_socket socket) {
    int result = nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    if (result == 0)
        result = nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, RPC_FRAME_MAX);
    if (result == 0)
        result = nng_socket_set_ms(socket, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS);
    if (result == 0)
        result = nng_socket_set_ms(socket, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS);
    return result;
}

struct rpc_peer *rpc_peer_open(const char *address, void (*changed)(void *arg), void *arg) {
    struct rpc_peer *peer = base_calloc(1, sizeof *peer);
    char url[128];
    (void)snprintf(url, sizeof url, "tcp://%s", address);
    peer->changed = changed;
    peer->arg = arg;
    REQUIRE(pthread_mutex_init(&peer->lock, NULL) == 0);
    REQUIRE(nng_req0_open(&peer->socket) == 0 && configure(peer->socket) == 0);
    REQUIRE(nng_pipe_notify(peer->socket, NNG_PIPE_EV_ADD_POST, connected, peer) == 0);
    REQUIRE(nng_pipe_notify(peer->socket, NNG_PIPE_EV_REM_POST, disconnected, peer) == 0);
    REQUIRE(nng_ctx_open(&peer->ping_ctx, peer->socket) == 0);
    REQUIRE(nng_aio_alloc(&peer->ping_aio, ping_event, peer) == 0);
    // With NONBLOCK it fails for what is no address only, and ours was printed from one.
    REQUIRE(nng_dial(peer->socket, url, NULL, NNG_FLAG_NONBLOCK) == 0);
    return peer;
}

// Every operation is over before the socket closes: NNG 1.5 may hang in a close that races with one.
void rpc_peer_close(struct rpc_peer *peer) {
    nng_aio_stop(peer->ping_aio);
    (void)nng_ctx_close(peer->ping_ctx);
    for (struct call *call = peer->all; call != NULL; call = call->next) {
        nng_aio_stop(call->aio);
        (void)nng_ctx_close(call->ctx);
    }
    if (!rpc_close_socket(peer->socket.id)) {
        rpc_close_abandon(peer);
        return;
    }
    nng_aio_free(peer->ping_aio);
    while (peer->all != NULL) {
        struct call *call = peer->all;
        peer->all = call->next;
        nng_aio_free(call->aio);
        free(call);
    }
    (void)pthread_mutex_destroy(&peer->lock);
    free(peer);
}

// The pool grows to as many calls as threads ever called at once.
static struct call *create_call(struct rpc_peer *peer) {
    struct call *call = base_calloc(1, sizeof *call);
    if (nng_ctx_open(&call->ctx, peer->socket) != 0) {
        free(call);
        return NULL;
    }
    REQUIRE(nng_aio_alloc(&call->aio, NULL, NULL) == 0);
    (void)pthread_mutex_lock(&peer->lock);
    call->next = peer->all;
    peer->all = call;
    (void)pthread_mutex_unlock(&peer->lock);
    return call;
}

static struct call *borrow_call(struct rpc_peer *peer) {
    (void)pthread_mutex_lock(&peer->lock);
    struct call *call = peer->free;
    if (call != NULL)
        peer->free = call->next_free;
    (void)pthread_mutex_unlock(&peer->lock);
    return call != NULL ? call : create_call(peer);
}

static void give_back_call(struct rpc_peer *peer, struct call *call) {
    (void)pthread_mutex_lock(&peer->lock);
    call->next_free = peer->free;
    peer->free = call;
    (void)pthread_mutex_unlock(&peer->lock);
}

void rpc_peer_abort(struct rpc_peer *peer) {
    atomic_store(&peer->condemned, true);
    (void)pthread_mutex_lock(&peer->lock);
    struct call *call = peer->all;
    (void)pthread_mutex_unlock(&peer->lock);
    for (; call != NULL; call = call->next) // later ones are put in front; these stay
        nng_aio_abort(call->aio, NNG_ECONNABORTED);
}

// Milliseconds left, rounded up so that NNG's timer is never the earlier one.
static nng_duration ms_left(int64_t deadline_us) {
    int64_t left_us = deadline_us - base_monotonic_us();
    int64_t left_ms = left_us <= 0 ? 0 : (left_us + US_PER_MS - 1) / US_PER_MS;
    return left_ms > INT32_MAX ? INT32_MAX : (nng_duration)left_ms;
}

static bool send_request(struct call *call, const Dunlin__V1__RpcRequest *request, int64_t deadline_us) {
    nng_msg *message = pack(request);
    if (message == NULL)
        return false;
    nng_duration left_ms = ms_left(deadline_us);
    nng_aio_set_msg(call->aio, message);
    nng_aio_set_timeout(call->aio, left_ms < SEND_MAX_MS ? left_ms : SEND_MAX_MS);
    nng_ctx_send(call->ctx, call->aio);
    nng_aio_wait(call->aio);
    if (nng_aio_result(call->aio) == 0)
        return true;
    nng_msg_free(nng_aio_get_msg(call->aio)); // a failed send gives it back
    return false;
}

static enum rpc_sent receive_answer(
    struct rpc_peer *peer, struct call *call, int64_t deadline_us, struct rpc_answer *out) {
    nng_aio_set_timeout(call->aio, ms_left(deadline_us));
    nng_ctx_recv(call->ctx, call->aio);
    nng_aio_wait(call->aio);
    int result = nng_aio_result(call->aio);
    if (result == NNG_ETIMEDOUT)
        return RPC_SENT_LATE;
    if (result != 0)
        return RPC_SENT_LOST;
    nng_msg *message = nng_aio_get_msg(call->aio);
    atomic_store(&peer->heard_us, base_monotonic_us());
    *out =
        (struct rpc_answer){.bytes = nng_msg_body(message), .len = nng_msg_len(message), .message = message};
    return RPC_SENT_ANSWERED;
}

enum rpc_sent rpc_peer_call(struct rpc_peer *peer, const Dunlin__V1__RpcRequest *request, int64_t deadline_us,
    struct rpc_answer *out) {
    if (atomic_load(&peer->condemned))
        return RPC_SENT_NOTHING;
    struct call *call = borrow_call(peer);
    if (call == NULL)
        return RPC_SENT_NOTHING;
    enum rpc_sent sent = RPC_SENT_NOTHING;
    if (send_request(call, request, deadline_us))
        sent = receive_answer(peer, call, deadline_us, out);
    give_back_call(peer, call);
    return sent;
}
