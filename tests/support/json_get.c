// SPDX-License-Identifier: MIT
#include "tests/support/json_get.h"

#include <stddef.h>

static const struct json_value *get(const struct json_value *object, const char *member) {
    return object == NULL || json_type(object) != JSON_OBJECT ? NULL : json_member(object, member);
}

const char *json_get_text(const struct json_value *object, const char *member) {
    const struct json_value *value = get(object, member);
    return value == NULL || json_type(value) != JSON_STRING ? NULL : json_text(value, NULL);
}

bool json_get_int64(const struct json_value *object, const char *member, int64_t *out) {
    const struct json_value *value = get(object, member);
    return value != NULL && json_type(value) == JSON_NUMBER && json_int64(value, out);
}

bool json_get_is(const struct json_value *object, const char *member, enum json_type type) {
    const struct json_value *value = get(object, member);
    return value != NULL && json_type(value) == type;
}
