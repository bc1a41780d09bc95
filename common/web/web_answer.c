// SPDX-License-Identifier: MIT
// Answers: as libmicrohttpd's responses, and on the socket itself where libmicrohttpd takes none.
#include "common/web/web_internal.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

// What a raw answer may be at most; it must fit into an empty socket buffer.
#define RAW_MAX 65536

// C strings hold no NUL; a line break would let a value write fields of its own.
static bool field_is_safe(const struct web_header_field *field) {
    return strpbrk(field->name, "\r\n") == NULL && strpbrk(field->value, "\r\n") == NULL;
}

static bool fields_are_safe(const struct web_answer *answer) {
    for (size_t i = 0; i < answer->header_count; i++)
        if (!field_is_safe(&answer->headers[i]))
            return false;
    return true;
}

static struct MHD_Response *response_of(const struct web_answer *answer) {
    size_t len = answer->body == NULL ? 0 : answer->body_len;
    enum MHD_ResponseMemoryMode mode = len == 0 ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY;
    const char *body = len == 0 ? "" : answer->body;
    struct MHD_Response *response = MHD_create_response_from_buffer(len, (void *)(uintptr_t)body, mode);
    REQUIRE(response != NULL);
    return response;
}

static bool add_fields(struct MHD_Response *response, const struct web_answer *answer) {
    for (size_t i = 0; i < answer->header_count; i++)
        if (MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value) != MHD_YES)
            return false;
    return true;
}

struct MHD_Response *web_answer_build(struct web_request *request, const struct web_answer *answer) {
    struct MHD_Response *response = NULL;
    if (fields_are_safe(answer)) {
        response = response_of(answer);
        if (!add_fields(response, answer)) {
            MHD_destroy_response(response);
            response = NULL;
        }
    }
    request->status = (unsigned)answer->status;
    if (response == NULL) {
        response = response_of(&(struct web_answer){0});
        request->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (answer->close || request->head.refusal != 0 || request->web->draining) {
        REQUIRE(MHD_add_response_header(response, "Connection", "close") == MHD_YES);
        request->conn->linger = true;
    }
    return response;
}

static void put_date(struct buf *out) {
    char text[40];
    struct tm utc;
    time_t now = (time_t)(base_wall_us() / US_PER_S);
    if (gmtime_r(&now, &utc) != NULL && strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc) > 0)
        buf_printf(out, "Date: %s\r\n", text);
}

static void serialise(struct buf *out, const struct web_request *request, const struct web_answer *answer) {
    static const struct web_answer broken = {.status = MHD_HTTP_INTERNAL_SERVER_ERROR};
    if (!fields_are_safe(answer))
        answer = &broken;
    size_t len = answer->body == NULL ? 0 : answer->body_len;
    buf_printf(
        out, "HTTP/1.1 %d %s\r\n", answer->status, MHD_get_reason_phrase_for((unsigned)answer->status));
    put_date(out);
    buf_printf(out, "Connection: close\r\nContent-Length: %zu\r\n", len);
    for (size_t i = 0; i < answer->header_count; i++)
        buf_printf(out, "%s: %s\r\n", answer->headers[i].name, answer->headers[i].value);
    buf_puts(out, "\r\n");
    if (request->head.method != WEB_HEAD)
        buf_append(out, answer->body, len);
}

void web_answer_raw(struct web_request *request, const struct web_answer *answer) {
    struct buf out;
    buf_init(&out, RAW_MAX);
    serialise(&out, request, answer);
    // Nothing else is on its way to this peer, so a short write means that it has gone or never reads.
    if (buf_ok(&out))
        (void)send(request->conn->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    buf_done(&out);
}
