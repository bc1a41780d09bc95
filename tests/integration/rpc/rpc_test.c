// SPDX-License-Identifier: MIT
// Calls from end to end on loopback: answers, refusals, deadlines, metadata, a full queue, a drain, many
// threads.
#include "tests/integration/rpc/keyrange_fake.h"

#include "dunlin/v1/health.pb-c.h"

static struct rpc_server *server;
static struct rpc_client *client;

static int open_both(void **state) {
    (void)state;
    atomic_store(&fake_begun, 0);
    atomic_store(&fake_ready, true);
    fake_gate(false);
    server = fake_start(0, 4, 64);
    client = server == NULL ? NULL : fake_client(rpc_server_port(server), NULL);
    return client == NULL ? -1 : 0;
}

static int close_both(void **state) {
    (void)state;
    fake_gate(true);
    rpc_client_close(client);
    rpc_server_stop(server, US_PER_S);
    return 0;
}

static void a_call_right_after_open_is_answered(void **state) {
    (void)state;
    uint64_t block[2] = {0};
    assert_int_equal(fake_claim(client, 3, 40, block), STATUS_OK);
    assert_int_equal(block[0], 40);
    assert_int_equal(block[1], 43);
    assert_true(rpc_client_is_up(client));
}

static void a_refusal_comes_over_whole(void **state) {
    (void)state;
    uint64_t block[2] = {0};
    assert_int_equal(fake_claim(client, 3, FAKE_FAIL, block), STATUS_ABORTED);
    const struct problem *why = rpc_outcome();
    assert_string_equal(why->reason, "TOO_BUSY");
    assert_string_equal(why->message, "Not now.");
    assert_int_equal(why->retry_after_s, 7);
    assert_int_equal(why->violation_count, 2);
    assert_string_equal(why->violations[1].field, "size");
    assert_string_equal(why->violations[1].rule, "It must be small.");
    assert_int_equal(fake_claim(client, 3, 1, block), STATUS_OK);
}

static void deadline_and_metadata_are_passed_on(void **state) {
    (void)state;
    uint64_t block[2] = {0};
    struct rpc_context context = {.deadline_us = base_monotonic_us() + 5 * US_PER_S,
        .authorization = "Bearer secret",
        .request_id = "req-1",
        .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
    const struct rpc_context *before = rpc_context_swap(&context);
    assert_int_equal(fake_claim(client, 1, 1, block), STATUS_OK);
    (void)rpc_context_swap(before);
    assert_string_equal(fake_seen.authorization, "Bearer secret");
    assert_string_equal(fake_seen.request_id, "req-1");
    assert_string_equal(fake_seen.traceparent, context.traceparent);
    assert_in_range(fake_left_us, 1, 5 * US_PER_S);
    assert_int_equal(fake_claim(client, 1, 1, block), STATUS_OK);
    assert_string_equal(fake_seen.request_id, "");
    assert_string_equal(fake_seen.authorization, "");
    assert_in_range(fake_left_us, 5 * US_PER_S, 10 * US_PER_S);
}

static void bad_metadata_is_refused_by_name(void **state) {
    (void)state;
    uint64_t block[2] = {0};
    struct rpc_context context = {.request_id = "no spaces"};
    const struct rpc_context *before = rpc_context_swap(&context);
    assert_int_equal(fake_claim(client, 1, 1, block), STATUS_INVALID_ARGUMENT);
    (void)rpc_context_swap(before);
    assert_string_equal(rpc_outcome()->violations[0].field, "request_id");
    assert_int_equal(atomic_load(&fake_begun), 0);
}

static void a_late_answer_is_not_waited_for(void **state) {
    (void)state;
    uint64_t block[2] = {0};
    int64_t begun_us = base_monotonic_us();
    assert_int_equal(fake_claim_within(client, FAKE_HOLD, 200 * US_PER_MS), STATUS_DEADLINE_EXCEEDED);
    assert_in_range(base_monotonic_us() - begun_us, 190 * US_PER_MS, 5 * US_PER_S);
    assert_int_equal(fake_claim_within(client, 1, 0), STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(fake_claim(client, 1, 1, block), STATUS_OK);
}

struct caller {
    pthread_t thread;
    uint64_t size;
    uint32_t slot;
    enum status status;
    struct problem problem;
    unsigned wrong;
};

static void *call_once(void *arg) {
    struct caller *caller = arg;
    uint64_t block[2];
    caller->status = fake_claim(client, 0, caller->size, block);
    caller->problem = *rpc_outcome();
    return NULL;
}

static bool four_began(void *arg) {
    (void)arg;
    return atomic_load(&fake_begun) >= 4;
}

static void hold_all_workers(struct caller callers[4]) {
    for (size_t i = 0; i < 4; i++) {
        callers[i] = (struct caller){.size = FAKE_HOLD};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_once, &callers[i]), 0);
    }
    assert_true(fake_comes_true(four_began, NULL));
}

static void join_all(struct caller *callers, size_t count, enum status status) {
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].status, status);
    }
}

static void work_that_waited_past_its_deadline_is_not_begun(void **state) {
    (void)state;
    struct caller callers[4];
    uint64_t block[2];
    hold_all_workers(callers);
    assert_int_equal(fake_claim_within(client, 5, 100 * US_PER_MS), STATUS_DEADLINE_EXCEEDED);
    // The server counts from when the request came, so that its deadline is the later one.
    const struct timespec well_past = {.tv_nsec = 200 * 1000 * 1000};
    (void)nanosleep(&well_past, NULL);
    fake_gate(true);
    join_all(callers, 4, STATUS_OK);
    assert_int_equal(fake_claim(client, 1, 6, block), STATUS_OK); // the four workers went past the dead one
    assert_int_equal(atomic_load(&fake_begun), 5);
}

static void a_full_queue_refuses_and_still_answers_pings(void **state) {
    (void)state;
    struct caller callers[4];
    struct rpc_server *narrow = fake_start(0, 4, 4);
    struct rpc_client *old = client;
    uint64_t block[2];
    client = fake_client(rpc_server_port(narrow), NULL);
    hold_all_workers(callers);
    assert_int_equal(fake_claim(client, 1, 1, block), STATUS_RESOURCE_EXHAUSTED);
    assert_string_equal(rpc_outcome()->reason, "QUEUE_FULL");
    int64_t end_us = base_monotonic_us() + 4 * US_PER_S; // longer than missing pings are put up with
    while (base_monotonic_us() < end_us) {
        fake_pause();
        assert_true(rpc_client_is_up(client));
    }
    fake_gate(true);
    join_all(callers, 4, STATUS_OK);
    assert_int_equal(fake_claim(client, 1, 1, block), STATUS_OK);
    rpc_client_close(client);
    rpc_server_stop(narrow, US_PER_S);
    client = old;
}

static void *call_often(void *arg) {
    struct caller *caller = arg;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t block[2] = {0};
        enum status status = fake_claim(client, caller->slot, i, block);
        if (status != STATUS_OK || block[0] != i || block[1] != i + caller->slot)
            caller->wrong++;
    }
    return NULL;
}

static void eight_threads_get_their_own_answers(void **state) {
    (void)state;
    struct caller callers[8];
    for (uint32_t i = 0; i < 8; i++) {
        callers[i] = (struct caller){.slot = i};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    join_all(callers, 8, STATUS_OK);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(callers[i].wrong, 0);
    assert_int_equal(atomic_load(&fake_begun), 8000);
}

static void keep_serving(const Dunlin__V1__HealthCheckResponse *answer, void *data) {
    *(int *)data = answer == NULL ? -1 : (int)answer->serving;
}

static void a_second_service_shares_the_sockets(void **state) {
    (void)state;
    int serving = -1;
    Dunlin__V1__HealthCheckRequest request = DUNLIN__V1__HEALTH_CHECK_REQUEST__INIT;
    ProtobufCService *health = rpc_client_add_service(client, &dunlin__v1__health__descriptor, NULL);
    dunlin__v1__health__check(health, &request, keep_serving, &serving);
    assert_int_equal(serving, DUNLIN__V1__HEALTH_CHECK_RESPONSE__SERVING__SERVING);
    atomic_store(&fake_ready, false);
    dunlin__v1__health__check(health, &request, keep_serving, &serving);
    assert_int_equal(serving, DUNLIN__V1__HEALTH_CHECK_RESPONSE__SERVING__NOT_SERVING);
    assert_true(fake_comes_true(fake_is_down, client));
    assert_int_equal(fake_claim_within(client, 1, US_PER_S), STATUS_OK); // it is asked all the same
    atomic_store(&fake_ready, true);
    assert_true(fake_comes_true(fake_is_up, client));
}

static void an_unknown_method_is_unimplemented(void **state) {
    (void)state;
    static const ProtobufCMethodDescriptor methods[] = {
        {"Nothing", &dunlin__v1__claim_block_request__descriptor, &dunlin__v1__block__descriptor}};
    static const unsigned order[] = {0};
    static const ProtobufCServiceDescriptor unknown = {
        PROTOBUF_C__SERVICE_DESCRIPTOR_MAGIC, "dunlin.v1.Keyrange", "K", "K", "dunlin.v1", 1, methods, order};
    uint64_t block[2];
    Dunlin__V1__ClaimBlockRequest request = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    ProtobufCService *service = rpc_client_add_service(client, &unknown, NULL);
    service->invoke(service, 0, &request.base, (ProtobufCClosure)(void (*)(void))fake_keep, block);
    assert_int_equal(rpc_outcome()->status, STATUS_UNIMPLEMENTED);
}

static void a_drain_refuses_new_work_and_finishes_old(void **state) {
    (void)state;
    struct caller callers[4];
    uint64_t block[2];
    hold_all_workers(callers);
    rpc_server_drain(server);
    assert_int_equal(fake_claim(client, 1, 1, block), STATUS_UNAVAILABLE);
    assert_string_equal(rpc_outcome()->reason, "DRAINING");
    assert_true(fake_comes_true(fake_is_down, client));
    fake_gate(true);
    join_all(callers, 4, STATUS_OK);
}

static void a_drain_goes_to_the_other_address(void **state) {
    (void)state;
    char target[96];
    uint64_t block[2];
    struct rpc_server *other = fake_start(0, 1, 4);
    (void)snprintf(target, sizeof target, "tcp://127.0.0.1:%u,tcp://127.0.0.1:%u", rpc_server_port(server),
        rpc_server_port(other));
    struct rpc_client *both = fake_client_to(target, NULL);
    assert_int_equal(fake_claim(both, 1, 1, block), STATUS_OK);
    rpc_server_drain(server);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(fake_claim(both, 1, 1, block), STATUS_OK);
        fake_pause();
    }
    rpc_client_close(both);
    rpc_server_stop(other, US_PER_S);
}

static void *stop_at_once(void *arg) {
    rpc_server_stop(arg, 0);
    return NULL;
}

static bool one_began(void *arg) {
    (void)arg;
    return atomic_load(&fake_begun) >= 1;
}

static void a_stop_answers_what_waits_and_what_runs(void **state) {
    (void)state;
    struct caller running = {.size = FAKE_HOLD};
    struct caller waiting[3];
    pthread_t stopper;
    struct rpc_server *one = fake_start(0, 1, 8);
    struct rpc_client *old = client;
    client = fake_client(rpc_server_port(one), NULL);
    assert_int_equal(pthread_create(&running.thread, NULL, call_once, &running), 0);
    assert_true(fake_comes_true(one_began, NULL));
    for (size_t i = 0; i < 3; i++) {
        waiting[i] = (struct caller){.size = 1};
        assert_int_equal(pthread_create(&waiting[i].thread, NULL, call_once, &waiting[i]), 0);
    }
    assert_int_equal(pthread_create(&stopper, NULL, stop_at_once, one), 0);
    join_all(waiting, 3, STATUS_UNAVAILABLE);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(waiting[i].problem.reason, "DRAINING");
    fake_gate(true);
    join_all(&running, 1, STATUS_OK);
    (void)pthread_join(stopper, NULL);
    rpc_client_close(client);
    client = old;
}

static void a_port_in_use_and_an_open_one_are_refused(void **state) {
    (void)state;
    struct rpc_server *second = NULL;
    struct problem why;
    char listen[64];
    struct rpc_server_options options = {
        .listen = listen, .workers = 1, .queue_max = 1, .timeout_us = 1, .worker_open = fake_open};
    (void)snprintf(listen, sizeof listen, "tcp://127.0.0.1:%u", rpc_server_port(server));
    assert_int_equal(rpc_server_start(&options, &second, &why), STATUS_UNAVAILABLE);
    assert_non_null(strstr(why.message, listen));
    options.listen = "tcp://0.0.0.0:0";
    assert_int_equal(rpc_server_start(&options, &second, &why), STATUS_INVALID_ARGUMENT);
    assert_string_equal(why.reason, "NOT_LOOPBACK");
    assert_null(second);
}

static void metrics_name_calls(void **state) {
    (void)state;
    uint64_t block[2];
    struct buf text;
    assert_int_equal(fake_claim(client, 3, FAKE_FAIL, block), STATUS_ABORTED);
    buf_init(&text, 1024 * 1024);
    metrics_render(&text);
    static const char *const wanted[] = {"grpc_server_handled_total{grpc_service=\"dunlin.v1.Keyrange\",grpc_"
                                         "method=\"ClaimBlock\",grpc_code=\"ABORTED\"}",
        "grpc_client_handled_total{grpc_service=\"dunlin.v1.Keyrange\",grpc_method=\"ClaimBlock\",grpc_code="
        "\"ABORTED\"}",
        "grpc_server_handling_seconds_count{grpc_service=\"dunlin.v1.Keyrange\",grpc_method=\"ClaimBlock\"}",
        "dunlin_rpc_peer_up{peer=\"keyrange\"}", "dunlin_rpc_queue_requests ", "dunlin_rpc_malformed_total ",
        "dunlin_rpc_listener_rebuilds_total 0"};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (strstr(buf_text(&text), wanted[i]) == NULL)
            fail_msg("no %s in:\n%s", wanted[i], buf_text(&text));
    buf_done(&text);
}

#define WITH_BOTH(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_BOTH(a_call_right_after_open_is_answered),
        WITH_BOTH(a_refusal_comes_over_whole),
        WITH_BOTH(deadline_and_metadata_are_passed_on),
        WITH_BOTH(bad_metadata_is_refused_by_name),
        WITH_BOTH(a_late_answer_is_not_waited_for),
        WITH_BOTH(work_that_waited_past_its_deadline_is_not_begun),
        WITH_BOTH(a_full_queue_refuses_and_still_answers_pings),
        WITH_BOTH(eight_threads_get_their_own_answers),
        WITH_BOTH(a_second_service_shares_the_sockets),
        WITH_BOTH(an_unknown_method_is_unimplemented),
        WITH_BOTH(a_drain_refuses_new_work_and_finishes_old),
        WITH_BOTH(a_drain_goes_to_the_other_address),
        WITH_BOTH(a_stop_answers_what_waits_and_what_runs),
        WITH_BOTH(a_port_in_use_and_an_open_one_are_refused),
        WITH_BOTH(metrics_name_calls),
    };
    if (!log_open("rpc_test", "error"))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
