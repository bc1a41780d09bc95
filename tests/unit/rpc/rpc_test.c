// SPDX-License-Identifier: MIT
// What needs no socket: contexts and outcomes, the checks of what enters, and a request's way through the
// dispatch.
#include "common/rpc/rpc.h"

#include "common/rpc/rpc_arena.h"
#include "common/rpc/rpc_dispatch.h"
#include "common/rpc/rpc_envelope.h"
#include "common/rpc/rpc_resolve.h"
#include "common/rpc/rpc_text.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned handled;

// A keyrange service of this process. Slot 1 refuses, 2 says nothing, 3 answers twice, 4 closes without a
// reason.
static void claim_block(Dunlin__V1__Keyrange_Service *service, const Dunlin__V1__ClaimBlockRequest *request,
    Dunlin__V1__Block_Closure closure, void *data) {
    (void)service;
    Dunlin__V1__Block block = DUNLIN__V1__BLOCK__INIT;
    struct problem why = {0};
    handled++;
    block.slot = request->slot;
    block.end = request->size;
    switch (request->slot) {
    case 1:
        (void)problem_violate(&why, "size", "It must be at most %d.", 5);
        RPC_REFUSE(closure, &why, data);
        return;
    case 2:
        return;
    case 3:
        closure(&block, data);
        closure(&block, data);
        return;
    case 4:
        closure(NULL, data);
        return;
    default:
        RPC_ANSWER(closure, &block, data);
    }
}

static Dunlin__V1__Keyrange_Service keyrange = {
    .base = {&dunlin__v1__keyrange__descriptor, protobuf_c_service_invoke_internal, NULL},
    .claim_block = claim_block,
};
static const struct rpc_worker worker = {.services = {&keyrange.base}, .service_count = 1};
static struct rpc_dispatch dispatch;

static bool serving(void *arg) {
    (void)arg;
    return true;
}

static int open_dispatch(void **state) {
    (void)state;
    keyrange.claim_block = claim_block;
    rpc_dispatch_init(&dispatch, &worker, US_PER_S, serving, NULL);
    return 0;
}

static int close_dispatch(void **state) {
    (void)state;
    rpc_dispatch_done(&dispatch);
    return 0;
}

static void keep_end(const Dunlin__V1__Block *block, void *data) {
    *(uint64_t *)data = block == NULL ? 0 : block->end;
}

static void a_local_service_answers_and_refuses_like_a_remote_one(void **state) {
    (void)state;
    uint64_t end = 0;
    Dunlin__V1__ClaimBlockRequest request = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    request.size = 7;
    request.slot = 1;
    dunlin__v1__keyrange__claim_block(&keyrange.base, &request, keep_end, &end);
    assert_int_equal(end, 0);
    assert_int_equal(rpc_outcome()->status, STATUS_INVALID_ARGUMENT);
    assert_string_equal(rpc_outcome()->violations[0].field, "size");
    request.slot = 0;
    dunlin__v1__keyrange__claim_block(&keyrange.base, &request, keep_end, &end);
    assert_int_equal(end, 7);
    assert_int_equal(rpc_outcome()->status, STATUS_OK);
}

static void a_context_bounds_the_time_and_is_put_back(void **state) {
    (void)state;
    assert_int_equal(rpc_time_left_us(1234), 1234);
    const struct rpc_context past = {.deadline_us = 1};
    const struct rpc_context *before = rpc_context_swap(&past);
    assert_int_equal(rpc_time_left_us(1234), 0);
    const struct rpc_context soon = {.deadline_us = base_monotonic_us() + US_PER_S};
    assert_ptr_equal(rpc_context_swap(&soon), &past);
    assert_in_range(rpc_time_left_us(1234), 1, US_PER_S);
    (void)rpc_context_swap(before);
    assert_string_equal(rpc_context()->request_id, "");
    (void)rpc_context_swap(NULL);
    assert_int_equal(rpc_context()->deadline_us, 0);
}

static void a_cut_text_is_mended(void **state) {
    (void)state;
    char cut[] = "a\xE2\x82";
    rpc_text_mend(cut);
    assert_string_equal(cut, "a??");
}

// Unpacks an answer with one violation whose rule is these bytes.
static bool unpack_rule(const void *rule, size_t len, struct problem *why) {
    uint8_t bytes[64] = {0x08, 0x03, 0x2A, 0, 0x0A, 0x01, 'f', 0x12, 0};
    assert_true(len < 40);
    bytes[3] = (uint8_t)(5 + len);
    bytes[8] = (uint8_t)len;
    memcpy(bytes + 9, rule, len);
    struct rpc_arena arena;
    rpc_arena_init(&arena, 4096);
    bool good = rpc_unpack(&dunlin__v1__rpc_response__descriptor, bytes, 9 + len, &arena, "BAD", why) != NULL;
    rpc_arena_done(&arena);
    return good;
}

static void nested_texts_are_checked_and_named(void **state) {
    (void)state;
    struct problem why = {0};
    assert_true(unpack_rule("fine \xC3\xA9", 7, &why));
    assert_true(unpack_rule("", 0, &why));
    assert_false(unpack_rule("a\0b", 3, &why));
    assert_int_equal(why.status, STATUS_INVALID_ARGUMENT);
    assert_string_equal(why.violations[0].field, "violations[0].rule");
    assert_false(unpack_rule("a\xFF", 2, &why));
    assert_int_equal(why.status, STATUS_INVALID_ARGUMENT);
    assert_string_equal(why.violations[0].rule, "A text must be UTF-8.");
}

static void a_message_that_swells_is_refused(void **state) {
    (void)state;
    // 2 bytes each: a violation without its required fields costs a hundred bytes of memory before it is
    // refused.
    size_t len = 1024 * 1024;
    uint8_t *bytes = base_calloc(len, 1);
    struct problem why = {0};
    struct rpc_arena arena;
    for (size_t i = 0; i < len; i += 2)
        bytes[i] = 0x2A;
    rpc_arena_init(&arena, RPC_ARENA_MAX);
    assert_null(rpc_unpack(&dunlin__v1__rpc_response__descriptor, bytes, len, &arena, "BAD", &why));
    assert_int_equal(why.status, STATUS_RESOURCE_EXHAUSTED);
    assert_string_equal(why.reason, "MESSAGE_TOO_LARGE");
    assert_true(arena.total <= RPC_ARENA_MAX);
    rpc_arena_clear(&arena);
    assert_true(arena.total <= 4096);
    assert_non_null(arena.allocator.alloc(&arena, 100));
    assert_null(arena.allocator.alloc(&arena, SIZE_MAX));
    rpc_arena_done(&arena);
    free(bytes);
}

static void targets_are_parsed(void **state) {
    (void)state;
    struct rpc_targets targets;
    struct rpc_addresses found;
    struct problem why;
    static const char *const bad[] = {"", "tcp://", "127.0.0.1:1", "tcp://host",
        "tcp://host:", "tcp://host:0", "tcp://host:65536", "tcp://host:1x", "tcp://:1", "tcp://a/b:1",
        "tcp://::1:1", "tcp://[host]:1", "tcp://a:1,", "ipc:///tmp/x:1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(rpc_resolve_parse(bad[i], &targets, &why), STATUS_INVALID_ARGUMENT);
        assert_string_equal(why.reason, "BAD_TARGET");
    }
    assert_int_equal(
        rpc_resolve_parse("tcp://127.0.0.1:7001,tcp://[::1]:7002,tcp://127.0.0.1:7001", &targets, &why), 0);
    assert_true(rpc_resolve_is_numeric(&targets));
    rpc_resolve(&targets, &found);
    assert_true(found.complete);
    assert_int_equal(found.count, 2);
    assert_string_equal(found.items[0], "127.0.0.1:7001");
    assert_string_equal(found.items[1], "[::1]:7002");
    assert_int_equal(rpc_resolve_parse("tcp://writer.internal:7001", &targets, &why), 0);
    assert_false(rpc_resolve_is_numeric(&targets));
}

static void only_loopback_is_listened_on(void **state) {
    (void)state;
    char out[RPC_ADDRESS_MAX];
    struct problem why;
    static const char *const bad[] = {
        "tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://10.0.0.1:1", "tcp://example.org:1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(rpc_resolve_loopback(bad[i], out, &why), STATUS_INVALID_ARGUMENT);
        assert_string_equal(why.reason, "NOT_LOOPBACK");
        assert_non_null(strstr(why.message, bad[i]));
    }
    assert_int_equal(rpc_resolve_loopback("tcp://127.1.2.3:0", out, &why), STATUS_OK);
    assert_string_equal(out, "127.1.2.3:0");
    assert_int_equal(rpc_resolve_loopback("tcp://[::1]:7001", out, &why), STATUS_OK);
    assert_string_equal(out, "[::1]:7001");
    assert_int_equal(rpc_resolve_loopback("tcp://localhost:7001", out, &why), STATUS_OK);
    assert_string_equal(out, "127.0.0.1:7001");
}

// Runs bytes through the dispatch; the outcome as a client would read it.
static struct problem run_bytes(const void *bytes, size_t len, int64_t received_us) {
    struct rpc_response response;
    struct rpc_arena arena;
    struct problem out;
    rpc_arena_init(&arena, RPC_ARENA_MAX);
    rpc_response_init(&response);
    rpc_dispatch_run(&dispatch, &arena, bytes, len, received_us, &response);
    rpc_problem_read(&response.message, &out);
    rpc_response_done(&response);
    rpc_arena_done(&arena);
    return out;
}

static struct problem run_request(const Dunlin__V1__RpcRequest *request) {
    uint8_t bytes[1024];
    assert_true(dunlin__v1__rpc_request__get_packed_size(request) <= sizeof bytes);
    return run_bytes(bytes, dunlin__v1__rpc_request__pack(request, bytes), base_monotonic_us());
}

static struct problem run_claim(uint32_t slot, Dunlin__V1__RpcRequest request) {
    static char method[] = "dunlin.v1.Keyrange/ClaimBlock";
    static uint8_t body[64];
    Dunlin__V1__ClaimBlockRequest claim = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    claim.slot = slot;
    claim.size = 1;
    request.method = method;
    request.has_body = true;
    request.body.len = dunlin__v1__claim_block_request__pack(&claim, body);
    request.body.data = body;
    return run_request(&request);
}

static void handlers_are_held_to_one_answer(void **state) {
    (void)state;
    const Dunlin__V1__RpcRequest plain = DUNLIN__V1__RPC_REQUEST__INIT;
    assert_int_equal(run_claim(0, plain).status, STATUS_OK);
    assert_string_equal(run_claim(1, plain).violations[0].rule, "It must be at most 5.");
    assert_int_equal(run_claim(2, plain).status, STATUS_INTERNAL);
    assert_int_equal(run_claim(3, plain).status, STATUS_INTERNAL);
    assert_int_equal(run_claim(4, plain).status, STATUS_INTERNAL);
}

static void expect_violation(Dunlin__V1__RpcRequest request, const char *field) {
    unsigned before = handled;
    struct problem why = run_claim(0, request);
    assert_int_equal(why.status, STATUS_INVALID_ARGUMENT);
    assert_int_equal(why.violation_count, 1);
    assert_string_equal(why.violations[0].field, field);
    assert_int_equal(handled, before);
}

static void metadata_is_checked_and_named(void **state) {
    (void)state;
    static const char *const ids[] = {"", "a b", "a/b", "\xC3\xA9",
        "0123456789012345678901234567890123456789012345678901234567890123x", "a\n"};
    static const char *const parents[] = {"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"};
    static const char *const keys[] = {"", "Bearer \x7F", "Bearer \t", "\xC3\xA9"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        expect_violation(
            (Dunlin__V1__RpcRequest){.base = PROTOBUF_C_MESSAGE_INIT(&dunlin__v1__rpc_request__descriptor),
                .request_id = (char *)(uintptr_t)ids[i]},
            "request_id");
    for (size_t i = 0; i < ARRAY_LEN(parents); i++)
        expect_violation(
            (Dunlin__V1__RpcRequest){.base = PROTOBUF_C_MESSAGE_INIT(&dunlin__v1__rpc_request__descriptor),
                .traceparent = (char *)(uintptr_t)parents[i]},
            "traceparent");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        expect_violation(
            (Dunlin__V1__RpcRequest){.base = PROTOBUF_C_MESSAGE_INIT(&dunlin__v1__rpc_request__descriptor),
                .authorization = (char *)(uintptr_t)keys[i]},
            "authorization");
    Dunlin__V1__RpcRequest good = DUNLIN__V1__RPC_REQUEST__INIT;
    static char id[] = "0123456789012345678901234567890123456789012345678901234567890.-_";
    static char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    good.request_id = id;
    good.traceparent = parent;
    assert_int_equal(run_claim(0, good).status, STATUS_OK);
}

static void work_past_its_deadline_is_not_begun(void **state) {
    (void)state;
    Dunlin__V1__RpcRequest request = DUNLIN__V1__RPC_REQUEST__INIT;
    unsigned before = handled;
    request.has_timeout_ms = true;
    assert_int_equal(run_claim(0, request).status, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(handled, before);
    request.timeout_ms = UINT32_MAX;
    assert_int_equal(run_claim(0, request).status, STATUS_OK);
}

static void unknown_methods_are_unimplemented(void **state) {
    (void)state;
    static char names[][48] = {"", "/", "ClaimBlock", "dunlin.v1.Keyrange", "dunlin.v1.Keyrange/",
        "dunlin.v1.Keyrang/ClaimBlock", "dunlin.v1.Keyrange/claimblock", "dunlin.v1.Health/Other",
        "dunlin.v1.Keyrange/ClaimBlock/"};
    Dunlin__V1__RpcRequest request = DUNLIN__V1__RPC_REQUEST__INIT;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        request.method = names[i];
        assert_int_equal(run_request(&request).status, STATUS_UNIMPLEMENTED);
    }
    keyrange.claim_block = NULL;
    const Dunlin__V1__RpcRequest plain = DUNLIN__V1__RPC_REQUEST__INIT;
    assert_int_equal(run_claim(0, plain).status, STATUS_UNIMPLEMENTED);
    keyrange.claim_block = claim_block;
}

static void health_is_known_in_any_form(void **state) {
    (void)state;
    static char name[] = RPC_HEALTH_METHOD;
    uint8_t bytes[64];
    Dunlin__V1__RpcRequest request = DUNLIN__V1__RPC_REQUEST__INIT;
    request.method = name;
    size_t len = dunlin__v1__rpc_request__pack(&request, bytes);
    assert_true(rpc_dispatch_is_ping(bytes, len));
    assert_false(rpc_dispatch_is_ping(bytes, len - 1));
    assert_int_equal(run_request(&request).status, STATUS_OK);
}

static void an_answer_over_the_limit_says_so(void **state) {
    (void)state;
    struct rpc_response response;
    Dunlin__V1__RpcRequest large = DUNLIN__V1__RPC_REQUEST__INIT;
    static char method[] = "m";
    uint8_t *bytes = base_calloc(RPC_MESSAGE_MAX, 1);
    large.method = method;
    large.has_body = true;
    large.body.data = bytes;
    rpc_response_init(&response);
    large.body.len = RPC_MESSAGE_MAX - 13; // 3 for the method, 4 + 4 for the two bodies, 2 for the code
    rpc_response_answer(&response, &large.base);
    assert_int_equal(response.message.code, STATUS_OK);
    assert_int_equal(dunlin__v1__rpc_response__get_packed_size(&response.message), RPC_MESSAGE_MAX);
    large.body.len++;
    rpc_response_answer(&response, &large.base);
    assert_int_equal(response.message.code, STATUS_RESOURCE_EXHAUSTED);
    assert_string_equal(response.message.reason, "MESSAGE_TOO_LARGE");
    rpc_response_done(&response);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_service_answers_and_refuses_like_a_remote_one),
        cmocka_unit_test(a_context_bounds_the_time_and_is_put_back),
        cmocka_unit_test(a_cut_text_is_mended),
        cmocka_unit_test(nested_texts_are_checked_and_named),
        cmocka_unit_test(a_message_that_swells_is_refused),
        cmocka_unit_test(targets_are_parsed),
        cmocka_unit_test(only_loopback_is_listened_on),
        cmocka_unit_test(handlers_are_held_to_one_answer),
        cmocka_unit_test(metadata_is_checked_and_named),
        cmocka_unit_test(work_past_its_deadline_is_not_begun),
        cmocka_unit_test(unknown_methods_are_unimplemented),
        cmocka_unit_test(health_is_known_in_any_form),
        cmocka_unit_test(an_answer_over_the_limit_says_so),
    };
    return cmocka_run_group_tests(tests, open_dispatch, close_dispatch);
}
