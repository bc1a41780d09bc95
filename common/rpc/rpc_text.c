// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_text.h"

#include "common/rpc/rpc_arena.h"
#include "common/utf8/utf8.h"
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 16 // our messages never nest in themselves, so the schema ends the walk long before this

void rpc_text_mend(char *text) {
    size_t len = strlen(text);
    uint32_t point;
    for (size_t at = 0; at < len;) {
        size_t step = utf8_next(text + at, len - at, &point);
        if (step == 0)
            text[at] = '?';
        at += step == 0 ? 1 : step;
    }
}

// Where the walk is: the path of the message, such as "links[2].".
struct walk {
    const char *path;
    unsigned depth;
    struct problem *why;
};

static bool check_message(const ProtobufCMessage *message, const struct walk *walk);

static bool check_string(
    const char *text, const ProtobufCFieldDescriptor *field, const char *path, struct problem *why) {
    if (text == NULL || text == field->default_value)
        return true;
    size_t len = rpc_arena_size_of(text) - 1;
    if (memchr(text, '\0', len) != NULL) {
        (void)problem_violate(why, path, "A text must not hold a NUL character.");
        return false;
    }
    if (!utf8_is_valid(text, len)) {
        (void)problem_violate(why, path, "A text must be UTF-8.");
        return false;
    }
    return true;
}

// One element: member points at the pointer to its text or message.
static bool check_element(
    const void *member, const ProtobufCFieldDescriptor *field, const char *path, const struct walk *walk) {
    void *const *pointer = member;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return check_string(*pointer, field, path, walk->why);
    if (*pointer == NULL)
        return true;
    char prefix[PROBLEM_FIELD_MAX + 1];
    (void)snprintf(prefix, sizeof prefix, "%s.", path);
    const struct walk inner = {.path = prefix, .depth = walk->depth + 1, .why = walk->why};
    return check_message(*pointer, &inner);
}

static bool check_repeated(const char *base, const ProtobufCFieldDescriptor *field, const struct walk *walk) {
    size_t count;
    void *const *elements;
    memcpy(&count, base + field->quantifier_offset, sizeof count);
    memcpy(&elements, base + field->offset, sizeof elements);
    for (size_t i = 0; i < count; i++) {
        char path[PROBLEM_FIELD_MAX];
        (void)snprintf(path, sizeof path, "%s%s[%zu]", walk->path, field->name, i);
        if (!check_element(&elements[i], field, path, walk))
            return false;
    }
    return true;
}

// A member of a oneof that is not chosen holds another member's bytes.
static bool is_absent(const char *base, const ProtobufCFieldDescriptor *field) {
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0)
        return false;
    uint32_t chosen;
    memcpy(&chosen, base + field->quantifier_offset, sizeof chosen);
    return chosen != field->id;
}

static bool check_field(const char *base, const ProtobufCFieldDescriptor *field, const struct walk *walk) {
    if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
        return true;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return check_repeated(base, field, walk);
    if (is_absent(base, field))
        return true;
    char path[PROBLEM_FIELD_MAX];
    (void)snprintf(path, sizeof path, "%s%s", walk->path, field->name);
    return check_element(base + field->offset, field, path, walk);
}

static bool check_message(const ProtobufCMessage *message, const struct walk *walk) {
    REQUIRE(walk->depth < DEPTH_MAX);
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++)
        if (!check_field((const char *)message, &descriptor->fields[i], walk))
            return false;
    return true;
}

bool rpc_text_check(const ProtobufCMessage *message, struct problem *why) {
    memset(why, 0, sizeof *why);
    const struct walk walk = {.path = "", .why = why};
    return check_message(message, &walk);
}
