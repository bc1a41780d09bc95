// SPDX-License-Identifier: MIT
#include "services/redirector/query.h"
#include "common/utf8/utf8.h"
#include "services/redirector/escape.h"

#include <stdlib.h>
#include <string.h>

// Of the whole query, decoded; a malformed escape is no fault here.
static bool is_text(const char *query) {
    size_t len = strlen(query);
    char *decoded = base_calloc(len + 1, 1);
    size_t used = 0;
    for (size_t i = 0; i < len;) {
        int byte = escape_next(query, len, &i);
        decoded[used++] = (char)(byte < 0 ? '%' : byte);
        if (byte < 0)
            i++;
    }
    bool valid = utf8_is_valid(decoded, used);
    free(decoded);
    return valid;
}

// Decodes `len` bytes; a '+' is a '+'.
static enum status decode(
    const char *raw, size_t len, const char *name, char out[QUERY_VALUE_MAX + 1], struct problem *why) {
    size_t used = 0;
    for (size_t i = 0; i < len; used++) {
        int byte = escape_next(raw, len, &i);
        if (byte <= 0)
            return problem_violate(
                why, name, byte == 0 ? "It must not hold %%00." : "It holds a malformed escape.");
        if (used == QUERY_VALUE_MAX)
            return problem_violate(why, name, "It must be at most %d bytes.", QUERY_VALUE_MAX);
        out[used] = (char)byte;
    }
    out[used] = '\0';
    return STATUS_OK;
}

static enum status take(
    const char *pair, size_t len, struct query_parameter *known, size_t count, struct problem *why) {
    const char *equals = memchr(pair, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - pair) : len;
    char name[QUERY_VALUE_MAX + 1];
    enum status status = decode(pair, name_len, "query", name, why);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        if (known[i].given)
            return problem_violate(why, name, "It is given twice.");
        known[i].given = true;
        const char *value = equals != NULL ? equals + 1 : pair + len;
        return decode(value, (size_t)(pair + len - value), known[i].name, known[i].value, why);
    }
    return problem_violate(why, name, "It is not a parameter here.");
}

bool query_is_malformed(const struct problem *why) {
    return strcmp(why->reason, "MALFORMED_QUERY") == 0;
}

enum status query_parse(const char *query, struct query_parameter *known, size_t count, struct problem *why) {
    if (query != NULL && !is_text(query))
        return problem_set(why, STATUS_INVALID_ARGUMENT, "MALFORMED_QUERY", "The query is not UTF-8.");
    while (query != NULL && *query != '\0') {
        size_t len = strcspn(query, "&");
        if (len > 0) {
            enum status status = take(query, len, known, count, why);
            if (status != STATUS_OK)
                return status;
        }
        query += len;
        if (*query == '&')
            query++;
    }
    return STATUS_OK;
}
