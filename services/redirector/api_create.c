// SPDX-License-Identifier: MIT
#include "common/instant/instant.h"
#include "common/json/json.h"
#include "common/rpc/rpc.h"
#include "dunlin/v1/writer.pb-c.h"
#include "services/redirector/api_call.h"
#include "services/redirector/query.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// The fields of a create, borrowed from the document.
struct wish {
    const char *url;
    size_t url_len;
    const char *alias;
    bool has_expiry;
    int64_t expires_at;
};

// A text without NUL; null counts as absent where `optional`. NULL where there is none or a rule is broken.
static const char *text_field(
    const char *name, const struct json_value *value, bool optional, size_t *len, struct problem *why) {
    if (value != NULL && json_type(value) == JSON_NULL && optional)
        return NULL;
    if (value == NULL || json_type(value) != JSON_STRING) {
        if (value == NULL)
            (void)problem_violate(why, name, "It is missing.");
        else
            (void)problem_violate(
                why, name, "It must be a string, not %s.", json_type_name(json_type(value)));
        return NULL;
    }
    if (json_has_nul(value)) {
        (void)problem_violate(why, name, "It must not hold U+0000.");
        return NULL;
    }
    return json_text(value, len);
}

static void read_expiry(const struct json_value *value, struct wish *wish, struct problem *why) {
    size_t len = 0;
    const char *text = text_field("expires_at", value, true, &len, why);
    if (text == NULL)
        return;
    wish->has_expiry = instant_parse(text, len, &wish->expires_at);
    if (!wish->has_expiry)
        (void)problem_violate(why, "expires_at",
            "It must be an RFC 3339 instant with an offset, up to the year 9999, such as "
            "2030-01-31T09:20:00Z.");
}

static void read_wish(const struct json_value *root, struct wish *wish, struct problem *why) {
    if (json_type(root) != JSON_OBJECT) {
        (void)problem_violate(
            why, "body", "It must be a JSON object, not %s.", json_type_name(json_type(root)));
        return;
    }
    size_t len = 0;
    wish->url = text_field("url", json_member(root, "url"), false, &wish->url_len, why);
    for (size_t i = 0; i < json_size(root); i++) {
        const char *key = json_key_at(root, i);
        if (strcmp(key, "alias") == 0)
            wish->alias = text_field("alias", json_at(root, i), true, &len, why);
        else if (strcmp(key, "expires_at") == 0)
            read_expiry(json_at(root, i), wish, why);
        else if (strcmp(key, "url") != 0)
            (void)problem_violate(why, key, "It is not a field of a link.");
    }
}

// "application/json", with parameters or none.
static bool is_json(const char *content_type) {
    static const char name[] = "application/json";
    if (content_type == NULL || strncasecmp(content_type, name, sizeof name - 1) != 0)
        return false;
    const char *rest = content_type + sizeof name - 1;
    rest += strspn(rest, " \t");
    return *rest == '\0' || *rest == ';';
}

static void created(const Dunlin__V1__Link *link, void *arg) {
    struct answer *answer = arg;
    if (link == NULL)
        return;
    answer->status = 201;
    char location[64];
    (void)snprintf(location, sizeof location, "/api/v1/links/%s", link->code);
    answer_header_copy(answer, "Location", location);
    api_put_link(answer, link);
}

static void send(const struct api *api, const struct wish *wish, struct answer *answer) {
    Dunlin__V1__CreateLinkRequest request = DUNLIN__V1__CREATE_LINK_REQUEST__INIT;
    request.url.data = (uint8_t *)wish->url;
    request.url.len = wish->url_len;
    request.alias = (char *)wish->alias;
    request.has_expires_at_us = wish->has_expiry;
    request.expires_at_us = wish->expires_at;
    dunlin__v1__writer__create_link(api->writer, &request, created, answer);
    if (rpc_outcome()->status != STATUS_OK)
        answer_outcome(answer, rpc_outcome());
}

void api_create(const struct api *api, const struct api_request *request, struct answer *answer) {
    struct problem why = {0};
    if (!is_json(request->content_type)) {
        (void)problem_set(&why, STATUS_INVALID_ARGUMENT, "", "Content-Type must be application/json.");
        api_refuse(api, answer, 415, &why);
        return;
    }
    if (request->refusal != 0) {
        api_refuse_by_http(api, request, answer);
        return;
    }
    if (request->awaits_body) {
        if (api_admits(api, answer))
            answer->status = API_GO_ON;
        return;
    }
    struct json_doc *doc = NULL;
    if (json_parse(request->body != NULL ? request->body : "", request->body_len, &doc, &why) != STATUS_OK) {
        api_refuse(api, answer, strcmp(why.reason, "MALFORMED_JSON") == 0 ? 400 : 422, &why);
        return;
    }
    struct wish wish = {0};
    // What is not well-formed is told alone, any broken rules together.
    bool malformed = query_parse(request->query, NULL, 0, &why) != STATUS_OK && query_is_malformed(&why);
    if (!malformed)
        read_wish(json_root(doc), &wish, &why);
    if (why.status != STATUS_OK)
        api_refuse(api, answer, malformed ? 400 : 422, &why);
    else
        send(api, &wish, answer);
    json_doc_free(doc);
}
