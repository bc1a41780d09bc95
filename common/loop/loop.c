// SPDX-License-Identifier: MIT
#include "common/loop/loop.h"

#include <stdlib.h>
#include <uv.h>

struct loop {
    uv_loop_t uv;
};

// Each handle embeds its libuv handle; libuv lets its memory go only in the close callback, a turn after
// uv_close().
struct loop_timer {
    uv_timer_t uv;
    // Carries a span of 0 ms. libuv before 1.45 runs a 0-ms timer that its own callback starts again in the
    // same pass, and never comes to poll; an idle handle has its turn once a round and keeps the round from
    // sleeping.
    uv_idle_t idle;
    int open; // of the two
    loop_call *call;
    void *arg;
};

struct loop_watch {
    uv_poll_t uv;
    unsigned wanted;
    loop_ready *ready;
    void *arg;
};

struct loop_wake {
    uv_async_t uv;
    loop_call *call;
    void *arg;
};

struct loop *loop_create(void) {
    struct loop *loop = base_calloc(1, sizeof *loop);
    REQUIRE(uv_loop_init(&loop->uv) == 0);
    return loop;
}

void loop_run(struct loop *loop) {
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop) {
    uv_stop(&loop->uv);
}

void loop_free(struct loop *loop) {
    if (loop == NULL)
        return;
    // What was freed after the last turn still has its close callbacks to come, and a stop that came after it
    // swallows one turn. A handle that its owner forgot makes the close fail.
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
    REQUIRE(uv_loop_close(&loop->uv) == 0);
    free(loop);
}

static void free_closed(uv_handle_t *handle) {
    free(handle->data);
}

static void fire(struct loop_timer *timer) {
    (void)uv_idle_stop(&timer->idle);
    timer->call(timer->arg);
}

static void on_timer(uv_timer_t *uv) {
    fire(uv->data);
}

static void on_idle(uv_idle_t *uv) {
    fire(uv->data);
}

struct loop_timer *loop_timer_create(struct loop *loop, loop_call *call, void *arg) {
    struct loop_timer *timer = base_calloc(1, sizeof *timer);
    timer->call = call;
    timer->arg = arg;
    timer->open = 2;
    REQUIRE(uv_timer_init(&loop->uv, &timer->uv) == 0);
    REQUIRE(uv_idle_init(&loop->uv, &timer->idle) == 0);
    timer->uv.data = timer;
    timer->idle.data = timer;
    return timer;
}

void loop_timer_start(struct loop_timer *timer, int64_t ms) {
    loop_timer_stop(timer);
    if (ms <= 0) {
        REQUIRE(uv_idle_start(&timer->idle, on_idle) == 0);
        return;
    }
    // libuv counts from the time it read when the turn began: what the turn has used up since is added, so
    // that no timer is early. Moving libuv's time instead would let timers starve the poll.
    uint64_t now = uv_hrtime() / 1000000;
    uint64_t turn = uv_now(timer->uv.loop);
    uint64_t span = (uint64_t)ms + (now > turn ? now - turn : 0);
    REQUIRE(uv_timer_start(&timer->uv, on_timer, span, 0) == 0);
}

void loop_timer_stop(struct loop_timer *timer) {
    (void)uv_timer_stop(&timer->uv);
    (void)uv_idle_stop(&timer->idle);
}

static void timer_closed(uv_handle_t *handle) {
    struct loop_timer *timer = handle->data;
    if (--timer->open == 0)
        free(timer);
}

void loop_timer_free(struct loop_timer *timer) {
    if (timer == NULL)
        return;
    uv_close((uv_handle_t *)&timer->uv, timer_closed);
    uv_close((uv_handle_t *)&timer->idle, timer_closed);
}

static void on_ready(uv_poll_t *uv, int status, int events) {
    struct loop_watch *watch = uv->data;
    unsigned ready = 0;
    // libuv has paused the watch after an error (EPOLLERR): what the owner waits for will show it.
    if (status < 0)
        ready = watch->wanted;
    if ((events & UV_READABLE) != 0)
        ready |= LOOP_READ;
    if ((events & UV_WRITABLE) != 0)
        ready |= LOOP_WRITE;
    if (ready != 0)
        watch->ready(watch->arg, ready);
}

struct loop_watch *loop_watch_create(struct loop *loop, int fd, loop_ready *ready, void *arg) {
    struct loop_watch *watch = base_calloc(1, sizeof *watch);
    watch->ready = ready;
    watch->arg = arg;
    REQUIRE(uv_poll_init(&loop->uv, &watch->uv, fd) == 0);
    watch->uv.data = watch;
    return watch;
}

void loop_watch_set(struct loop_watch *watch, unsigned events) {
    watch->wanted = events;
    int wanted =
        ((events & LOOP_READ) != 0 ? UV_READABLE : 0) | ((events & LOOP_WRITE) != 0 ? UV_WRITABLE : 0);
    if (wanted == 0)
        REQUIRE(uv_poll_stop(&watch->uv) == 0);
    else
        REQUIRE(uv_poll_start(&watch->uv, wanted, on_ready) == 0);
}

void loop_watch_free(struct loop_watch *watch) {
    if (watch != NULL)
        uv_close((uv_handle_t *)&watch->uv, free_closed);
}

static void on_wake(uv_async_t *uv) {
    struct loop_wake *wake = uv->data;
    wake->call(wake->arg);
}

struct loop_wake *loop_wake_create(struct loop *loop, loop_call *call, void *arg) {
    struct loop_wake *wake = base_calloc(1, sizeof *wake);
    wake->call = call;
    wake->arg = arg;
    REQUIRE(uv_async_init(&loop->uv, &wake->uv, on_wake) == 0);
    wake->uv.data = wake;
    return wake;
}

void loop_wake_send(struct loop_wake *wake) {
    REQUIRE(uv_async_send(&wake->uv) == 0);
}

void loop_wake_free(struct loop_wake *wake) {
    if (wake != NULL)
        uv_close((uv_handle_t *)&wake->uv, free_closed);
}
