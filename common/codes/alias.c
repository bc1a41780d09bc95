// SPDX-License-Identifier: MIT
#include "common/codes/codes.h"
#include "common/codes/reserved.h"

#include <string.h>
#include <strings.h>

static bool is_reserved(const char *alias, size_t len) {
    for (size_t i = 0; i < ARRAY_LEN(codes_reserved); i++)
        if (strlen(codes_reserved[i]) == len && strncasecmp(codes_reserved[i], alias, len) == 0)
            return true;
    return false;
}

static bool holds_only(const char *alphabet, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0' || strchr(alphabet, text[i]) == NULL)
            return false;
    return true;
}

enum status codes_check_alias(const char *alias, size_t len, struct problem *why) {
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-";
    if (!holds_only(alphabet, alias, len))
        return problem_violate(
            why, "alias", "An alias may hold only the ASCII letters, digits, '_' and '-'.");
    if (len < CODES_ALIAS_MIN || len > CODES_ALIAS_MAX)
        return problem_violate(
            why, "alias", "An alias must have %d to %d characters.", CODES_ALIAS_MIN, CODES_ALIAS_MAX);
    if (is_reserved(alias, len))
        return problem_violate(why, "alias", "This word is reserved, in any letter case.");
    if (codes_is_generated_shape(alias, len))
        return problem_violate(why, "alias",
            "An alias of 7 or 8 characters must hold a '_' or '-', because generated codes look like that.");
    return STATUS_OK;
}
