// SPDX-License-Identifier: MIT
#include "services/redirector/gateway.h"

#include <pthread.h>
#include <stdlib.h>

struct gateway {
    struct gateway_options options;
    pthread_mutex_t lock; // guards what follows
    pthread_cond_t filled;
    struct gateway_job *first;
    struct gateway_job **last;
    unsigned waiting;
    bool stopping;
    pthread_t threads[]; // options.threads
};

static struct gateway_job *take(struct gateway *gateway) {
    (void)pthread_mutex_lock(&gateway->lock);
    while (gateway->first == NULL && !gateway->stopping)
        (void)pthread_cond_wait(&gateway->filled, &gateway->lock);
    struct gateway_job *job = gateway->first;
    if (job != NULL) {
        gateway->first = job->next;
        if (gateway->first == NULL)
            gateway->last = &gateway->first;
        gateway->waiting--;
    }
    (void)pthread_mutex_unlock(&gateway->lock);
    return job;
}

static void *run(void *arg) {
    struct gateway *gateway = arg;
    for (struct gateway_job *job = take(gateway); job != NULL; job = take(gateway)) {
        api_answer(&gateway->options.api, &job->request, &job->answer);
        job->done(job);
    }
    return NULL;
}

struct gateway *gateway_start(const struct gateway_options *options) {
    struct gateway *gateway = base_calloc(1, sizeof *gateway + options->threads * sizeof(pthread_t));
    gateway->options = *options;
    gateway->last = &gateway->first;
    (void)pthread_mutex_init(&gateway->lock, NULL);
    (void)pthread_cond_init(&gateway->filled, NULL);
    for (unsigned i = 0; i < options->threads; i++)
        REQUIRE(pthread_create(&gateway->threads[i], NULL, run, gateway) == 0);
    return gateway;
}

void gateway_stop(struct gateway *gateway) {
    if (gateway == NULL)
        return;
    (void)pthread_mutex_lock(&gateway->lock);
    gateway->stopping = true;
    (void)pthread_cond_broadcast(&gateway->filled);
    (void)pthread_mutex_unlock(&gateway->lock);
    for (unsigned i = 0; i < gateway->options.threads; i++)
        (void)pthread_join(gateway->threads[i], NULL);
    (void)pthread_cond_destroy(&gateway->filled);
    (void)pthread_mutex_destroy(&gateway->lock);
    free(gateway);
}

bool gateway_submit(struct gateway *gateway, struct gateway_job *job) {
    job->next = NULL;
    (void)pthread_mutex_lock(&gateway->lock);
    bool taken = gateway->waiting < gateway->options.queue_max && !gateway->stopping;
    if (taken) {
        *gateway->last = job;
        gateway->last = &job->next;
        gateway->waiting++;
        (void)pthread_cond_signal(&gateway->filled);
    }
    (void)pthread_mutex_unlock(&gateway->lock);
    return taken;
}
