// SPDX-License-Identifier: MIT
#include "services/redirector/accept.h"

#include <string.h>
#include <strings.h>

static const char *skip_blanks(const char *text) {
    return text + strspn(text, " \t");
}

// Is the quality in these parameters (";q=0.5;…" up to `end`) above 0? No quality is 1.
static bool is_wanted(const char *parameters, const char *end) {
    while (parameters < end) {
        const char *name = skip_blanks(parameters + 1);
        const char *next = memchr(name, ';', (size_t)(end - name));
        if (next == NULL)
            next = end;
        if (next - name >= 2 && strncasecmp(name, "q=", 2) == 0) {
            // Above 0 where any digit of it is.
            for (const char *digit = name + 2; digit < next; digit++)
                if (*digit >= '1' && *digit <= '9')
                    return true;
            return false;
        }
        parameters = next;
    }
    return true;
}

bool accept_names(const char *accept, const char *type) {
    size_t type_len = strlen(type);
    while (accept != NULL && *accept != '\0') {
        const char *range = skip_blanks(accept);
        const char *end = range + strcspn(range, ",");
        const char *parameters = memchr(range, ';', (size_t)(end - range));
        if (parameters == NULL)
            parameters = end;
        size_t len = (size_t)(parameters - range);
        while (len > 0 && (range[len - 1] == ' ' || range[len - 1] == '\t'))
            len--;
        if (len == type_len && strncasecmp(range, type, len) == 0 && is_wanted(parameters, end))
            return true;
        accept = *end == ',' ? end + 1 : end;
    }
    return false;
}
