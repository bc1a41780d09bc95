// SPDX-License-Identifier: MIT
#include "services/redirector/answer.h"
#include "common/json/json.h"
#include "services/redirector/accept.h"

#include <stdio.h>
#include <string.h>

static const struct {
    int status;
    const char *title;
    const char *sentence; // for people, on the HTML page
} titles[] = {
    {400, "Bad Request", "The request is not well-formed."},
    {401, "Unauthorized", "An API key is needed."},
    {403, "Forbidden", "The API key does not permit this."},
    {404, "Not Found", "There is no such link here."},
    {405, "Method Not Allowed", "This address does not take that method."},
    {408, "Request Timeout", "The request took too long to arrive."},
    {409, "Conflict", "The request is at odds with what is there."},
    {410, "Gone", "This link has ended and will not come back."},
    {412, "Precondition Failed", "The resource has another version."},
    {413, "Content Too Large", "The request's body is too large."},
    {414, "URI Too Long", "The address is too long."},
    {415, "Unsupported Media Type", "The body is of a kind that is not taken here."},
    {417, "Expectation Failed", "The request expects what is not done here."},
    {421, "Misdirected Request", "This host is not served here."},
    {422, "Unprocessable Content", "A field of the request breaks a rule."},
    {429, "Too Many Requests", "Too many requests came from your address."},
    {431, "Request Header Fields Too Large", "The request's head is too large."},
    {500, "Internal Server Error", "Something is wrong here, not with your request."},
    {501, "Not Implemented", "That method is not known here."},
    {503, "Service Unavailable", "A part of the service is away. Please try again in a moment."},
};

static const char *sentence_of(int http_status) {
    for (size_t i = 0; i < ARRAY_LEN(titles); i++)
        if (titles[i].status == http_status)
            return titles[i].sentence;
    return "";
}

const char *answer_title(int http_status) {
    for (size_t i = 0; i < ARRAY_LEN(titles); i++)
        if (titles[i].status == http_status)
            return titles[i].title;
    return "Error";
}

void answer_init(struct answer *answer, int status) {
    answer->status = status;
    answer->close = false;
    answer->header_count = 0;
    answer->scratch_len = 0;
    buf_init(&answer->body, ANSWER_BODY_MAX);
    answer_header(answer, "X-Content-Type-Options", "nosniff");
}

void answer_done(struct answer *answer) {
    buf_done(&answer->body);
}

void answer_header(struct answer *answer, const char *name, const char *value) {
    REQUIRE(answer->header_count < ANSWER_HEADERS_MAX);
    answer->headers[answer->header_count++] = (struct web_header_field){name, value};
}

void answer_header_copy(struct answer *answer, const char *name, const char *value) {
    size_t size = strlen(value) + 1;
    REQUIRE(size <= ANSWER_SCRATCH - answer->scratch_len);
    char *copy = answer->scratch + answer->scratch_len;
    memcpy(copy, value, size);
    answer->scratch_len += size;
    answer_header(answer, name, copy);
}

static void error_headers(struct answer *answer, int http_status, const struct problem *why) {
    answer->status = http_status;
    buf_clear(&answer->body);
    answer_header(answer, "Cache-Control", "no-store");
    answer_header(answer, "X-Robots-Tag", "noindex");
    answer_header(answer, "Referrer-Policy", "no-referrer");
    if (http_status == 401)
        answer_header(answer, "WWW-Authenticate", "Bearer");
    if (http_status == 503 || http_status == 429) {
        char seconds[16];
        (void)snprintf(seconds, sizeof seconds, "%u", why->retry_after_s != 0 ? why->retry_after_s : 1);
        answer_header_copy(answer, "Retry-After", seconds);
    }
}

static char type_byte(char byte) {
    if (byte == '_')
        return '-';
    if (byte >= 'A' && byte <= 'Z')
        return "abcdefghijklmnopqrstuvwxyz"[byte - 'A'];
    return byte;
}

// "ALIAS_TAKEN" is urn:dunlin:problem:alias-taken; no reason is about:blank.
static void put_type(struct json_writer *json, const char *reason) {
    char type[96] = "about:blank";
    if (reason[0] != '\0') {
        int len = snprintf(type, sizeof type, "urn:dunlin:problem:%s", reason);
        for (int i = 0; i < len; i++)
            type[i] = type_byte(type[i]);
    }
    json_put_string(json, type);
}

void answer_problem(struct answer *answer, int http_status, const struct problem *why) {
    error_headers(answer, http_status, why);
    answer_header(answer, "Content-Type", "application/problem+json");
    struct json_writer json;
    json_begin(&json, &answer->body);
    json_object_begin(&json);
    json_key(&json, "type");
    put_type(&json, why->reason);
    json_key(&json, "title");
    json_put_string(&json, answer_title(http_status));
    json_key(&json, "status");
    json_put_int64(&json, http_status);
    json_key(&json, "detail");
    json_put_string(&json, why->message[0] != '\0' ? why->message : sentence_of(http_status));
    if (why->violation_count > 0) {
        json_key(&json, "errors");
        json_array_begin(&json);
        for (size_t i = 0; i < why->violation_count; i++) {
            json_object_begin(&json);
            json_key(&json, "field");
            json_put_string(&json, why->violations[i].field);
            json_key(&json, "rule");
            json_put_string(&json, why->violations[i].rule);
            json_object_end(&json);
        }
        json_array_end(&json);
    }
    json_object_end(&json);
    buf_putc(&answer->body, '\n');
}

void answer_error(struct answer *answer, int http_status, const struct problem *why, const char *accept) {
    answer_header(answer, "Vary", "Accept");
    if (!accept_names(accept, "text/html")) {
        answer_problem(answer, http_status, why);
        return;
    }
    error_headers(answer, http_status, why);
    answer_header(answer, "Content-Type", "text/html; charset=utf-8");
    // Our own words alone: nothing of the request is ever echoed here.
    buf_printf(&answer->body,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>%d %s</title></head>\n"
        "<body><h1>%s</h1><p>%s</p></body></html>\n",
        http_status, answer_title(http_status), answer_title(http_status), sentence_of(http_status));
}

void answer_outcome(struct answer *answer, const struct problem *why) {
    answer_problem(answer, status_http(why->status), why);
}

void answer_send(const struct answer *answer, struct web_request *request) {
    struct web_answer out = {
        .status = answer->status,
        .headers = answer->headers,
        .header_count = answer->header_count,
        .body = answer->body.data,
        .body_len = answer->body.len,
        .close = answer->close,
    };
    if (!buf_ok(&answer->body))
        out = (struct web_answer){.status = 500, .close = true};
    web_answer(request, &out);
}
