// SPDX-License-Identifier: MIT
#include "common/loop/loop_offload.h"

#include <pthread.h>
#include <stdlib.h>

struct loop_offload {
    pthread_mutex_t lock; // over what follows; the wake is alive while not cancelled
    bool finished;
    bool cancelled;
    struct loop_wake *wake;
    struct loop_offload_job job;
};

static void release(struct loop_offload *offload) {
    (void)pthread_mutex_destroy(&offload->lock);
    free(offload);
}

static void *run(void *arg) {
    struct loop_offload *offload = arg;
    offload->job.work(offload->job.job);
    (void)pthread_mutex_lock(&offload->lock);
    bool cancelled = offload->cancelled;
    offload->finished = true;
    if (!cancelled)
        loop_wake_send(offload->wake);
    (void)pthread_mutex_unlock(&offload->lock);
    // From here on a job that was not cancelled belongs to the loop.
    if (cancelled) {
        offload->job.drop(offload->job.job);
        release(offload);
    }
    return NULL;
}

static void on_wake(void *arg) {
    struct loop_offload *offload = arg;
    // The thread sends while it holds the lock: after this it touches nothing.
    (void)pthread_mutex_lock(&offload->lock);
    (void)pthread_mutex_unlock(&offload->lock);
    struct loop_offload_job job = offload->job;
    loop_wake_free(offload->wake);
    release(offload);
    job.done(job.job);
}

struct loop_offload *loop_offload_start(struct loop *loop, const struct loop_offload_job *job) {
    struct loop_offload *offload = base_calloc(1, sizeof *offload);
    offload->job = *job;
    (void)pthread_mutex_init(&offload->lock, NULL);
    offload->wake = loop_wake_create(loop, on_wake, offload);
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    int failed = pthread_create(&thread, &attributes, run, offload);
    (void)pthread_attr_destroy(&attributes);
    if (failed == 0)
        return offload;
    loop_wake_free(offload->wake);
    release(offload);
    return NULL;
}

void loop_offload_cancel(struct loop_offload *offload) {
    if (offload == NULL)
        return;
    (void)pthread_mutex_lock(&offload->lock);
    offload->cancelled = true;
    bool finished = offload->finished;
    loop_wake_free(offload->wake);
    (void)pthread_mutex_unlock(&offload->lock);
    if (finished) {
        offload->job.drop(offload->job.job);
        release(offload);
    }
}
