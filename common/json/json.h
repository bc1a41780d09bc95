// SPDX-License-Identifier: MIT
// JSON (RFC 8259) in and out. In: a strict reader over jansson that refuses what two parsers could read
// differently. Out: a writer that appends to a struct buf and never builds a tree. The only includer of
// jansson.
#pragma once

#include "common/buf/buf.h"
#include "common/status/status.h"
#include <stdbool.h>

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
#define JSON_DEPTH_MAX 32 // the outermost value is depth 1

struct json_doc;   // owns every value read from it
struct json_value; // borrowed from its document

// Parses one complete JSON text. STATUS_INVALID_ARGUMENT with reason "MALFORMED_JSON" and a message that says
// what and where for: no JSON, bytes after it, bad UTF-8, a BOM, duplicate keys, a depth over JSON_DEPTH_MAX,
// lone surrogates, numbers out of range of int64 or double. An escaped NUL in a key is a broken rule (reason
// "INVALID_FIELD"); in a text it is let through: json_text() and json_has_nul() tell it.
MUST_CHECK enum status json_parse(const char *text, size_t len, struct json_doc **out, struct problem *why);
void json_doc_free(struct json_doc *doc); // NULL is fine
const struct json_value *json_root(const struct json_doc *doc);

enum json_type json_type(const struct json_value *value);
const char *json_type_name(enum json_type type); // "null", "boolean", "number", "string", "array", "object"
// The member, or NULL where there is none or `object` is no object.
const struct json_value *json_member(const struct json_value *object, const char *key);
// Members in the order of the text: size, then key and value at an index below it.
size_t json_size(const struct json_value *object_or_array);
const char *json_key_at(const struct json_value *object, size_t index);
const struct json_value *json_at(const struct json_value *object_or_array, size_t index);
// A string's bytes (valid UTF-8, may hold NUL where json_has_nul() says so); NULL where the value is no
// string.
const char *json_text(const struct json_value *value, size_t *len);
bool json_has_nul(const struct json_value *string);
// False where the value is no whole number in int64.
MUST_CHECK bool json_int64(const struct json_value *value, int64_t *out);

// The writer. Misuse (a key outside an object) is a bug of the caller and makes bad JSON; nesting is bounded
// by 16.
struct json_writer {
    struct buf *out;
    unsigned depth;
    bool after_key;
    bool has_member[16];
};
void json_begin(struct json_writer *writer, struct buf *out);
void json_object_begin(struct json_writer *writer);
void json_object_end(struct json_writer *writer);
void json_array_begin(struct json_writer *writer);
void json_array_end(struct json_writer *writer);
void json_key(struct json_writer *writer, const char *key);
// Escapes what RFC 8259 asks for, U+007F and invalid UTF-8 (as U+FFFD) too; bytes above ASCII stay as they
// are.
void json_put_text(struct json_writer *writer, const char *text, size_t len);
void json_put_string(struct json_writer *writer, const char *text); // NULL writes null
void json_put_int64(struct json_writer *writer, int64_t number);
void json_put_uint64(struct json_writer *writer, uint64_t number);
void json_put_double(struct json_writer *writer, double number); // not finite writes null
void json_put_bool(struct json_writer *writer, bool value);
void json_put_null(struct json_writer *writer);
