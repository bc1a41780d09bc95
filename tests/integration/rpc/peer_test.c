// SPDX-License-Identifier: MIT
// Peers that end, come back, hang or go deaf. Run with a port as its argument, the program is such a peer.
#include "tests/integration/rpc/keyrange_fake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// NNG 1.5 now and then leaks a dialer that is closed while it connects, and always what a deaf listener had
// accepted. The other tests of RPC run without this.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libnng.so\n";
}

static const char *program;

struct peer {
    pid_t pid;
    int hold; // the child ends when this closes
    uint16_t port;
};

static struct peer start_peer(void) {
    struct peer peer = {0};
    int in[2];
    int out[2];
    char line[16] = "";
    char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "0", NULL};
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    assert_int_equal(posix_spawn(&peer.pid, program, &actions, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    assert_true(read(out[0], line, sizeof line - 1) > 0);
    (void)close(out[0]);
    peer.hold = in[1];
    peer.port = (uint16_t)strtoul(line, NULL, 10);
    return peer;
}

// Comes back once the process has really stopped.
static void freeze_peer(const struct peer *peer) {
    int status = 0;
    assert_int_equal(kill(peer->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(peer->pid, &status, WUNTRACED), peer->pid);
    assert_true(WIFSTOPPED(status));
}

static void kill_peer(const struct peer *peer) {
    (void)kill(peer->pid, SIGKILL);
    assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
    (void)close(peer->hold);
}

static void end_peer(const struct peer *peer) {
    int status = -1;
    (void)close(peer->hold);
    assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
    assert_int_equal(status, 0);
}

static int be_peer(uint16_t port) {
    char byte;
    fake_gate(true);
    struct rpc_server *server = fake_start(port, 2, 8);
    if (server == NULL)
        return 1;
    (void)printf("%u\n", rpc_server_port(server));
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) < 0)
        continue;
    rpc_server_stop(server, US_PER_S);
    return 0;
}

static void nobody_there_is_told_soon_and_then_at_once(void **state) {
    (void)state;
    struct rpc_client *client = fake_client(1, NULL);
    int64_t begun_us = base_monotonic_us();
    assert_int_equal(fake_claim_within(client, 1, 5 * US_PER_S), STATUS_UNAVAILABLE);
    assert_string_equal(rpc_outcome()->reason, "PEER_UNREACHABLE");
    int64_t asked_us = base_monotonic_us();
    assert_in_range(asked_us - begun_us, 300 * US_PER_MS, 2 * US_PER_S);
    assert_int_equal(fake_claim_within(client, 1, 5 * US_PER_S), STATUS_UNAVAILABLE);
    assert_in_range(base_monotonic_us() - asked_us, 0, 200 * US_PER_MS);
    rpc_client_close(client);
}

static void a_bad_target_is_refused(void **state) {
    (void)state;
    struct rpc_client *client = NULL;
    struct problem why;
    const struct rpc_client_options options = {
        .peer = "p", .target = "localhost", .service = &dunlin__v1__keyrange__descriptor, .timeout_us = 1};
    assert_int_equal(rpc_client_open(&options, &client, &why), STATUS_INVALID_ARGUMENT);
    assert_null(client);
    rpc_client_close(NULL);
}

static void a_name_is_resolved(void **state) {
    (void)state;
    char target[64];
    uint64_t block[2];
    struct rpc_server *server = fake_start(0, 1, 4);
    (void)snprintf(target, sizeof target, "tcp://localhost:%u", rpc_server_port(server));
    struct rpc_client *client = fake_client_to(target, NULL);
    assert_int_equal(fake_claim(client, 1, 1, block), STATUS_OK);
    rpc_client_close(client);
    rpc_server_stop(server, US_PER_S);
}

static void a_restarted_server_is_found_again(void **state) {
    (void)state;
    uint64_t block[2];
    struct rpc_server *server = fake_start(0, 2, 8);
    uint16_t port = rpc_server_port(server);
    struct rpc_client *client = fake_client(port, NULL);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake_claim(client, 1, i, block), STATUS_OK);
        rpc_server_stop(server, US_PER_S);
        assert_true(fake_comes_true(fake_is_down, client));
        int64_t asked_us = base_monotonic_us();
        assert_int_equal(fake_claim(client, 1, i, block), STATUS_UNAVAILABLE);
        assert_in_range(base_monotonic_us() - asked_us, 0, 200 * US_PER_MS);
        server = fake_start(port, 2, 8);
        assert_non_null(server);
        assert_true(fake_comes_true(fake_is_up, client));
    }
    rpc_client_close(client);
    rpc_server_stop(server, US_PER_S);
}

struct held {
    pthread_t thread;
    struct rpc_client *client;
    enum status status;
};

static void *hold_call(void *arg) {
    struct held *held = arg;
    held->status = fake_claim_within(held->client, FAKE_HOLD, 10 * US_PER_S);
    return NULL;
}

static bool one_began(void *arg) {
    return atomic_load(&fake_begun) > *(unsigned *)arg;
}

// The process is killed under a call: it may have been done. Only a repeatable one goes to the other address.
static void lose_a_peer(const char *const *repeatable, enum status expected) {
    char target[96];
    fake_gate(true);
    struct peer peer = start_peer();
    struct rpc_server *other = fake_start(0, 1, 16);
    (void)snprintf(
        target, sizeof target, "tcp://127.0.0.1:%u,tcp://127.0.0.1:%u", peer.port, rpc_server_port(other));
    struct rpc_client *client = fake_client_to(target, repeatable);
    struct rpc_client *alone = fake_client(peer.port, NULL);
    assert_int_equal(fake_claim_within(alone, 1, 5 * US_PER_S), STATUS_OK);
    freeze_peer(&peer);
    struct held held[8];
    for (size_t i = 0; i < 8; i++) {
        held[i] = (struct held){.client = client};
        assert_int_equal(pthread_create(&held[i].thread, NULL, hold_call, &held[i]), 0);
    }
    int64_t end_us = base_monotonic_us() + 300 * US_PER_MS; // the calls are on their way
    while (base_monotonic_us() < end_us)
        fake_pause();
    kill_peer(&peer);
    for (size_t i = 0; i < 8; i++) {
        (void)pthread_join(held[i].thread, NULL);
        if (held[i].status != STATUS_OK)
            assert_int_equal(held[i].status, expected);
    }
    rpc_client_close(alone);
    rpc_client_close(client);
    rpc_server_stop(other, US_PER_S);
}

static void a_repeatable_call_survives_its_peer(void **state) {
    (void)state;
    static const char *const repeatable[] = {"ClaimBlock", NULL};
    lose_a_peer(repeatable, STATUS_OK);
}

static void another_call_does_not_run_twice(void **state) {
    (void)state;
    lose_a_peer(NULL, STATUS_UNAVAILABLE);
}

static void a_lost_connection_is_not_repeated(void **state) {
    (void)state;
    unsigned before = atomic_load(&fake_begun);
    fake_gate(false);
    struct peer peer = start_peer();
    struct rpc_client *client = fake_client(peer.port, NULL);
    assert_int_equal(fake_claim_within(client, 1, 5 * US_PER_S), STATUS_OK);
    freeze_peer(&peer);
    struct held held = {.client = client};
    assert_int_equal(pthread_create(&held.thread, NULL, hold_call, &held), 0);
    int64_t end_us = base_monotonic_us() + 200 * US_PER_MS;
    while (base_monotonic_us() < end_us)
        fake_pause();
    kill_peer(&peer);
    (void)pthread_join(held.thread, NULL);
    assert_int_equal(held.status, STATUS_UNAVAILABLE);
    assert_false(one_began(&before));
    rpc_client_close(client);
}

static void a_hanging_peer_is_left_and_taken_back(void **state) {
    (void)state;
    struct peer peer = start_peer();
    struct rpc_client *client = fake_client(peer.port, NULL);
    assert_int_equal(fake_claim_within(client, 1, 5 * US_PER_S), STATUS_OK);
    freeze_peer(&peer);
    int64_t asked_us = base_monotonic_us();
    assert_int_equal(fake_claim_within(client, 1, 300 * US_PER_MS), STATUS_DEADLINE_EXCEEDED);
    assert_in_range(base_monotonic_us() - asked_us, 290 * US_PER_MS, 2 * US_PER_S);
    assert_true(fake_comes_true(fake_is_down, client));
    asked_us = base_monotonic_us();
    assert_int_equal(fake_claim_within(client, 1, 5 * US_PER_S), STATUS_UNAVAILABLE);
    assert_in_range(base_monotonic_us() - asked_us, 0, 200 * US_PER_MS);
    (void)kill(peer.pid, SIGCONT);
    assert_true(fake_comes_true(fake_is_up, client));
    assert_int_equal(fake_claim_within(client, 1, 5 * US_PER_S), STATUS_OK);
    rpc_client_close(client);
    end_peer(&peer);
}

// A FIN and then a reset, both before the server's first write, make NNG 1.5's listener accept nobody any
// more.
static void probe_while_stopped(const struct peer *peer) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(peer->port)};
    const struct linger reset = {.l_onoff = 1};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    freeze_peer(peer);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    (void)shutdown(fd, SHUT_WR);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    (void)close(fd);
    (void)kill(peer->pid, SIGCONT);
}

static void a_deaf_listener_is_made_anew(void **state) {
    (void)state;
    struct peer peer = start_peer();
    probe_while_stopped(&peer);
    struct rpc_client *client = fake_client(peer.port, NULL);
    assert_true(fake_comes_true(fake_is_up, client));
    assert_int_equal(fake_claim_within(client, 1, 5 * US_PER_S), STATUS_OK);
    rpc_client_close(client);
    end_peer(&peer);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_target_is_refused),
        cmocka_unit_test(nobody_there_is_told_soon_and_then_at_once),
        cmocka_unit_test(a_name_is_resolved),
        cmocka_unit_test(a_restarted_server_is_found_again),
        cmocka_unit_test(a_lost_connection_is_not_repeated),
        cmocka_unit_test(another_call_does_not_run_twice),
        cmocka_unit_test(a_repeatable_call_survives_its_peer),
        cmocka_unit_test(a_hanging_peer_is_left_and_taken_back),
        cmocka_unit_test(a_deaf_listener_is_made_anew),
    };
    program = argv[0];
    if (!log_open("rpc_peer_test", "error"))
        return 1;
    if (argc > 1)
        return be_peer((uint16_t)strtoul(argv[1], NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
