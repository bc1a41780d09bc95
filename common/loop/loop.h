// SPDX-License-Identifier: MIT
// The event loop of one thread. A loop and all that hangs on it belong to the thread that runs it;
// loop_wake_send() is the one call for others. The only includer of libuv.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

struct loop;
struct loop_timer;
struct loop_watch;
struct loop_wake;

struct loop *loop_create(void);
// Runs until loop_stop(), called from within a callback.
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
// Free what hangs on it first.
void loop_free(struct loop *loop);

typedef void loop_call(void *arg);

// A timer that fires once per start. 0 ms: in the next turn of the loop, after the others have had theirs.
struct loop_timer *loop_timer_create(struct loop *loop, loop_call *call, void *arg);
void loop_timer_start(struct loop_timer *timer, int64_t ms);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer);

// Readiness of a descriptor, level-triggered. The descriptor stays the caller's; free the watch before
// closing it. An error on it is reported as all that the watch waits for, once: then the watch pauses until
// it is set again.
enum { LOOP_READ = 1, LOOP_WRITE = 2 };
typedef void loop_ready(void *arg, unsigned events);
struct loop_watch *loop_watch_create(struct loop *loop, int fd, loop_ready *ready, void *arg);
void loop_watch_set(struct loop_watch *watch, unsigned events); // 0: pause
void loop_watch_free(struct loop_watch *watch);

// From any thread: the callback runs on the loop's thread soon, once for any number of sends before it.
struct loop_wake *loop_wake_create(struct loop *loop, loop_call *call, void *arg);
void loop_wake_send(struct loop_wake *wake);
void loop_wake_free(struct loop_wake *wake);
