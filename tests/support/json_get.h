// SPDX-License-Identifier: MIT
// Members of JSON objects that may not be there.
#pragma once

#include "common/json/json.h"

// NULL where `object` is NULL or no object, or the member is absent or no string.
const char *json_get_text(const struct json_value *object, const char *member);
// False likewise.
bool json_get_int64(const struct json_value *object, const char *member, int64_t *out);
bool json_get_is(const struct json_value *object, const char *member, enum json_type type);
