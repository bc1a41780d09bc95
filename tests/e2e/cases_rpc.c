// SPDX-License-Identifier: MIT
// Case 155: bytes that are no envelope, no message, or those of another schema, at every service's RPC port.
#include "dunlin/v1/clicks.pb-c.h"
#include "dunlin/v1/envelope.pb-c.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include "dunlin/v1/writer.pb-c.h"
#include "tests/e2e/cases.h"
#include "tests/support/raw.h"
#include <stdio.h>
#include <string.h>

#define INVALID_ARGUMENT 3
#define UNIMPLEMENTED 12
#define UNAUTHENTICATED 16

static const char *address; // of the service that is asked

// ---- envelopes

struct message {
    uint8_t bytes[8192];
    size_t len;
};

static void put(struct message *out, const void *bytes, size_t len) {
    assert_true(len <= sizeof out->bytes - out->len);
    memcpy(out->bytes + out->len, bytes, len);
    out->len += len;
}

// A field of wire type 2 with a length of at most 2 varint bytes.
static void put_field(struct message *out, unsigned number, const void *bytes, size_t len) {
    uint8_t head[] = {(uint8_t)(number << 3 | 2), (uint8_t)(0x80 | (len & 0x7f)), (uint8_t)(len >> 7)};
    assert_true(len < 1 << 14 && number < 16);
    put(out, head, sizeof head);
    put(out, bytes, len);
}

static void envelop(struct message *out, const char *method, const struct message *body) {
    out->len = 0;
    put_field(out, 1, method, strlen(method));
    put_field(out, 3, body->bytes, body->len);
}

static void pack(struct message *out, const void *message) {
    const ProtobufCMessage *packable = message;
    assert_true(protobuf_c_message_get_packed_size(packable) <= sizeof out->bytes);
    out->len = protobuf_c_message_pack(packable, out->bytes);
}

// ---- questions

// The status in the answer to this envelope, on a connection of its own; -1 where no answer comes.
static int ask(const void *envelope, size_t len) {
    struct raw *raw = raw_open(address);
    struct buf answer;
    int code = -1;
    assert_non_null(raw);
    buf_init(&answer, (size_t)4 * 1024 * 1024);
    assert_true(raw_sp_greet(raw));
    assert_true(raw_sp_ask(raw, envelope, len));
    if (raw_sp_answer(raw, &answer)) {
        Dunlin__V1__RpcResponse *response =
            dunlin__v1__rpc_response__unpack(NULL, answer.len, (const uint8_t *)answer.data);
        assert_non_null(response);
        code = (int)response->code;
        if (code != 0)
            assert_true(response->message != NULL && response->message[0] != '\0' && !response->has_body);
        dunlin__v1__rpc_response__free_unpacked(response, NULL);
    }
    buf_done(&answer);
    raw_close(raw);
    return code;
}

static void expect(const char *what, const struct message *envelope, int code) {
    int seen = ask(envelope->bytes, envelope->len);
    if (seen != code)
        fail_msg("case 155: %s at %s: status %d, not %d", what, address, seen, code);
}

static void truncations_are_refused(const struct message *whole) {
    for (size_t len = 0; len < whole->len; len++) {
        struct message part = {.len = len};
        memcpy(part.bytes, whole->bytes, len);
        int code = ask(part.bytes, part.len);
        // Cut between its fields it is an envelope without a body, so without the required fields of one.
        if (code != INVALID_ARGUMENT)
            fail_msg("case 155: cut at %zu of %zu: status %d", len, whole->len, code);
    }
}

static void bodies_are_refused(const char *method) {
    struct message envelope, body = {.len = 0};
    envelop(&envelope, method, &body);
    expect("an empty body", &envelope, INVALID_ARGUMENT);

    static const uint8_t too_long[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f};
    body.len = 0;
    put(&body, too_long, sizeof too_long);
    envelop(&envelope, method, &body);
    expect("a length of 0xffffffff", &envelope, INVALID_ARGUMENT);

    // The start of a group in a group, 1,000 deep: proto2 has them, protobuf-c has not.
    body.len = 0;
    for (int i = 0; i < 1000; i++)
        put(&body, "\x0b", 1);
    envelop(&envelope, method, &body);
    expect("groups in groups", &envelope, INVALID_ARGUMENT);

    Dunlin__V1__DayClicks other = DUNLIN__V1__DAY_CLICKS__INIT;
    other.day = 1;
    other.clicks = UINT64_MAX;
    pack(&body, &other);
    envelop(&envelope, method, &body);
    expect("another message", &envelope, INVALID_ARGUMENT);

    // Unknown fields nest as bytes, to any depth.
    struct message nested = {.len = 0};
    for (int i = 0; i < 1000; i++) {
        struct message inner = nested;
        nested.len = 0;
        put_field(&nested, 15, inner.bytes, inner.len);
    }
    envelop(&envelope, method, &nested);
    expect("unknown fields alone", &envelope, INVALID_ARGUMENT);
}

static void envelopes_are_refused(const struct message *good) {
    struct message envelope = {.len = 0};
    expect("nothing", &envelope, INVALID_ARGUMENT);
    static const char *const methods[] = {"", "/", "dunlin.v1.Writer", "dunlin.v1.Writer/",
        "dunlin.v1.Nobody/Call", "dunlin.v1.Health/Destroy", "%s%n", "Writer/CreateLink"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        envelop(&envelope, methods[i], &(struct message){.len = 0});
        expect(methods[i], &envelope, UNIMPLEMENTED);
    }
    envelope.len = 0;
    put_field(&envelope, 1, "dunlin.v1.\xff/Call", 16);
    expect("a method that is not UTF-8", &envelope, INVALID_ARGUMENT);
    envelope = *good;
    put_field(&envelope, 5, "id with spaces", 14);
    expect("a bad request id", &envelope, INVALID_ARGUMENT);
    envelope = *good;
    put_field(&envelope, 4, "Bearer a\0b", 10);
    expect("an authorization with NUL", &envelope, INVALID_ARGUMENT);
}

// Unknown fields and repeated singular ones are protobuf's way to grow: the call is made as without them.
static void harmless_ones_are_let_through(const struct message *good, int code) {
    struct message envelope = {.len = 0};
    put_field(&envelope, 1, "dunlin.v1.Nobody/Call", 21);
    put(&envelope, good->bytes, good->len); // its own method comes last, and counts
    put_field(&envelope, 15, "unknown", 7);
    expect("unknown and repeated fields", &envelope, code);
}

// Sizes that NNG itself must not believe, and bytes that are no SP.
static void frames_are_refused(void) {
    static const struct {
        const char *bytes;
        size_t len;
    } frames[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff", 8}, {"\0\0\0\0\xff\xff\xff\xff", 8},
        {"\0\0\0\0\0\0\0\0", 8},          // an empty message
        {"\0\0\0\0\0\0\0\1\x80", 9},      // shorter than a request id
        {"\0\0\0\0\0\0\0\4\0\0\0\1", 12}, // an id without its bit
    };
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        struct raw *raw = raw_open(address);
        assert_non_null(raw);
        assert_true(raw_sp_greet(raw));
        (void)raw_send(raw, frames[i].bytes, frames[i].len);
        raw_close(raw);
    }
    static const char *const greetings[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "SP"};
    for (size_t i = 0; i < ARRAY_LEN(greetings); i++) {
        struct raw *raw = raw_open(address);
        assert_non_null(raw);
        (void)raw_send(raw, greetings[i], strlen(greetings[i]));
        raw_close(raw);
    }
}

static void hurt(const char *at, const char *method, const void *request, int code) {
    struct message body, good;
    address = at;
    pack(&body, request);
    envelop(&good, method, &body);
    expect("the whole envelope", &good, code);
    truncations_are_refused(&good);
    bodies_are_refused(method);
    envelopes_are_refused(&good);
    harmless_ones_are_let_through(&good, code);
    frames_are_refused();
    expect("the whole envelope, at the end", &good, code);
    cases_expect_alive(155);
}

void malformed_rpc_is_refused(void **state) {
    (void)state;
    int64_t links = cases_count_links();
    Dunlin__V1__CreateLinkRequest create = DUNLIN__V1__CREATE_LINK_REQUEST__INIT;
    create.url.data = (uint8_t *)"https://dest.example/rpc";
    create.url.len = strlen((const char *)create.url.data);
    hurt(cases_stack->writer, "dunlin.v1.Writer/CreateLink", &create, UNAUTHENTICATED);

    Dunlin__V1__GetClicksRequest clicks = DUNLIN__V1__GET_CLICKS_REQUEST__INIT;
    clicks.code = "abcd";
    hurt(cases_stack->clicks, "dunlin.v1.Clicks/GetClicks", &clicks, UNAUTHENTICATED);

    uint8_t fingerprint[] = {1, 2, 3, 4, 5, 6, 7};
    Dunlin__V1__ClaimBlockRequest claim = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    claim.slot = 0;
    claim.size = 1;
    claim.key_fingerprint.data = fingerprint;
    claim.key_fingerprint.len = sizeof fingerprint; // one byte short: nothing is claimed
    hurt(cases_stack->keyrange, "dunlin.v1.Keyrange/ClaimBlock", &claim, INVALID_ARGUMENT);

    assert_int_equal(cases_count_links(), links);
    assert_int_equal(link_try_create(cases_stack, "{\"url\":\"https://dest.example/after\"}"), 201);
}
