// SPDX-License-Identifier: MIT
// A server that is talked to by hand: SP over TCP, with envelopes and frames that no client of ours would
// send. Each ends in an error answer or a closed connection, and the server goes on for everyone else.
#include "tests/integration/rpc/keyrange_fake.h"

#include "dunlin/v1/envelope.pb-c.h"
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define CLOSED (-1)
#define FRAME_HEAD 12

static struct rpc_server *server;
static struct rpc_client *client;

static int open_both(void **state) {
    (void)state;
    fake_gate(true);
    server = fake_start(0, 4, 64);
    client = server == NULL ? NULL : fake_client(rpc_server_port(server), NULL);
    return client == NULL ? -1 : 0;
}

static int close_both(void **state) {
    (void)state;
    rpc_client_close(client);
    rpc_server_stop(server, US_PER_S);
    return 0;
}

static void expect_alive(void) {
    uint64_t block[2] = {0};
    assert_int_equal(fake_claim(client, 2, 9, block), STATUS_OK);
    assert_int_equal(block[1], 11);
}

static bool get(int fd, void *out, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t got = recv(fd, (char *)out + at, len - at, 0);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

// What cannot be sent shows when the answer is read.
static void put(int fd, const void *bytes, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t sent = send(fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += (size_t)sent;
    }
}

static int dial(const void *hello, size_t len) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(rpc_server_port(server))};
    const struct timeval patience = {.tv_sec = 20};
    uint8_t theirs[8];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int yes = 1; // a frame goes in two pieces
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    put(fd, hello, len);
    if (len == 8) {
        (void)get(fd, theirs, sizeof theirs);
    }
    return fd;
}

static int dial_req(void) {
    static const uint8_t hello[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    return dial(hello, sizeof hello);
}

static void put_frame(int fd, const void *payload, size_t len) {
    uint8_t head[FRAME_HEAD] = {0};
    uint64_t size = htobe64(len + 4);
    memcpy(head, &size, sizeof size);
    head[8] = 0x80;
    head[11] = 0x01;
    put(fd, head, sizeof head);
    put(fd, payload, len);
}

// The status of the answer; CLOSED where the connection ends instead.
static int get_status(int fd) {
    uint8_t head[FRAME_HEAD];
    uint64_t size;
    if (!get(fd, head, sizeof head))
        return CLOSED;
    memcpy(&size, head, sizeof size);
    size = be64toh(size) - 4;
    assert_true(size <= RPC_MESSAGE_MAX);
    uint8_t *bytes = base_calloc(size + 1, 1);
    assert_true(get(fd, bytes, size));
    Dunlin__V1__RpcResponse *answer = dunlin__v1__rpc_response__unpack(NULL, size, bytes);
    assert_non_null(answer);
    int status = (int)answer->code;
    dunlin__v1__rpc_response__free_unpacked(answer, NULL);
    free(bytes);
    return status;
}

static int ask(const void *payload, size_t len) {
    int fd = dial_req();
    put_frame(fd, payload, len);
    int status = get_status(fd);
    (void)close(fd);
    return status;
}

// A good call whose body's fingerprint has `fill` bytes. Returned with malloc().
static uint8_t *make_call(size_t fill, bool metadata, size_t *len) {
    static char method[] = "dunlin.v1.Keyrange/ClaimBlock";
    static char id[] = "abc";
    Dunlin__V1__ClaimBlockRequest claim = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    Dunlin__V1__RpcRequest request = DUNLIN__V1__RPC_REQUEST__INIT;
    uint8_t *fingerprint = base_calloc(fill + 1, 1);
    claim.size = FAKE_FINGERPRINT;
    claim.key_fingerprint = (ProtobufCBinaryData){.len = fill, .data = fingerprint};
    uint8_t *body = base_calloc(fill + 64, 1);
    request.method = method;
    request.has_timeout_ms = true;
    request.timeout_ms = 5000;
    request.has_body = true;
    request.body.len = dunlin__v1__claim_block_request__pack(&claim, body);
    request.body.data = body;
    request.request_id = metadata ? id : NULL;
    uint8_t *bytes = base_calloc(fill + 256, 1);
    *len = dunlin__v1__rpc_request__pack(&request, bytes);
    free(body);
    free(fingerprint);
    return bytes;
}

static void truncated_at_each_offset(void **state) {
    (void)state;
    size_t len;
    size_t bare;
    free(make_call(8, false, &bare));
    uint8_t *bytes = make_call(8, true, &len);
    int fd = dial_req();
    for (size_t cut = 0; cut <= len; cut++) {
        put_frame(fd, bytes, cut);
        assert_int_equal(get_status(fd), cut == bare || cut == len ? STATUS_OK : STATUS_INVALID_ARGUMENT);
    }
    (void)close(fd);
    free(bytes);
    expect_alive();
}

static void each_byte_changed(void **state) {
    (void)state;
    size_t len;
    uint8_t *bytes = make_call(8, true, &len);
    int fd = dial_req();
    for (size_t at = 0; at < len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] ^= (uint8_t)(1U << bit);
            put_frame(fd, bytes, len);
            int status = get_status(fd);
            assert_true(status == STATUS_OK || status == STATUS_INVALID_ARGUMENT ||
                        status == STATUS_UNIMPLEMENTED || status == STATUS_ABORTED ||
                        status == STATUS_DEADLINE_EXCEEDED);
            bytes[at] ^= (uint8_t)(1U << bit);
        }
    (void)close(fd);
    free(bytes);
    expect_alive();
}

static void other_messages(void **state) {
    (void)state;
    static const struct {
        const char *what;
        size_t len;
        const char *bytes;
    } cases[] = {
        {"empty", 0, ""},
        {"one byte", 1, "\x0A"},
        {"another type: a Block", 6, "\x08\x01\x10\x02\x18\x03"},
        {"another type: an RpcResponse", 4, "\x08\x03\x1A\x00"},
        {"text", 14, "GET / HTTP/1.1"},
        {"a field of 4 GB", 6, "\x0A\xFF\xFF\xFF\xFF\x0F"},
        {"a field of 2^64 - 1", 11, "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"},
        {"a varint without end", 12, "\x10\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"},
        {"field number 0", 3, "\x02\x01x"},
        {"a wrong wire type", 4, "\x08\x01\x10\x01"},
        {"required missing", 2, "\x10\x01"},
        {"a method with a NUL", 5, "\x0A\x03\x61\x00\x62"},
        {"a method that is no UTF-8", 4, "\x0A\x02\xC3\x28"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int status = ask(cases[i].bytes, cases[i].len);
        if (status != STATUS_INVALID_ARGUMENT)
            fail_msg("%s: %d", cases[i].what, status);
    }
    expect_alive();
}

static void nested_and_repeated_and_unknown(void **state) {
    (void)state;
    size_t len;
    uint8_t *good = make_call(8, false, &len);
    uint8_t *bytes = base_calloc(len + 4096, 1);
    memcpy(bytes, good, len);
    // Unknown: field 100 with 1,000 nested fields, each two bytes of head; then a group that opens 1,000
    // times.
    size_t at = len;
    bytes[at++] = 0xA2;
    bytes[at++] = 0x06;
    bytes[at++] = 0xD0;
    bytes[at++] = 0x0F;
    for (size_t i = 0; i < 1000; i++) {
        bytes[at + 2 * i] = 0x0A;
        bytes[at + 2 * i + 1] = 0x7F;
    }
    assert_int_equal(ask(bytes, at + 2000), STATUS_OK);
    memset(bytes + len, 0x0B, 1000);
    assert_int_equal(ask(bytes, len + 1000), STATUS_INVALID_ARGUMENT);
    // A singular field twice: the last one counts.
    static const uint8_t again[] = {0x0A, 0x01, 'x'};
    memcpy(bytes + len, again, sizeof again);
    assert_int_equal(ask(bytes, len + sizeof again), STATUS_UNIMPLEMENTED);
    free(bytes);
    free(good);
    expect_alive();
}

static void a_swelling_envelope_is_bounded(void **state) {
    (void)state;
    size_t len = RPC_MESSAGE_MAX;
    uint8_t *bytes = base_calloc(len, 1);
    for (size_t i = 0; i + 1 < len; i += 2)
        bytes[i] = 0x7A; // field 15, empty, a million times
    assert_int_equal(ask(bytes, len), STATUS_RESOURCE_EXHAUSTED);
    free(bytes);
    expect_alive();
}

static void bad_frames_close_the_connection(void **state) {
    (void)state;
    static const struct {
        size_t len;
        const char *bytes;
    } frames[] = {
        {8, "\x00\x00\x00\x00\xFF\xFF\xFF\xFF"},
        {8, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"},
        {8, "\x00\x00\x00\x00\x00\x20\x00\x05"}, // one byte over the limit
        {8, "\x00\x00\x00\x00\x00\x00\x00\x00"},
        {10, "\x00\x00\x00\x00\x00\x00\x00\x02\x80\x00"},
    };
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        int fd = dial_req();
        put(fd, frames[i].bytes, frames[i].len);
        (void)shutdown(fd, SHUT_WR);
        assert_int_equal(get_status(fd), CLOSED);
        (void)close(fd);
    }
    expect_alive();
}

static void bad_handshakes_close_the_connection(void **state) {
    (void)state;
    static const char *const hellos[] = {
        "GET / HT", "\0SP\1\0\x30\0\0", "\0SP\0\0\x10\0\0", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"};
    for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
        int fd = dial(hellos[i], 8);
        assert_int_equal(get_status(fd), CLOSED);
        (void)close(fd);
    }
    (void)close(dial("", 0));
    (void)close(dial("\0SP", 3));
    expect_alive();
}

// Calls the client with a fingerprint of this many bytes.
static enum status claim_filled(size_t fill, uint64_t block[2]) {
    Dunlin__V1__ClaimBlockRequest request = DUNLIN__V1__CLAIM_BLOCK_REQUEST__INIT;
    uint8_t *fingerprint = base_calloc(fill, 1);
    request.size = FAKE_FINGERPRINT;
    request.key_fingerprint = (ProtobufCBinaryData){.len = fill, .data = fingerprint};
    dunlin__v1__keyrange__claim_block(rpc_client_service(client), &request, fake_keep, block);
    free(fingerprint);
    return rpc_outcome()->status;
}

static atomic_bool enough;

static void *call_meanwhile(void *arg) {
    unsigned *wrong = arg;
    while (!atomic_load(&enough)) {
        uint64_t block[2] = {0};
        if (fake_claim(client, 1, 5, block) != STATUS_OK || block[1] != 6)
            (*wrong)++;
    }
    return NULL;
}

static void large_calls_leave_others_alone(void **state) {
    (void)state;
    pthread_t others[3];
    unsigned wrong[3] = {0};
    uint64_t block[2];
    atomic_store(&enough, false);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&others[i], NULL, call_meanwhile, &wrong[i]), 0);
    const size_t good[] = {1048575, 1048576, 1048577, RPC_MESSAGE_MAX - 64};
    const size_t bad[] = {
        RPC_MESSAGE_MAX - 16, RPC_MESSAGE_MAX, RPC_MESSAGE_MAX + 1, (size_t)16 * 1024 * 1024};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(claim_filled(good[i], block), STATUS_OK);
        assert_int_equal(block[0], good[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(claim_filled(bad[i], block), STATUS_RESOURCE_EXHAUSTED);
        assert_string_equal(rpc_outcome()->reason, "MESSAGE_TOO_LARGE");
    }
    size_t len;
    free(make_call(RPC_MESSAGE_MAX - 256, false, &len));
    size_t fill = RPC_MESSAGE_MAX - 256 + (RPC_MESSAGE_MAX - len);
    uint8_t *exact = make_call(fill, false, &len);
    assert_int_equal(len, RPC_MESSAGE_MAX);
    assert_int_equal(ask(exact, len), STATUS_OK);
    free(exact);
    uint8_t *over = make_call(fill + 1, false, &len);
    assert_int_equal(ask(over, len), CLOSED);
    free(over);
    atomic_store(&enough, true);
    for (size_t i = 0; i < 3; i++) {
        (void)pthread_join(others[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

static void malformed_ones_are_counted(void **state) {
    (void)state;
    struct buf text;
    buf_init(&text, 1024 * 1024);
    metrics_render(&text);
    const char *at = strstr(buf_text(&text), "\ndunlin_rpc_malformed_total ");
    assert_non_null(at);
    assert_true(strtoul(strchr(at, ' ') + 1, NULL, 10) > 20);
    assert_null(strstr(buf_text(&text), "GET"));
    buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_at_each_offset),
        cmocka_unit_test(each_byte_changed),
        cmocka_unit_test(other_messages),
        cmocka_unit_test(nested_and_repeated_and_unknown),
        cmocka_unit_test(a_swelling_envelope_is_bounded),
        cmocka_unit_test(bad_frames_close_the_connection),
        cmocka_unit_test(bad_handshakes_close_the_connection),
        cmocka_unit_test(large_calls_leave_others_alone),
        cmocka_unit_test(malformed_ones_are_counted),
    };
    if (!log_open("rpc_hostile_test", "error"))
        return 1;
    return cmocka_run_group_tests(tests, open_both, close_both);
}
