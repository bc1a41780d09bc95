// SPDX-License-Identifier: MIT
#include "common/loop/loop_offload.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

struct job {
    struct loop *loop;
    pthread_t worked_on;
    atomic_bool may_end;
    atomic_bool worked;
    atomic_int dropped;
    int done;
};

static void work(void *arg) {
    struct job *job = arg;
    while (!atomic_load(&job->may_end))
        (void)sched_yield();
    job->worked_on = pthread_self();
    atomic_store(&job->worked, true);
}

static void done(void *arg) {
    struct job *job = arg;
    job->done++;
    loop_stop(job->loop);
}

static void drop(void *arg) {
    struct job *job = arg;
    atomic_fetch_add(&job->dropped, 1);
}

static struct loop_offload *start(struct job *job) {
    const struct loop_offload_job offload = {.work = work, .done = done, .drop = drop, .job = job};
    struct loop_offload *handle = loop_offload_start(job->loop, &offload);
    assert_non_null(handle);
    return handle;
}

static void wait_for_drop(struct job *job) {
    int64_t until = base_monotonic_us() + 5 * US_PER_S;
    while (atomic_load(&job->dropped) == 0 && base_monotonic_us() < until)
        (void)sched_yield();
    assert_int_equal(atomic_load(&job->dropped), 1);
    assert_int_equal(job->done, 0);
}

static void test_works_elsewhere_and_ends_here(void **state) {
    (void)state;
    struct job job = {.loop = loop_create(), .may_end = true};
    (void)start(&job);
    loop_run(job.loop);
    assert_int_equal(job.done, 1);
    assert_true(atomic_load(&job.worked));
    assert_false(pthread_equal(job.worked_on, pthread_self()));
    assert_int_equal(atomic_load(&job.dropped), 0);
    loop_free(job.loop);
}

static void test_cancelled_before_its_end(void **state) {
    (void)state;
    struct job job = {.loop = loop_create()};
    loop_offload_cancel(start(&job)); // does not wait
    loop_free(job.loop);
    assert_int_equal(atomic_load(&job.dropped), 0);
    atomic_store(&job.may_end, true);
    wait_for_drop(&job);
}

static void test_cancelled_after_its_end(void **state) {
    (void)state;
    struct job job = {.loop = loop_create(), .may_end = true};
    struct loop_offload *offload = start(&job);
    while (!atomic_load(&job.worked))
        (void)sched_yield();
    loop_offload_cancel(offload);
    wait_for_drop(&job);
    loop_free(job.loop);
    loop_offload_cancel(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_works_elsewhere_and_ends_here),
        cmocka_unit_test(test_cancelled_before_its_end),
        cmocka_unit_test(test_cancelled_after_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
