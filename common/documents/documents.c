// SPDX-License-Identifier: MIT
#include "common/documents/documents.h"
#include "common/instant/instant.h"

const char *documents_state_name(Dunlin__V1__LinkState state) {
    switch (state) {
    case DUNLIN__V1__LINK_STATE__LINK_STATE_ACTIVE:
        return "active";
    case DUNLIN__V1__LINK_STATE__LINK_STATE_DISABLED:
        return "disabled";
    case DUNLIN__V1__LINK_STATE__LINK_STATE_DELETED:
        return "deleted";
    case DUNLIN__V1__LINK_STATE__LINK_STATE_EXPIRED:
        return "expired";
    default:
        return "unknown";
    }
}

static void put_instant(struct json_writer *json, const char *key, bool has, int64_t instant) {
    char text[INSTANT_TEXT];
    instant_format(instant, text);
    json_key(json, key);
    json_put_string(json, has ? text : NULL);
}

static void put_day(struct json_writer *json, const char *key, int32_t day) {
    char text[INSTANT_TEXT];
    instant_format_day(day, text);
    json_key(json, key);
    json_put_string(json, text);
}

void documents_put_link(struct json_writer *json, const Dunlin__V1__Link *link) {
    json_object_begin(json);
    json_key(json, "code");
    json_put_string(json, link->code);
    json_key(json, "short_url");
    json_put_string(json, link->short_url);
    json_key(json, "url");
    if (link->has_url)
        json_put_text(json, (const char *)link->url.data, link->url.len);
    else
        json_put_null(json);
    json_key(json, "owner");
    json_put_string(json, link->owner);
    json_key(json, "state");
    json_put_string(json, documents_state_name(link->state));
    json_key(json, "source");
    json_put_string(json, link->source);
    json_key(json, "version");
    json_put_uint64(json, link->version);
    put_instant(json, "created_at", true, link->created_at_us);
    put_instant(json, "updated_at", true, link->updated_at_us);
    put_instant(json, "expires_at", link->has_expires_at_us, link->expires_at_us);
    if (link->n_warnings > 0) {
        json_key(json, "warnings");
        json_array_begin(json);
        for (size_t i = 0; i < link->n_warnings; i++)
            json_put_string(json, link->warnings[i]);
        json_array_end(json);
    }
    json_object_end(json);
}

void documents_put_clicks(struct json_writer *json, const Dunlin__V1__GetClicksResponse *clicks) {
    json_object_begin(json);
    json_key(json, "code");
    json_put_string(json, clicks->code);
    put_day(json, "from", clicks->from_day);
    put_day(json, "to", clicks->to_day);
    json_key(json, "total");
    json_put_uint64(json, clicks->total);
    json_key(json, "lifetime");
    json_put_uint64(json, clicks->lifetime);
    json_key(json, "days");
    json_array_begin(json);
    for (size_t i = 0; i < clicks->n_days; i++) {
        json_object_begin(json);
        put_day(json, "day", clicks->days[i]->day);
        json_key(json, "clicks");
        json_put_uint64(json, clicks->days[i]->clicks);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}
