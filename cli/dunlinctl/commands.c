// SPDX-License-Identifier: MIT
#include "cli/dunlinctl/dunlinctl.h"
#include "common/documents/documents.h"
#include "common/instant/instant.h"
#include "common/rpc/rpc_client.h"
#include "dunlin/v1/keyrange.pb-c.h"
#include "dunlin/v1/writer.pb-c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_MAX ((size_t)4 * 1024 * 1024)

// ---- a call

struct call {
    const struct command_line *line;
    struct rpc_client *client;
    struct rpc_context context;
    const struct rpc_context *before;
};

static int fail_usage(const char *sentence) {
    (void)fprintf(stderr, "dunlinctl: %s\n", sentence);
    return EXIT_USAGE;
}

static int exit_code(enum status status) {
    return status == STATUS_OK ? EXIT_DONE : status_is_retryable(status) ? EXIT_UNAVAILABLE : EXIT_REFUSED;
}

static int fail(const struct problem *why) {
    (void)fprintf(stderr, "dunlinctl: %s: %s\n", status_name(why->status), why->message);
    for (size_t i = 0; i < why->violation_count; i++)
        (void)fprintf(stderr, "  %s %s\n", why->violations[i].field, why->violations[i].rule);
    return exit_code(why->status);
}

// EXIT_DONE where the call can be made; call_end() it then.
static int call_begin(struct call *call, const struct command_line *line, const char *peer,
    const char *target, const ProtobufCServiceDescriptor *service, bool needs_key) {
    *call = (struct call){.line = line};
    if (target == NULL || target[0] == '\0')
        return fail_usage("no address: set DUNLIN_WRITER, DUNLIN_CLICKS or DUNLIN_KEYRANGE, or use the flag");
    if (needs_key && (line->api_key == NULL || line->api_key[0] == '\0'))
        return fail_usage("no API key: set DUNLIN_API_KEY or use --api-key");
    if (needs_key)
        (void)snprintf(
            call->context.authorization, sizeof call->context.authorization, "Bearer %s", line->api_key);
    const struct rpc_client_options options = {
        .peer = peer, .target = target, .service = service, .timeout_us = line->timeout_us};
    struct problem why = {0};
    if (rpc_client_open(&options, &call->client, &why) != STATUS_OK) {
        (void)fail(&why);
        return EXIT_USAGE;
    }
    call->context.deadline_us = base_monotonic_us() + line->timeout_us;
    call->before = rpc_context_swap(&call->context);
    return EXIT_DONE;
}

// Prints the problem of a call that failed.
static int call_end(struct call *call) {
    struct problem outcome = *rpc_outcome();
    (void)rpc_context_swap(call->before);
    rpc_client_close(call->client);
    return outcome.status == STATUS_OK ? EXIT_DONE : fail(&outcome);
}

static int call_writer(struct call *call, const struct command_line *line) {
    return call_begin(call, line, "writer", line->writer, &dunlin__v1__writer__descriptor, true);
}

// ---- output

typedef void put_document(struct json_writer *json, const void *message);

static void print_json(put_document *put, const void *message) {
    struct buf out;
    struct json_writer json;
    buf_init(&out, OUTPUT_MAX);
    json_begin(&json, &out);
    put(&json, message);
    (void)puts(buf_text(&out));
    buf_done(&out);
}

static void put_link(struct json_writer *json, const void *message) {
    documents_put_link(json, message);
}

static void put_clicks(struct json_writer *json, const void *message) {
    documents_put_clicks(json, message);
}

static void put_decoded(struct json_writer *json, const void *message) {
    const Dunlin__V1__DecodeCodeResponse *decoded = message;
    json_object_begin(json);
    json_key(json, "code");
    json_put_string(json, decoded->code);
    json_key(json, "slot");
    json_put_uint64(json, decoded->slot);
    json_key(json, "counter");
    json_put_uint64(json, decoded->counter);
    json_object_end(json);
}

static void put_advanced(struct json_writer *json, const void *message) {
    const Dunlin__V1__AdvanceCounterResponse *advanced = message;
    json_object_begin(json);
    json_key(json, "slot");
    json_put_uint64(json, advanced->slot);
    json_key(json, "counter");
    json_put_uint64(json, advanced->counter);
    json_object_end(json);
}

static void put_key(struct json_writer *json, const void *message) {
    const Dunlin__V1__CreateKeyResponse *made = message;
    json_object_begin(json);
    json_key(json, "id");
    json_put_string(json, made->id);
    json_key(json, "key");
    json_put_string(json, made->key);
    json_key(json, "owner");
    json_put_string(json, made->owner);
    json_key(json, "scope");
    json_put_string(json, made->scope);
    json_object_end(json);
}

// ---- create and get

static bool is_json(const void *line) {
    return ((const struct command_line *)line)->json;
}

static void print_created(const Dunlin__V1__Link *link, void *line) {
    if (link == NULL)
        return;
    if (is_json(line))
        print_json(put_link, link);
    else
        (void)puts(link->short_url);
    for (size_t i = 0; i < link->n_warnings; i++)
        (void)fprintf(stderr, "dunlinctl: warning: %s\n", link->warnings[i]);
}

int command_create(const struct command_line *line) {
    Dunlin__V1__CreateLinkRequest request = DUNLIN__V1__CREATE_LINK_REQUEST__INIT;
    request.url.data = (uint8_t *)line->argument;
    request.url.len = strlen(line->argument);
    request.alias = (char *)line->alias;
    if (line->expires_at != NULL) {
        request.has_expires_at_us = true;
        if (!instant_parse(line->expires_at, strlen(line->expires_at), &request.expires_at_us))
            return fail_usage("--expires-at must be an RFC 3339 instant with an offset");
    }
    struct call call;
    int code = call_writer(&call, line);
    if (code != EXIT_DONE)
        return code;
    dunlin__v1__writer__create_link(rpc_client_service(call.client), &request, print_created, (void *)line);
    return call_end(&call);
}

static void print_instant(const char *name, int64_t instant) {
    char text[INSTANT_TEXT];
    instant_format(instant, text);
    (void)printf("%-11s %s\n", name, text);
}

static void print_got(const Dunlin__V1__Link *link, void *line) {
    if (link == NULL)
        return;
    if (is_json(line)) {
        print_json(put_link, link);
        return;
    }
    (void)printf("%-11s %s\n", "code", link->code);
    (void)printf("%-11s %s\n", "short_url", link->short_url);
    (void)printf("%-11s %.*s\n", "url", (int)link->url.len, (const char *)link->url.data);
    (void)printf("%-11s %s\n", "owner", link->owner);
    (void)printf("%-11s %s\n", "state", documents_state_name(link->state));
    (void)printf("%-11s %" PRIu64 "\n", "version", link->version);
    print_instant("created_at", link->created_at_us);
    if (link->has_expires_at_us)
        print_instant("expires_at", link->expires_at_us);
}

int command_get(const struct command_line *line) {
    Dunlin__V1__GetLinkRequest request = DUNLIN__V1__GET_LINK_REQUEST__INIT;
    request.code = (char *)line->argument;
    struct call call;
    int code = call_writer(&call, line);
    if (code != EXIT_DONE)
        return code;
    dunlin__v1__writer__get_link(rpc_client_service(call.client), &request, print_got, (void *)line);
    return call_end(&call);
}

// ---- clicks

static void print_clicks(const Dunlin__V1__GetClicksResponse *clicks, void *line) {
    if (clicks == NULL)
        return;
    if (is_json(line)) {
        print_json(put_clicks, clicks);
        return;
    }
    for (size_t i = 0; i < clicks->n_days; i++) {
        char day[INSTANT_TEXT];
        instant_format_day(clicks->days[i]->day, day);
        (void)printf("%s %" PRIu64 "\n", day, clicks->days[i]->clicks);
    }
    (void)printf("total      %" PRIu64 "\nlifetime   %" PRIu64 "\n", clicks->total, clicks->lifetime);
}

static bool read_day(const char *text, protobuf_c_boolean *has, int32_t *out) {
    *has = text != NULL;
    return text == NULL || instant_parse_day(text, strlen(text), out);
}

int command_clicks(const struct command_line *line) {
    Dunlin__V1__GetClicksRequest request = DUNLIN__V1__GET_CLICKS_REQUEST__INIT;
    request.code = (char *)line->argument;
    if (!read_day(line->from, &request.has_from_day, &request.from_day) ||
        !read_day(line->to, &request.has_to_day, &request.to_day))
        return fail_usage("--from and --to must be UTC days such as 2026-12-01");
    struct call call;
    int code = call_begin(&call, line, "clicks", line->clicks, &dunlin__v1__clicks__descriptor, true);
    if (code != EXIT_DONE)
        return code;
    dunlin__v1__clicks__get_clicks(rpc_client_service(call.client), &request, print_clicks, (void *)line);
    return call_end(&call);
}

// ---- decode and key create

static void print_decoded(const Dunlin__V1__DecodeCodeResponse *decoded, void *line) {
    if (decoded == NULL)
        return;
    if (is_json(line))
        print_json(put_decoded, decoded);
    else
        (void)printf("slot %u counter %" PRIu64 "\n", decoded->slot, decoded->counter);
}

int command_decode(const struct command_line *line) {
    Dunlin__V1__DecodeCodeRequest request = DUNLIN__V1__DECODE_CODE_REQUEST__INIT;
    request.code = (char *)line->argument;
    struct call call;
    int code = call_begin(&call, line, "writer", line->writer, &dunlin__v1__writer__descriptor, false);
    if (code != EXIT_DONE)
        return code;
    dunlin__v1__writer__decode_code(rpc_client_service(call.client), &request, print_decoded, (void *)line);
    return call_end(&call);
}

static void print_key(const Dunlin__V1__CreateKeyResponse *made, void *line) {
    if (made == NULL)
        return;
    if (is_json(line))
        print_json(put_key, made);
    else
        (void)puts(made->key);
}

int command_key_create(const struct command_line *line) {
    if (line->owner == NULL)
        return fail_usage("key create needs --owner NAME");
    Dunlin__V1__CreateKeyRequest request = DUNLIN__V1__CREATE_KEY_REQUEST__INIT;
    request.owner = (char *)line->owner;
    request.scope = (char *)line->scope;
    struct call call;
    int code = call_begin(&call, line, "writer", line->writer, &dunlin__v1__keys__descriptor, false);
    if (code != EXIT_DONE)
        return code;
    dunlin__v1__keys__create_key(rpc_client_service(call.client), &request, print_key, (void *)line);
    return call_end(&call);
}

// ---- keyrange advance

static void print_advanced(const Dunlin__V1__AdvanceCounterResponse *advanced, void *line) {
    if (advanced == NULL)
        return;
    if (is_json(line))
        print_json(put_advanced, advanced);
    else
        (void)printf("slot %u counter %" PRIu64 "\n", advanced->slot, advanced->counter);
}

static bool read_number(const char *text, uint64_t max, uint64_t *out) {
    if (text == NULL || text[0] == '\0' || strlen(text) > 18 || strspn(text, "0123456789") != strlen(text))
        return false;
    *out = strtoull(text, NULL, 10);
    return *out <= max;
}

int command_keyrange_advance(const struct command_line *line) {
    Dunlin__V1__AdvanceCounterRequest request = DUNLIN__V1__ADVANCE_COUNTER_REQUEST__INIT;
    uint64_t slot;
    if (!read_number(line->slot, UINT32_MAX, &slot) || !read_number(line->to, UINT64_MAX, &request.to))
        return fail_usage("keyrange advance needs --slot N and --to COUNTER, both numbers");
    request.slot = (uint32_t)slot;
    request.has_force = line->force;
    request.force = line->force;
    struct call call;
    int code = call_begin(&call, line, "keyrange", line->keyrange, &dunlin__v1__keyrange__descriptor, false);
    if (code != EXIT_DONE)
        return code;
    dunlin__v1__keyrange__advance_counter(
        rpc_client_service(call.client), &request, print_advanced, (void *)line);
    return call_end(&call);
}
