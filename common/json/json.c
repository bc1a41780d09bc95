// SPDX-License-Identifier: MIT
#include "common/json/json.h"

#include <stdlib.h>
#include <string.h>

// jansson's names for types are ours too; here they carry its own name.
#define json_type jansson_type
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_INTEGER JANSSON_INTEGER
#define JSON_REAL JANSSON_REAL
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef json_type
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_INTEGER
#undef JSON_REAL
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

// What jansson parsed, with an index over it: members in the order of the text, reached in constant time.
struct json_value {
    const json_t *node;
    const char *key; // of an object's member; borrowed from the object
    size_t size;
    struct json_value *members;
};

struct json_doc {
    json_t *tree;
    struct json_value root;
};

static enum status malformed(struct problem *why, const char *what, size_t line, size_t column) {
    return problem_set(
        why, STATUS_INVALID_ARGUMENT, "MALFORMED_JSON", "%s, at line %zu, column %zu.", what, line, column);
}

// jansson recurses once per level, so that its stack is bounded by looking for the brackets first. As long as
// the text is well-formed, both agree on what is a string; jansson reads no further than that.
static bool is_too_deep(const char *text, size_t len, size_t *line, size_t *column) {
    unsigned depth = 0;
    bool in_string = false;
    *line = 1;
    size_t line_start = 0;
    for (size_t i = 0; i < len; i++) {
        char byte = text[i];
        if (in_string) {
            if (byte == '\\')
                i++;
            else if (byte == '"')
                in_string = false;
        } else if (byte == '"') {
            in_string = true;
        } else if (byte == '[' || byte == '{') {
            if (++depth > JSON_DEPTH_MAX) {
                *column = i - line_start + 1;
                return true;
            }
        } else if ((byte == ']' || byte == '}') && depth > 0) {
            depth--;
        } else if (byte == '\n') {
            ++*line;
            line_start = i + 1;
        }
    }
    return false;
}

// jansson's words, without the piece of the text that it quotes.
static enum status malformed_by_parser(struct problem *why, const json_error_t *error) {
    char what[JSON_ERROR_TEXT_LENGTH];
    memcpy(what, error->text, sizeof what);
    what[sizeof what - 1] = '\0';
    char *quote = strstr(what, " near '");
    if (quote != NULL)
        *quote = '\0';
    if (what[0] >= 'a' && what[0] <= 'z')
        what[0] = (char)(what[0] - 'a' + 'A');
    return malformed(
        why, what, error->line > 0 ? (size_t)error->line : 1, error->column > 0 ? (size_t)error->column : 1);
}

static bool is_object(const json_t *node) {
    return json_typeof(node) == JANSSON_OBJECT;
}

static void index_object(struct json_value *value) {
    // jansson has no read-only iteration; nothing is changed here.
    json_t *object = (json_t *)(uintptr_t)value->node;
    size_t at = 0;
    for (void *iter = json_object_iter(object); iter != NULL; iter = json_object_iter_next(object, iter)) {
        value->members[at].key = json_object_iter_key(iter);
        value->members[at].node = json_object_iter_value(iter);
        at++;
    }
}

// Both sizes are 0 for what is no object or array.
static void index_value(struct json_value *value) {
    value->size = is_object(value->node) ? json_object_size(value->node) : json_array_size(value->node);
    if (value->size == 0)
        return;
    value->members = base_calloc(value->size, sizeof *value->members);
    if (is_object(value->node))
        index_object(value);
    else
        for (size_t i = 0; i < value->size; i++)
            value->members[i].node = json_array_get(value->node, i);
}

// The way from the root down to a value, in place of recursion. The parser has bounded the depth.
struct path {
    struct json_value *parents[JSON_DEPTH_MAX];
    size_t next[JSON_DEPTH_MAX];
    size_t depth;
};

static void descend(struct path *path, struct json_value *value) {
    if (value->members == NULL)
        return;
    REQUIRE(path->depth < JSON_DEPTH_MAX);
    path->parents[path->depth] = value;
    path->next[path->depth++] = 0;
}

// The next member of the deepest parent; NULL where it has no more, and then `*done` is that parent.
static struct json_value *step(struct path *path, struct json_value **done) {
    struct json_value *parent = path->parents[path->depth - 1];
    size_t *next = &path->next[path->depth - 1];
    if (*next < parent->size)
        return &parent->members[(*next)++];
    path->depth--;
    *done = parent;
    return NULL;
}

static void index_tree(struct json_value *root) {
    struct path path = {.depth = 0};
    struct json_value *done = NULL;
    index_value(root);
    descend(&path, root);
    while (path.depth > 0) {
        struct json_value *member = step(&path, &done);
        if (member == NULL)
            continue;
        index_value(member);
        descend(&path, member);
    }
}

static void free_index(struct json_value *root) {
    struct path path = {.depth = 0};
    struct json_value *done = NULL;
    descend(&path, root);
    while (path.depth > 0) {
        struct json_value *member = step(&path, &done);
        if (member == NULL)
            free(done->members);
        else
            descend(&path, member);
    }
}

enum status json_parse(const char *text, size_t len, struct json_doc **out, struct problem *why) {
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        return malformed(why, "A byte order mark is not allowed", 1, 1);
    size_t line;
    size_t column;
    if (is_too_deep(text, len, &line, &column))
        return malformed(why, "Nested deeper than 32 levels", line, column);
    json_error_t error;
    json_t *tree = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    // Well-formed, but nothing here has such a key, and jansson keeps none.
    if (tree == NULL && json_error_code(&error) == json_error_null_byte_in_key) {
        (void)problem_set(why, STATUS_INVALID_ARGUMENT, "INVALID_FIELD", "A field breaks a rule.");
        return problem_violate(why, "body", "A key must not hold U+0000.");
    }
    if (tree == NULL)
        return malformed_by_parser(why, &error);
    struct json_doc *doc = base_calloc(1, sizeof *doc);
    doc->tree = tree;
    doc->root.node = tree;
    index_tree(&doc->root);
    *out = doc;
    return STATUS_OK;
}

void json_doc_free(struct json_doc *doc) {
    if (doc == NULL)
        return;
    free_index(&doc->root);
    json_decref(doc->tree);
    free(doc);
}

const struct json_value *json_root(const struct json_doc *doc) {
    return &doc->root;
}

enum json_type json_type(const struct json_value *value) {
    switch (json_typeof(value->node)) {
    case JANSSON_OBJECT:
        return JSON_OBJECT;
    case JANSSON_ARRAY:
        return JSON_ARRAY;
    case JANSSON_STRING:
        return JSON_STRING;
    case JANSSON_INTEGER:
    case JANSSON_REAL:
        return JSON_NUMBER;
    case JANSSON_TRUE:
        return JSON_TRUE;
    case JANSSON_FALSE:
        return JSON_FALSE;
    case JANSSON_NULL:
        break;
    }
    return JSON_NULL;
}

const char *json_type_name(enum json_type type) {
    static const char *const names[] = {"null", "boolean", "boolean", "number", "string", "array", "object"};
    return names[type];
}

const struct json_value *json_member(const struct json_value *object, const char *key) {
    for (size_t i = 0; i < object->size && object->members[i].key != NULL; i++)
        if (strcmp(object->members[i].key, key) == 0)
            return &object->members[i];
    return NULL;
}

size_t json_size(const struct json_value *object_or_array) {
    return object_or_array->size;
}

const char *json_key_at(const struct json_value *object, size_t index) {
    REQUIRE(index < object->size && object->members[index].key != NULL);
    return object->members[index].key;
}

const struct json_value *json_at(const struct json_value *object_or_array, size_t index) {
    REQUIRE(index < object_or_array->size);
    return &object_or_array->members[index];
}

const char *json_text(const struct json_value *value, size_t *len) {
    const char *text = json_string_value(value->node);
    if (text != NULL && len != NULL)
        *len = json_string_length(value->node);
    return text;
}

bool json_has_nul(const struct json_value *string) {
    size_t len = 0;
    const char *text = json_text(string, &len);
    return text != NULL && memchr(text, '\0', len) != NULL;
}

bool json_int64(const struct json_value *value, int64_t *out) {
    if (json_typeof(value->node) == JANSSON_INTEGER) {
        *out = json_integer_value(value->node);
        return true;
    }
    // 302.0 is a whole number too, as far as a double can tell.
    const double exact_max = 9007199254740992.0;
    double real = json_real_value(value->node);
    if (json_typeof(value->node) != JANSSON_REAL || !(real >= -exact_max && real <= exact_max))
        return false;
    int64_t whole = (int64_t)real;
    if ((double)whole < real || (double)whole > real)
        return false;
    *out = whole;
    return true;
}
