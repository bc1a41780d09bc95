// SPDX-License-Identifier: MIT
#include "common/db/db_watch.h"
#include "common/log/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct db_watch {
    struct db *db;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; // under lock
    atomic_bool up;
    bool told; // the log knows the current state
};

static bool ask(struct db_watch *watch) {
    struct db_rows *rows = NULL;
    if (db_call(watch->db, base_monotonic_us() + US_PER_S, "SELECT 1", 0, NULL, &rows) != STATUS_OK)
        return false;
    db_rows_free(rows);
    return true;
}

static void note(struct db_watch *watch, bool up) {
    bool before = atomic_exchange(&watch->up, up);
    if (watch->told && before == up)
        return;
    watch->told = true;
    if (up)
        log_info("Postgres is reachable");
    else
        log_warn("waiting for Postgres", log_text("error", db_error_text(watch->db)));
}

static void *run(void *arg) {
    struct db_watch *watch = arg;
    (void)pthread_mutex_lock(&watch->lock);
    while (!watch->stopping) {
        (void)pthread_mutex_unlock(&watch->lock);
        note(watch, ask(watch));
        int64_t until = base_monotonic_us() + US_PER_S;
        struct timespec at = {.tv_sec = until / US_PER_S, .tv_nsec = until % US_PER_S * 1000};
        (void)pthread_mutex_lock(&watch->lock);
        if (!watch->stopping)
            (void)pthread_cond_timedwait(&watch->wake, &watch->lock, &at);
    }
    (void)pthread_mutex_unlock(&watch->lock);
    return NULL;
}

struct db_watch *db_watch_start(const struct db_options *options) {
    struct db_watch *watch = base_calloc(1, sizeof *watch);
    watch->db = db_create(options);
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&watch->lock, NULL);
    (void)pthread_cond_init(&watch->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    REQUIRE(pthread_create(&watch->thread, NULL, run, watch) == 0);
    return watch;
}

void db_watch_stop(struct db_watch *watch) {
    if (watch == NULL)
        return;
    (void)pthread_mutex_lock(&watch->lock);
    watch->stopping = true;
    (void)pthread_cond_signal(&watch->wake);
    (void)pthread_mutex_unlock(&watch->lock);
    (void)pthread_join(watch->thread, NULL);
    (void)pthread_cond_destroy(&watch->wake);
    (void)pthread_mutex_destroy(&watch->lock);
    db_free(watch->db);
    free(watch);
}

bool db_watch_is_up(const struct db_watch *watch) {
    return atomic_load(&watch->up);
}
