// SPDX-License-Identifier: MIT
// The HTTP server as its peers see it. tests/integration/web/web_limits_test.c has its limits and deadlines.
#include "tests/integration/web/web_bench.h"

static int setup(void **state) {
    *state = bench_start((struct web_options){0});
    return 0;
}

static int teardown(void **state) {
    bench_stop(*state);
    return 0;
}

static void keeps_a_connection_for_a_thousand_requests(void **state) {
    struct bench *bench = *state;
    struct reply reply;
    int fd = dial(bench);
    for (int i = 0; i < 1000; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "GET /n%d?q=%d HTTP/1.1\r\nHost: s.example\r\n\r\n", i, i);
        say(fd, text);
        hear(fd, &reply);
        (void)snprintf(text, sizeof text, "path=/n%d query=q=%d host=s.example", i, i);
        assert_int_equal(reply.status, 200);
        assert_false(reply.closes);
        assert_non_null(strstr(reply.body, text));
        assert_non_null(strstr(reply.head, "\r\nDate: "));
    }
    assert_int_equal(atomic_load(&bench->handled), 1000);
    (void)close(fd);
}

static void answers_head_like_get_without_the_body(void **state) {
    struct reply get;
    struct reply head;
    int fd = dial(*state);
    say(fd, "GET /location HTTP/1.1\r\nHost: a\r\n\r\nGET /facts HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(fd, &get);
    hear(fd, &get);
    for (int i = 0; i < 3; i++) {
        say(fd, "HEAD /facts HTTP/1.1\r\nHost: a\r\n\r\n");
        hear_as(fd, &head, true);
        assert_int_equal(head.status, 200);
        assert_int_equal(head.length, get.length);
    }
    say(fd, "GET /empty HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(fd, &get);
    assert_int_equal(get.status, 204);
    assert_null(strstr(get.head, "Content-Length"));
    (void)close(fd);
}

static void shows_the_request_as_it_was_sent(void **state) {
    static const struct {
        const char *sent;
        const char *seen;
    } rows[] = {
        {"GET /a%2Fb%00c%zz?x[y]=%26&a+b=\xC3\xA9&&= HTTP/1.1\r\nHost: s.example",
            "method=0 path=/a%2Fb%00c%zz query=x[y]=%26&a+b=\xC3\xA9&&= host=s.example"},
        {"GET /c? HTTP/1.1\r\nHost: s.example", "path=/c query= host=s.example"},
        {"GET http://Other.example:81/c?d HTTP/1.1\r\nHost: s.example",
            "path=/c query=d host=Other.example:81"},
        {"GET HTTP://other.example HTTP/1.1\r\nHost: s.example", "path=/ query=- host=other.example"},
        {"GET https://[::1]:8443?q HTTP/1.1\r\nHost: s.example", "path=/ query=q host=[::1]:8443"},
        {"OPTIONS * HTTP/1.1\r\nHost: s.example", "method=6 path=* query=-"},
        {"CONNECT s.example:443 HTTP/1.1\r\nHost: s.example:443", "method=8 path=s.example:443"},
        {"BREW /c HTTP/1.1\r\nHost: s.example", "method=9 path=/c"},
        {"GET /c HTTP/1.0", "path=/c query=- host=- probe=- peer=127.0.0.1"},
        {"GET /c HTTP/1.1\r\nHOST: s.example\r\nX-PROBE: \t one two \t", "probe=one two peer=127.0.0.1"},
        {"GET /c HTTP/1.1\r\nHost: s.example\r\nX-Probe:\r\nX-Probe: 2", "probe= peer=127.0.0.1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reply reply;
        int fd = dial(*state);
        say(fd, rows[i].sent);
        say(fd, "\r\n\r\n");
        hear(fd, &reply);
        if (reply.status == 0 || strstr(reply.body, rows[i].seen) == NULL)
            fail_msg("%s: %d %s, not %s", rows[i].sent, reply.status, reply.body, rows[i].seen);
        (void)close(fd);
    }
}

#define CONNECTIONS 300
#define PIPELINED 300

static void write_pipeline(int fd) {
    char *text = base_calloc(PIPELINED, 64);
    size_t len = 0;
    for (int i = 0; i < PIPELINED; i++)
        len += (size_t)sprintf(
            text + len, "GET /%s%d HTTP/1.1\r\nHost: a\r\n\r\n", i % 2 == 0 ? "later" : "now", i);
    assert_true(say_bytes(fd, text, len));
    free(text);
}

static void read_pipeline(int fd) {
    struct reply reply;
    for (int i = 0; i < PIPELINED; i++) {
        char want[32];
        (void)snprintf(want, sizeof want, i % 2 == 0 ? "/later%d" : "path=/now%d ", i);
        hear(fd, &reply);
        assert_int_equal(reply.status, 200);
        assert_non_null(strstr(reply.body, want));
    }
}

// libmicrohttpd's descriptor is silent about what it has buffered and about what was resumed: the loop must
// go on.
static void answers_pipelines_of_which_half_is_suspended(void **state) {
    struct bench *bench = *state;
    int fds[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = dial(bench);
    for (int i = 0; i < CONNECTIONS; i++)
        write_pipeline(fds[i]);
    for (int i = 0; i < CONNECTIONS; i++)
        read_pipeline(fds[i]);
    for (int i = 0; i < CONNECTIONS; i++)
        (void)close(fds[i]);
    assert_int_equal(atomic_load(&bench->handled), CONNECTIONS * PIPELINED);
}

// A client may close its half right after the request, and still gets its answer.
static void answers_a_half_closed_client(void **state) {
    struct reply reply;
    int fd = dial(*state);
    say(fd, "GET /later1 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    hear(fd, &reply);
    assert_int_equal(reply.status, 200);
    assert_true(hangs_up(fd));
    (void)close(fd);
}

static void fits_the_largest_location_beside_the_largest_head(void **state) {
    struct bench *bench = *state;
    static const char *const names[] = {"X-Pad", "Cookie", "cookie"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct reply reply;
        char *head = base_calloc(1, WEB_HEAD_MAX + 64);
        size_t len = (size_t)sprintf(head, "GET /location HTTP/1.1\r\nHost: a\r\n%s: ", names[i]);
        size_t total = WEB_HEAD_MAX + 4; // and two line ends
        memset(head + len, 'v', total - len);
        for (size_t at = len + 60; i == 2 && at + 70 < total; at += 67) // 180 cookies
            head[at] = ';', head[at + 1] = ' ', head[at + 3] = '=';
        memcpy(head + total, "\r\n\r\n", 5);
        int fd = dial(bench);
        for (int round = 0; round < 2; round++) {
            say(fd, head);
            hear(fd, &reply);
            assert_int_equal(reply.status, 302);
            const char *location = strstr(reply.head, "\r\nLocation: ");
            assert_non_null(location);
            assert_memory_equal(location + 12, bench->target, WEB_REQUEST_LINE_MAX);
            assert_memory_equal(location + 12 + WEB_REQUEST_LINE_MAX, "\r\n", 2);
        }
        (void)close(fd);
        free(head);
    }
}

static void asks_before_it_says_continue(void **state) {
    static const char *const paths[] = {"/unwanted", "/later/unwanted", "/later/wanted"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct reply reply;
        char text[128];
        int fd = dial(*state);
        (void)snprintf(text, sizeof text,
            "POST %s HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", paths[i]);
        say(fd, text);
        if (strstr(paths[i], "unwanted") != NULL) {
            hear(fd, &reply);
            assert_int_equal(reply.status, 401);
            assert_true(reply.closes);
            assert_true(hangs_up(fd));
        } else {
            assert_true(hear_head(fd, &reply));
            assert_string_equal(reply.head, "HTTP/1.1 100 Continue\r\n\r\n");
            say(fd, "abc");
            hear(fd, &reply);
            assert_int_equal(reply.status, 200);
            assert_false(reply.closes);
            say(fd, "GET /facts HTTP/1.1\r\nHost: a\r\n\r\n");
            hear(fd, &reply);
            assert_int_equal(reply.status, 200);
        }
        (void)close(fd);
    }
}

// Four thousand arguments are a legal query.
static void takes_any_legal_query(void **state) {
    struct reply reply;
    char *head = base_calloc(1, 9000);
    size_t len = (size_t)sprintf(head, "GET /location?");
    memset(head + len, '&', 8000);
    (void)sprintf(head + len + 8000, " HTTP/1.1\r\nHost: a\r\n\r\n");
    int fd = dial(*state);
    say(fd, head);
    hear(fd, &reply);
    assert_int_equal(reply.status, 302);
    (void)close(fd);
    free(head);
}

static void turns_a_split_header_into_an_empty_500(void **state) {
    struct reply reply;
    int fd = dial(*state);
    say(fd, "GET /split HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(fd, &reply);
    assert_int_equal(reply.status, 500);
    assert_int_equal(reply.length, 0);
    assert_null(strstr(reply.head, "Set-Cookie"));
    assert_null(strstr(reply.head, "Location"));
    say(fd, "GET /c HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(fd, &reply);
    assert_int_equal(reply.status, 200);
    (void)close(fd);
}

static void drains_with_connection_close(void **state) {
    struct bench *bench = *state;
    struct reply reply;
    int fd = dial(bench);
    say(fd, "GET /c HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(fd, &reply);
    assert_false(reply.closes);
    bench_order(bench, ORDER_DRAIN);
    say(fd, "GET /c HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(fd, &reply);
    assert_int_equal(reply.status, 200);
    assert_true(reply.closes);
    assert_true(hangs_up(fd));
    (void)close(fd);
    fd = dial(bench); // still accepted
    say(fd, "GET /later2 HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(fd, &reply);
    assert_int_equal(reply.status, 200);
    assert_true(reply.closes);
    (void)close(fd);
}

static bool port_refuses(uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    return refused;
}

static void quiesces_without_dropping_who_waits(void **state) {
    struct bench *bench = *state;
    struct reply reply;
    uint16_t port = web_port(bench->web);
    int held = dial(bench);
    say(held, "GET /c HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(held, &reply);
    int waiting[50];
    for (size_t i = 0; i < ARRAY_LEN(waiting); i++)
        waiting[i] = dial(bench);
    bench_order(bench, ORDER_QUIESCE);
    for (size_t i = 0; i < ARRAY_LEN(waiting); i++) {
        say(waiting[i], "GET /later3 HTTP/1.1\r\nHost: a\r\n\r\n");
        hear(waiting[i], &reply);
        assert_int_equal(reply.status, 200);
        (void)close(waiting[i]);
    }
    bool refuses = false;
    for (int i = 0; i < 1000 && !(refuses = port_refuses(port)); i++)
        (void)poll(NULL, 0, 5);
    assert_true(refuses);
    say(held, "GET /c HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(held, &reply);
    assert_int_equal(reply.status, 200);
    (void)close(held);
}

static void closes_with_suspended_requests(void **state) {
    (void)state;
    struct bench *bench = bench_start((struct web_options){0});
    int fds[20];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial(bench);
        say(fds[i], "GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for (int i = 0; i < WAIT_MS && atomic_load(&bench->handled) < ARRAY_LEN(fds); i++)
        (void)poll(NULL, 0, 1);
    assert_int_equal(atomic_load(&bench->handled), ARRAY_LEN(fds));
    assert_int_equal(web_in_flight(bench->web), ARRAY_LEN(fds));
    bench_stop(bench);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        assert_true(hangs_up(fds[i]));
        (void)close(fds[i]);
    }
}

static void tells_a_taken_port(void **state) {
    struct bench *bench = *state;
    struct problem why = {0};
    struct web *web = NULL;
    struct web_options options = bench->options;
    options.loop = bench->loop;
    options.address = "127.0.0.1";
    options.port = web_port(bench->web);
    assert_int_equal(web_open(&options, &web, &why), STATUS_FAILED_PRECONDITION);
    assert_string_equal(why.reason, "PORT_IN_USE");
    assert_non_null(strstr(why.message, "127.0.0.1"));
    assert_int_equal(web_port_is_free("127.0.0.1", options.port, &why), STATUS_FAILED_PRECONDITION);
    assert_int_equal(web_port_is_free("localhost", 0, &why), STATUS_INVALID_ARGUMENT);
    assert_int_equal(web_port_is_free("127.0.0.1", 0, &why), STATUS_OK);
    assert_null(web);
}

static void shares_a_port_among_workers(void **state) {
    (void)state;
    struct problem why = {0};
    struct bench *one = bench_start((struct web_options){.shared = true});
    uint16_t port = web_port(one->web);
    assert_int_equal(web_port_is_free("127.0.0.1", port, &why), STATUS_FAILED_PRECONDITION);
    struct bench *two = bench_start((struct web_options){.shared = true, .port = port});
    struct reply reply;
    for (int i = 0; i < 64; i++) {
        int fd = dial(one);
        say(fd, "GET /c HTTP/1.1\r\nHost: a\r\n\r\n");
        hear(fd, &reply);
        assert_int_equal(reply.status, 200);
        (void)close(fd);
    }
    assert_int_equal(atomic_load(&one->handled) + atomic_load(&two->handled), 64);
    assert_true(atomic_load(&one->handled) > 0);
    assert_true(atomic_load(&two->handled) > 0);
    bench_stop(one);
    bench_stop(two);
    assert_int_equal(web_port_is_free("127.0.0.1", port, &why), STATUS_OK);
}

static void shows_an_ipv4_peer_of_an_ipv6_socket_as_ipv4(void **state) {
    (void)state;
    struct reply reply;
    struct bench *bench = bench_start((struct web_options){.address = "::"});
    int fd = dial(bench);
    say(fd, "GET /c HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(fd, &reply);
    assert_non_null(strstr(reply.body, "peer=127.0.0.1"));
    (void)close(fd);
    bench_stop(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_a_connection_for_a_thousand_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_head_like_get_without_the_body, setup, teardown),
        cmocka_unit_test_setup_teardown(shows_the_request_as_it_was_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_pipelines_of_which_half_is_suspended, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_a_half_closed_client, setup, teardown),
        cmocka_unit_test_setup_teardown(fits_the_largest_location_beside_the_largest_head, setup, teardown),
        cmocka_unit_test_setup_teardown(asks_before_it_says_continue, setup, teardown),
        cmocka_unit_test_setup_teardown(takes_any_legal_query, setup, teardown),
        cmocka_unit_test_setup_teardown(turns_a_split_header_into_an_empty_500, setup, teardown),
        cmocka_unit_test_setup_teardown(drains_with_connection_close, setup, teardown),
        cmocka_unit_test_setup_teardown(quiesces_without_dropping_who_waits, setup, teardown),
        cmocka_unit_test(closes_with_suspended_requests),
        cmocka_unit_test_setup_teardown(tells_a_taken_port, setup, teardown),
        cmocka_unit_test(shares_a_port_among_workers),
        cmocka_unit_test(shows_an_ipv4_peer_of_an_ipv6_socket_as_ipv4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
