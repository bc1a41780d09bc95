// SPDX-License-Identifier: MIT
#include "common/linkcache/linkcache.h"
#include "common/instant/instant.h"
#include "common/target/target.h"
#include "dunlin/v1/cache.pb-c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAG_PERMANENT 1U
#define FLAG_STRICT 2U
#define FLAG_FORWARD_QUERY 4U
#define MAX_AGE_MAX 31536000U
#define TTL_MAX_MS (INT64_C(24) * 60 * 60 * 1000)
// The URL, and generous room for the rest: bounds what the unpacker may allocate for unknown fields.
#define VALUE_MAX (TARGET_MAX + 1024)

void cached_link_done(struct cached_link *link) {
    free(link->url);
    link->url = NULL;
    link->url_len = 0;
}

bool cached_link_is_retired(const struct cached_link *link, int64_t now) {
    return link->state == LINK_DELETED || link->state == LINK_EXPIRED ||
           (link->has_expiry && now >= link->expires_at);
}

void linkcache_key(char out[LINKCACHE_KEY], int64_t jumps, const char *code) {
    int len = snprintf(out, LINKCACHE_KEY, "l:%" PRId64 ":%s", jumps, code);
    REQUIRE(len > 0 && len < LINKCACHE_KEY);
}

int64_t linkcache_ttl_ms(const struct cached_link *link, int64_t now) {
    if (!link->has_expiry || cached_link_is_retired(link, now))
        return TTL_MAX_MS;
    int64_t left = (link->expires_at - now) / US_PER_MS;
    if (left > TTL_MAX_MS)
        return TTL_MAX_MS;
    return left > 0 ? left : 1;
}

static bool keeps_url(const struct cached_link *link) {
    return (link->state == LINK_ACTIVE || link->state == LINK_DISABLED) && !link->strict;
}

struct append {
    ProtobufCBuffer base; // first: the library hands back a pointer to it
    struct buf *out;
};

static void append(ProtobufCBuffer *base, size_t len, const uint8_t *bytes) {
    buf_append(((struct append *)base)->out, bytes, len);
}

void linkcache_pack(const struct cached_link *link, struct buf *out) {
    Dunlin__V1__CachedLink message = DUNLIN__V1__CACHED_LINK__INIT;
    struct append appender = {.base = {.append = append}, .out = out};
    char code[CODES_TEXT];
    memcpy(code, link->code, sizeof code); // the generated struct has no const
    message.code = code;
    message.version = link->version;
    message.state = (uint32_t)link->state;
    message.has_expires_at_us = link->has_expiry;
    message.expires_at_us = link->has_expiry ? link->expires_at : 0;
    message.redirect_status = (uint32_t)link->redirect_status;
    message.max_age = link->max_age;
    message.flags = (link->permanent ? FLAG_PERMANENT : 0) | (link->strict ? FLAG_STRICT : 0) |
                    (link->forward_query ? FLAG_FORWARD_QUERY : 0);
    message.verified_at_us = link->verified_at;
    if (keeps_url(link) && link->url != NULL) {
        message.has_url = true;
        message.url.data = (uint8_t *)link->url;
        message.url.len = link->url_len;
    }
    (void)dunlin__v1__cached_link__pack_to_buffer(&message, &appender.base);
}

static bool is_redirect(uint32_t status) {
    return status == 301 || status == 302 || status == 307 || status == 308;
}

static bool is_instant(int64_t instant) {
    return instant >= 0 && instant <= INSTANT_MAX;
}

static bool is_valid(const Dunlin__V1__CachedLink *message, const char *code) {
    return strcmp(message->code, code) == 0 && strlen(code) < CODES_TEXT && message->version > 0 &&
           message->version <= INT64_MAX && message->state >= LINK_ACTIVE && message->state <= LINK_EXPIRED &&
           (!message->has_expires_at_us || is_instant(message->expires_at_us)) &&
           is_redirect(message->redirect_status) && message->max_age <= MAX_AGE_MAX &&
           is_instant(message->verified_at_us);
}

// One rule for every URL, also for one that is then dropped: a value that breaks it was not written by us.
static bool take_url(const Dunlin__V1__CachedLink *message, struct cached_link *out) {
    if (!message->has_url)
        return !keeps_url(out) || out->state == LINK_DISABLED;
    if (!target_is_sendable((const char *)message->url.data, message->url.len))
        return false;
    if (keeps_url(out)) {
        out->url = base_strndup((const char *)message->url.data, message->url.len);
        out->url_len = message->url.len;
    }
    return true;
}

bool linkcache_unpack(const char *code, const void *bytes, size_t len, struct cached_link *out) {
    if (len > VALUE_MAX)
        return false;
    Dunlin__V1__CachedLink *message = dunlin__v1__cached_link__unpack(NULL, len, bytes);
    if (message == NULL)
        return false;
    bool good = false;
    if (is_valid(message, code)) {
        struct cached_link link = {
            .version = message->version,
            .state = (enum link_state)message->state,
            .has_expiry = message->has_expires_at_us,
            .expires_at = message->has_expires_at_us ? message->expires_at_us : 0,
            .redirect_status = (int)message->redirect_status,
            .max_age = message->max_age,
            .permanent = (message->flags & FLAG_PERMANENT) != 0,
            .strict = (message->flags & FLAG_STRICT) != 0,
            .forward_query = (message->flags & FLAG_FORWARD_QUERY) != 0,
            .verified_at = message->verified_at_us,
        };
        memcpy(link.code, message->code, strlen(message->code));
        good = take_url(message, &link);
        if (good)
            *out = link;
    }
    dunlin__v1__cached_link__free_unpacked(message, NULL);
    return good;
}
