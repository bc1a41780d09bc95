// SPDX-License-Identifier: MIT
#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX ((size_t)64 * 1024)
#define BODY_MAX ((size_t)16 * 1024 * 1024)

struct http_client {
    int fd;
    char host[64];
    struct buf in; // received and not read yet from `at` on
    size_t at;
    int64_t sent_us;
};

// ---- the connection

static bool parse_url(const char *url, char host[64], struct sockaddr_in *out) {
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return false;
    (void)snprintf(host, 64, "%s", url + sizeof scheme - 1);
    host[strcspn(host, "/")] = '\0';
    char address[64];
    (void)snprintf(address, sizeof address, "%s", host);
    char *colon = strchr(address, ':');
    if (colon == NULL)
        return false;
    *colon = '\0';
    out->sin_family = AF_INET;
    out->sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    return inet_pton(AF_INET, address, &out->sin_addr) == 1;
}

struct http_client *http_client_open(const char *url) {
    struct http_client *client = base_calloc(1, sizeof *client);
    struct sockaddr_in to = {0};
    REQUIRE(parse_url(url, client->host, &to));
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(client->fd >= 0);
    buf_init(&client->in, HEAD_MAX + BODY_MAX);
    if (connect(client->fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        http_client_close(client);
        return NULL;
    }
    return client;
}

void http_client_close(struct http_client *client) {
    if (client == NULL)
        return;
    (void)close(client->fd);
    buf_done(&client->in);
    free(client);
}

// A server may refuse and close before it has taken everything: what it said is read all the same.
void http_client_send_bytes(struct http_client *client, const void *bytes, size_t len) {
    const char *next = bytes;
    client->sent_us = base_monotonic_us();
    while (len > 0) {
        struct pollfd ready = {.fd = client->fd, .events = POLLOUT};
        if (poll(&ready, 1, (int)(HTTP_WAIT_US / US_PER_MS)) != 1)
            return;
        ssize_t sent = send(client->fd, next, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            return;
        next += sent;
        len -= (size_t)sent;
    }
}

void http_client_send(struct http_client *client, const struct http_request *request) {
    const char *fields = request->fields != NULL ? request->fields : "";
    size_t body_len =
        request->body_len == 0 && request->body != NULL ? strlen(request->body) : request->body_len;
    struct buf out;
    buf_init(&out, HEAD_MAX + BODY_MAX);
    buf_printf(&out, "%s ", request->method != NULL ? request->method : "GET");
    buf_puts(&out, request->target);
    buf_puts(&out, " HTTP/1.1\r\n");
    if (strcasestr(fields, "Host:") != fields)
        buf_printf(&out, "Host: %s\r\n", client->host);
    buf_puts(&out, fields);
    if (request->key != NULL)
        buf_printf(&out, "Authorization: Bearer %s\r\n", request->key);
    if (request->type != NULL)
        buf_printf(&out, "Content-Type: %s\r\n", request->type);
    if (request->body != NULL)
        buf_printf(&out, "Content-Length: %zu\r\n", body_len);
    buf_puts(&out, "\r\n");
    if (request->body != NULL)
        buf_append(&out, request->body, body_len);
    REQUIRE(buf_ok(&out));
    http_client_send_bytes(client, out.data, out.len);
    buf_done(&out);
}

// False at the end of the stream or of our patience.
static bool receive(struct http_client *client, int64_t deadline_us) {
    struct pollfd ready = {.fd = client->fd, .events = POLLIN};
    int64_t left_ms = (deadline_us - base_monotonic_us()) / US_PER_MS;
    if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) != 1)
        return false;
    char bytes[16384];
    ssize_t got = recv(client->fd, bytes, sizeof bytes, 0);
    if (got <= 0)
        return false;
    buf_append(&client->in, bytes, (size_t)got);
    return buf_ok(&client->in);
}

// Reads on until `len` bytes wait.
static bool want(struct http_client *client, size_t len, int64_t deadline_us) {
    while (client->in.len - client->at < len)
        if (!receive(client, deadline_us))
            return false;
    return true;
}

static void take(struct http_client *client, size_t len, struct buf *out) {
    buf_append(out, client->in.data + client->at, len);
    client->at += len;
}

// Takes everything up to and with `end`.
static bool take_until(struct http_client *client, const char *end, int64_t deadline_us, struct buf *out) {
    for (;;) {
        size_t waiting = client->in.len - client->at;
        const char *from = waiting == 0 ? NULL : client->in.data + client->at;
        const char *found = from == NULL ? NULL : memmem(from, waiting, end, strlen(end));
        if (found != NULL) {
            take(client, (size_t)(found - from) + strlen(end), out);
            return buf_ok(out);
        }
        if (!receive(client, deadline_us))
            return false;
    }
}

// ---- an answer

// Splits the head in place. Every line ends in CR LF and holds no other control but tab.
static bool parse_head(struct http_answer *answer) {
    char *line = answer->head.data;
    if (strlen(line) != answer->head.len || sscanf(line, "HTTP/1.1 %3d ", &answer->status) != 1)
        return false;
    for (size_t lines = 0;; lines++) {
        size_t len = strcspn(line, "\r\n");
        if (line[len] != '\r' || line[len + 1] != '\n')
            return false;
        line[len] = '\0';
        if (lines > 0 && len == 0)
            return true;
        if (lines > 0) {
            size_t name =
                strspn(line, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
            if (name == 0 || line[name] != ':' || answer->field_count == HTTP_FIELDS_MAX)
                return false;
            line[name] = '\0';
            answer->fields[answer->field_count++] =
                (struct http_field){line, line + name + 1 + strspn(line + name + 1, " \t")};
        }
        line += len + 2;
    }
}

static bool read_chunks(struct http_client *client, int64_t deadline_us, struct buf *out) {
    for (;;) {
        struct buf size_line;
        buf_init(&size_line, 256);
        bool good = take_until(client, "\r\n", deadline_us, &size_line);
        size_t size = strtoul(buf_text(&size_line), NULL, 16);
        buf_done(&size_line);
        if (!good || size > BODY_MAX || !want(client, size + 2, deadline_us))
            return false;
        take(client, size, out);
        client->at += 2;
        if (size == 0)
            return buf_ok(out);
    }
}

static bool read_body(struct http_client *client, int64_t deadline_us, struct http_answer *answer) {
    const char *coding = http_field(answer, "Transfer-Encoding");
    const char *length = http_field(answer, "Content-Length");
    if (coding != NULL)
        return strcasecmp(coding, "chunked") == 0 && read_chunks(client, deadline_us, &answer->body);
    if (length != NULL) {
        size_t len = strtoul(length, NULL, 10);
        if (len > BODY_MAX || !want(client, len, deadline_us))
            return false;
        take(client, len, &answer->body);
        return true;
    }
    while (receive(client, deadline_us))
        continue;
    take(client, client->in.len - client->at, &answer->body);
    return true;
}

void http_client_read(struct http_client *client, bool is_head, struct http_answer *out) {
    int64_t deadline_us = base_monotonic_us() + HTTP_WAIT_US;
    *out = (struct http_answer){0};
    buf_init(&out->head, HEAD_MAX);
    buf_init(&out->body, BODY_MAX);
    bool good;
    do {
        buf_clear(&out->head);
        out->field_count = 0;
        out->status = 0;
        good = take_until(client, "\r\n\r\n", deadline_us, &out->head) && parse_head(out);
    } while (good && out->status / 100 == 1);
    bool has_body = !is_head && out->status != 204 && out->status != 304;
    if (!good || (has_body && !read_body(client, deadline_us, out)))
        out->status = 0;
    out->took_us = base_monotonic_us() - client->sent_us;
    if (client->at == client->in.len) {
        buf_clear(&client->in);
        client->at = 0;
    }
}

void http_answer_done(struct http_answer *answer) {
    buf_done(&answer->head);
    buf_done(&answer->body);
    *answer = (struct http_answer){0};
}

const char *http_field(const struct http_answer *answer, const char *name) {
    for (size_t i = 0; i < answer->field_count; i++)
        if (strcasecmp(answer->fields[i].name, name) == 0)
            return answer->fields[i].value;
    return NULL;
}

size_t http_field_count(const struct http_answer *answer, const char *name) {
    size_t count = 0;
    for (size_t i = 0; i < answer->field_count; i++)
        count += strcasecmp(answer->fields[i].name, name) == 0;
    return count;
}

// ---- one request

void http_ask(const char *url, const struct http_request *request, struct http_answer *out) {
    struct http_client *client = http_client_open(url);
    *out = (struct http_answer){0};
    if (client == NULL)
        return;
    http_client_send(client, request);
    http_client_read(client, request->method != NULL && strcmp(request->method, "HEAD") == 0, out);
    http_client_close(client);
}

void http_get(const char *url, const char *target, struct http_answer *out) {
    http_ask(url, &(struct http_request){.target = target}, out);
}

void http_post_json(
    const char *url, const char *target, const char *key, const char *json, struct http_answer *out) {
    const struct http_request request = {
        .method = "POST", .target = target, .key = key, .type = "application/json", .body = json};
    http_ask(url, &request, out);
}

void http_ask_bytes(const char *url, const void *bytes, size_t len, struct http_answer *out) {
    struct http_client *client = http_client_open(url);
    *out = (struct http_answer){0};
    if (client == NULL)
        return;
    http_client_send_bytes(client, bytes, len);
    http_client_read(client, false, out);
    http_client_close(client);
}
