// SPDX-License-Identifier: MIT
// For the tests of common/db: the real Postgres, and a server that never answers.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static inline const char *conninfo(void) {
    const char *text = getenv("DUNLIN_TEST_PG");
    if (text == NULL)
        fail_msg("DUNLIN_TEST_PG must name a Postgres server, as a superuser's connection URI");
    return text;
}

// A listening socket on a port of the kernel's choice. As nobody accepts, it is a server that takes
// connections and never answers.
static inline int listen_anywhere(int *port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}
