// SPDX-License-Identifier: MIT
// The HTTP server's limits and deadlines, and what it refuses.
#include "tests/integration/web/web_bench.h"

// How long a deadline of these tests is, and what a sweep may add to it on a busy machine.
#define SHORT_MS 200
#define SLACK_MS 1500

static int setup(void **state) {
    *state = bench_start((struct web_options){0});
    return 0;
}

static int setup_short(void **state) {
    *state = bench_start((struct web_options){.head_timeout_ms = SHORT_MS, .body_timeout_ms = SHORT_MS});
    return 0;
}

static int teardown(void **state) {
    bench_stop(*state);
    return 0;
}

#define HOST "Host: a\r\n"
#define GET "GET /c HTTP/1.1\r\n" HOST
#define POST "POST /echo HTTP/1.1\r\n" HOST
#define END "\r\n"

struct row {
    int status;
    size_t len; // 0: the text's
    const char *sent;
};

#define ROW_BYTES(status, text)                                                                              \
    { status, sizeof(text) - 1, text }

static const struct row refused[] = {
    {400, 0, "GET /c HTTP/1.1\r\n\r\n"},
    {400, 0, "GET /c HTTP/1.1\r\nHost:\r\n\r\n"},
    {400, 0, "GET /c HTTP/1.1\r\nHost: a b\r\n\r\n"},
    {400, 0, "GET /c HTTP/1.1\r\nHost: s.example/x\r\n\r\n"},
    {400, 0, "GET /c HTTP/1.1\r\nHost: u@s.example\r\n\r\n"},
    {400, 0, "GET /c HTTP/1.1\r\nHost: s.example:x\r\n\r\n"},
    {400, 0, GET "Host: a\r\n\r\n"},
    {400, 0, GET "Host: b\r\n\r\n"},
    {400, 0, "GET /c HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"},
    {400, 0, POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
    {400, 0, POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
    {400, 0, POST "Content-Length : 5\r\n\r\nhello"},
    {400, 0, POST "Transfer-Encoding: chunked\r\n\r\nzz\r\n"},
    {400, 0, POST "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n"},
    {400, 0, "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {400, 0, GET "X Y: 1\r\n\r\n"},
    {400, 0, GET "X@Y: 1\r\n\r\n"},
    {400, 0, GET "X\xC3\xA9: 1\r\n\r\n"},
    {400, 0, GET "no colon\r\n\r\n"},
    {400, 0, GET "X-A: 1\rX-B: 2\r\n\r\n"},
    {400, 0, GET "X-A: a\x01.b\r\n\r\n"},
    {400, 0, GET "X-A: 0123456789abcdef\x7f\r\n\r\n"},
    {400, 0, GET "X-A: 1\nX-B: 2\r\n\r\n"},
    {400, 0, "GET c HTTP/1.1\r\n" HOST END},
    {400, 0, "GET ftp://s.example/c HTTP/1.1\r\n" HOST END},
    {400, 0, "GET http:///c HTTP/1.1\r\n" HOST END},
    {400, 0, "GET http://u@s.example/c HTTP/1.1\r\n" HOST END},
    {400, 0, "GET * HTTP/1.1\r\n" HOST END},
    {400, 0, "GET /c#f HTTP/1.1\r\n" HOST END},
    {400, 0, "GET /c?q#f HTTP/1.1\r\n" HOST END},
    {400, 0, "GET /c|d HTTP/1.1\r\n" HOST END},
    {400, 0, "GET /\xC3\xA9 HTTP/1.1\r\n" HOST END},
    {400, 0, "GET /c\x7f HTTP/1.1\r\n" HOST END},
    {400, 0, "G(T /c HTTP/1.1\r\n" HOST END},
    ROW_BYTES(400, GET "Authorization: Bearer K1\0junk\r\nX-A: 1\r\n\r\n"),
    ROW_BYTES(400, GET "Authorization: Bearer K1\0\r\nX-A: 1\r\n\r\n"),
    ROW_BYTES(400, GET "Authorization: Bearer K1\0junk\r\n\r\n"),
    ROW_BYTES(400, GET "X\0Y: 1\r\n\r\n"),
    {501, 0, POST "Transfer-Encoding: gzip\r\n\r\n"},
    {501, 0, POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
    {501, 0, POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
    {417, 0, POST "Expect: other\r\nContent-Length: 1\r\n\r\n"},
    {413, 0, POST "Content-Length: 65537\r\n\r\n"},
    {413, 0, POST "Expect: 100-continue\r\nContent-Length: 65537\r\n\r\n"},
};

// A line that libmicrohttpd 1.0 refuses by closing without a word is refused too.
static const struct row closed[] = {
    ROW_BYTES(400, "GET /c\0x HTTP/1.1\r\n" HOST END),
    ROW_BYTES(400, "GET /c\0 HTTP/1.1\r\n" HOST END),
    ROW_BYTES(400, "G\0T /c HTTP/1.1\r\n" HOST END),
    {400, 0, "GET  /c HTTP/1.1\r\n" HOST END},
    {400, 0, "GET /c  HTTP/1.1\r\n" HOST END},
    {400, 0, "GET /a b HTTP/1.1\r\n" HOST END},
    {400, 0, "GET /c?a b HTTP/1.1\r\n" HOST END},
    {400, 0, GET "X-A: 1\r\n folded\r\n\r\n"},
    {400, 0, GET " X-A: 1\r\n\r\n"},
};

// libmicrohttpd 0.9.75 refuses these by itself, with its head sent twice.
static const struct row doubled[] = {
    {400, 0, POST "Content-Length: +1\r\n\r\nx"},
    {413, 0, POST "Content-Length: 99999999999999999999999\r\n\r\n"},
};

static bool unimplemented_coding(const struct row *row, const struct reply *reply) {
    // libmicrohttpd 1.0 refuses these by itself, as malformed.
    return row->status == 501 && reply->status == 400;
}

static void refuse_all(const struct bench *bench, const struct row *rows, size_t count, bool maybe_bare) {
    static const char second[] = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++) {
        struct reply reply;
        const struct row *row = &rows[i];
        int fd = dial(bench);
        assert_true(say_bytes(fd, row->sent, row->len == 0 ? strlen(row->sent) : row->len));
        // What was refused must not be taken as the start of another request.
        (void)say_bytes(fd, second, strlen(second));
        hear(fd, &reply);
        bool bare = maybe_bare && reply.status == 0;
        bool right = reply.status == row->status || unimplemented_coding(row, &reply);
        if (!bare && (!right || !reply.closes || !hangs_up(fd))) {
            print_error("row %zu, %s: %d, closes %d, not %d\n", i, row->sent, reply.status, reply.closes,
                row->status);
            wrong++;
        }
        (void)close(fd);
    }
    assert_int_equal(wrong, 0);
}

static void refuses_what_http_forbids(void **state) {
    refuse_all(*state, refused, ARRAY_LEN(refused), false);
    refuse_all(*state, closed, ARRAY_LEN(closed), true);
    for (size_t i = 0; i < ARRAY_LEN(doubled); i++) {
        struct reply reply;
        int fd = dial(*state);
        say(fd, doubled[i].sent);
        hear(fd, &reply);
        assert_int_equal(reply.status, doubled[i].status);
        assert_true(reply.closes);
        while (!hangs_up(fd))
            continue;
        (void)close(fd);
    }
}

static int status_of(const struct bench *bench, const char *text, size_t len) {
    struct reply reply;
    int fd = dial(bench);
    (void)say_bytes(fd, text, len);
    hear(fd, &reply);
    (void)close(fd);
    return reply.status;
}

static char *padded(const char *before, size_t pad, const char *after, size_t *len) {
    *len = strlen(before) + pad + strlen(after);
    char *text = base_calloc(1, *len + 1);
    char *end = stpcpy(text, before);
    memset(end, 'p', pad);
    (void)stpcpy(end + pad, after);
    return text;
}

static int status_of_padded(const struct bench *bench, const char *before, size_t pad, const char *after) {
    size_t len = 0;
    char *text = padded(before, pad, after, &len);
    int status = status_of(bench, text, len);
    free(text);
    return status;
}

static void bounds_the_head(void **state) {
    const struct bench *bench = *state;
    size_t line = WEB_REQUEST_LINE_MAX - strlen("GET / HTTP/1.1");
    assert_int_equal(status_of_padded(bench, "GET /", line, " HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    assert_int_equal(status_of_padded(bench, "GET /", line + 1, " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
    assert_int_equal(status_of_padded(bench, "GET /?", line + 1000, " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
    assert_int_equal(status_of_padded(bench, "GET /", 15330, " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
    assert_int_equal(status_of_padded(bench, "GET /", 65536, " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
    const char *before = "GET /c HTTP/1.1\r\nHost: a\r\nX-Pad: ";
    size_t pad = WEB_HEAD_MAX + 4 - strlen(before);
    assert_int_equal(status_of_padded(bench, before, pad, "\r\n\r\n"), 200);
    assert_int_equal(status_of_padded(bench, before, pad + 1, "\r\n\r\n"), 431);
    assert_int_equal(status_of_padded(bench, before, 16000, "\r\n\r\n"), 431);
    assert_int_equal(status_of_padded(bench, before, 65536, "\r\n\r\n"), 431);
}

static void bounds_the_number_of_fields(void **state) {
    for (int fields = WEB_FIELDS_MAX - 1; fields <= WEB_FIELDS_MAX + 50; fields++) {
        char text[4096];
        size_t len = (size_t)sprintf(text, "GET /c HTTP/1.1\r\nHost: a\r\n");
        for (int i = 1; i < fields; i++)
            len += (size_t)sprintf(text + len, "X-%d: 1\r\n", i);
        len += (size_t)sprintf(text + len, "\r\n");
        assert_int_equal(status_of(*state, text, len), fields <= WEB_FIELDS_MAX ? 200 : 431);
    }
}

static void say_chunked(int fd, size_t total) {
    char chunk[1032];
    assert_true(say_bytes(fd, POST "Transfer-Encoding: chunked\r\n\r\n", strlen(POST) + 30));
    for (size_t left = total; left > 0;) {
        size_t part = left < 1000 ? left : 1000;
        size_t len = (size_t)sprintf(chunk, "%zx\r\n", part);
        memset(chunk + len, 'c', part);
        (void)stpcpy(chunk + len + part, "\r\n");
        if (!say_bytes(fd, chunk, len + part + 2))
            return;
        left -= part;
    }
    (void)say_bytes(fd, "0\r\nX-Trailer: 1\r\n\r\n", 19);
}

static void bounds_the_body(void **state) {
    static const char *const heads[] = {
        POST "Content-Length: 65536\r\n\r\n",
        POST "Content-Length: 65537\r\n\r\n",
    };
    for (size_t over = 0; over < 2; over++) {
        for (int chunked = 0; chunked < 2; chunked++) {
            struct reply reply;
            char want[64];
            size_t len = 0;
            char *text = padded(heads[over], BODY_MAX + over, "", &len);
            int fd = dial(*state);
            if (chunked != 0)
                say_chunked(fd, BODY_MAX + over);
            else
                (void)say_bytes(fd, text, len);
            hear(fd, &reply);
            assert_int_equal(reply.status, over == 0 ? 200 : 413);
            (void)snprintf(want, sizeof want, "%d %d", BODY_MAX, BODY_MAX * (chunked != 0 ? 'c' : 'p'));
            if (over == 0)
                assert_string_equal(reply.body, want);
            assert_int_equal(reply.closes, over != 0);
            free(text);
            (void)close(fd);
        }
    }
}

// The client sends all of it before it looks at the answer; a reset would take the answer from it.
static void lets_a_refused_client_read_its_answer(void **state) {
    size_t len = 0;
    char *text = padded(POST "Content-Length: 50000000\r\n\r\n", 50000000, "", &len);
    for (int i = 0; i < 5; i++) {
        struct reply reply;
        int fd = dial(*state);
        assert_true(say_bytes(fd, text, len));
        hear(fd, &reply);
        assert_int_equal(reply.status, 413);
        assert_true(reply.length > 0);
        assert_true(hangs_up(fd));
        (void)close(fd);
        fd = dial(*state);
        say_chunked(fd, 5000000);
        hear(fd, &reply);
        assert_int_equal(reply.status, 413);
        (void)close(fd);
    }
    free(text);
}

static void says_continue_where_the_body_is_wanted(void **state) {
    struct reply reply;
    int fd = dial(*state);
    say(fd, POST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_true(hear_head(fd, &reply));
    assert_string_equal(reply.head, "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, "abc");
    hear(fd, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, "3 294");
    assert_false(reply.closes);
    (void)close(fd);
}

// A service that needs a while to answer must be waited for, whether the size was announced or not.
static void refuses_a_large_body_after_a_while(void **state) {
    static const char *const heads[] = {
        "Content-Length: 65537\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        struct reply reply;
        size_t len = 0;
        int fd = dial(*state);
        say(fd, "POST /later HTTP/1.1\r\nHost: a\r\n");
        say(fd, heads[i]);
        if (i == 1)
            say(fd, "10001\r\n");
        char *text = padded("", BODY_MAX + 1, i == 1 ? "\r\n0\r\n\r\n" : "", &len);
        (void)say_bytes(fd, text, len);
        hear(fd, &reply);
        assert_int_equal(reply.status, 413);
        assert_true(reply.closes);
        free(text);
        (void)close(fd);
    }
}

// Sends the start, then a byte at a time, until the server has had enough; how long that took.
static int64_t drip(const struct bench *bench, const char *warm_up, const char *start, struct reply *reply) {
    int fd = dial(bench);
    if (warm_up != NULL) {
        say(fd, warm_up);
        hear(fd, reply);
        assert_int_equal(reply->status, 200);
        (void)poll(NULL, 0, SHORT_MS * 2); // idle, which is no fault
    }
    int64_t begin = base_monotonic_us();
    say(fd, start);
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, 20) > 0)
            break;
        assert_true(base_monotonic_us() - begin < WAIT_MS * US_PER_MS);
        (void)say_bytes(fd, "x", start[0] == '\0' ? 0 : 1);
    }
    int64_t took = (base_monotonic_us() - begin) / US_PER_MS;
    hear(fd, reply);
    if (reply->status != 0)
        assert_true(hangs_up(fd));
    (void)close(fd);
    return took;
}

static void ends_what_drips(void **state) {
    static const struct {
        int status;
        const char *warm_up;
        const char *start;
    } rows[] = {
        {0, NULL, ""},
        {408, NULL, "GE"},
        {408, NULL, "GET /c HTTP/1.1\r\nHost: a\r\nX-Slow: "},
        {408, NULL, POST "Content-Length: 60000\r\n\r\nslow"},
        {408, NULL, POST "Transfer-Encoding: chunked\r\n\r\nff00\r\nslow"},
        {408, GET END, "GE"},
        {408, GET END, "GET /c HTTP/1.1\r\nHost: a\r\nX-Slow: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reply reply;
        int64_t took = drip(*state, rows[i].warm_up, rows[i].start, &reply);
        assert_int_equal(reply.status, rows[i].status);
        assert_in_range(took, SHORT_MS - 50, SHORT_MS + SLACK_MS);
    }
}

static void leaves_the_suspended_and_the_idle_alone(void **state) {
    struct reply reply;
    struct bench *bench = *state;
    int held = dial(bench);
    say(held, "GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
    int idle = dial(bench);
    say(idle, GET END);
    hear(idle, &reply);
    (void)poll(NULL, 0, SHORT_MS * 3);
    struct pollfd quiet[] = {{.fd = held, .events = POLLIN}, {.fd = idle, .events = POLLIN}};
    assert_int_equal(poll(quiet, 2, 0), 0);
    say(idle, GET END);
    hear(idle, &reply);
    assert_int_equal(reply.status, 200);
    (void)close(held);
    (void)close(idle);
}

static void closes_what_idles(void **state) {
    (void)state;
    struct reply reply;
    struct bench *bench = bench_start((struct web_options){.idle_timeout_ms = 1000});
    int fd = dial(bench);
    int64_t begin = base_monotonic_us();
    say(fd, GET END);
    hear(fd, &reply);
    assert_true(hangs_up(fd));
    assert_in_range((base_monotonic_us() - begin) / US_PER_MS, 950, 1000 + 2 * SLACK_MS);
    (void)close(fd);
    bench_stop(bench);
}

static void bounds_the_connections(void **state) {
    (void)state;
    struct reply reply;
    struct bench *bench = bench_start((struct web_options){.connections_max = 3});
    int fds[4];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial(bench);
        say(fds[i], GET END);
        if (i < 3)
            hear(fds[i], &reply);
    }
    struct pollfd fourth = {.fd = fds[3], .events = POLLIN};
    assert_int_equal(poll(&fourth, 1, 100), 0);
    (void)close(fds[0]);
    hear(fds[3], &reply);
    assert_int_equal(reply.status, 200);
    for (size_t i = 1; i < ARRAY_LEN(fds); i++)
        (void)close(fds[i]);
    bench_stop(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refuses_what_http_forbids, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_the_head, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_the_number_of_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_the_body, setup, teardown),
        cmocka_unit_test_setup_teardown(lets_a_refused_client_read_its_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_a_large_body_after_a_while, setup, teardown),
        cmocka_unit_test_setup_teardown(says_continue_where_the_body_is_wanted, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_what_drips, setup_short, teardown),
        cmocka_unit_test_setup_teardown(leaves_the_suspended_and_the_idle_alone, setup_short, teardown),
        cmocka_unit_test(closes_what_idles),
        cmocka_unit_test(bounds_the_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
