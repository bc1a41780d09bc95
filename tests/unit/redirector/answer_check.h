// SPDX-License-Identifier: MIT
// What the tests of answers ask about one. Include after cmocka.h.
#pragma once

#include "services/redirector/answer.h"

#include <string.h>
#include <strings.h>

// The value of a field that is there at most once; NULL where it isn't there.
static inline const char *header_of(const struct answer *answer, const char *name) {
    const char *value = NULL;
    for (size_t i = 0; i < answer->header_count; i++) {
        if (strcasecmp(answer->headers[i].name, name) != 0)
            continue;
        assert_null(value);
        value = answer->headers[i].value;
    }
    return value;
}

// `value` NULL: the field is not there.
static inline void expect_header(const struct answer *answer, const char *name, const char *value) {
    const char *found = header_of(answer, name);
    if (found != value && (found == NULL || value == NULL || strcmp(found, value) != 0))
        fail_msg("%s: %s", name, found != NULL ? found : "(none)");
}

// What every error carries.
static inline void expect_error_headers(const struct answer *answer) {
    expect_header(answer, "X-Content-Type-Options", "nosniff");
    expect_header(answer, "Cache-Control", "no-store");
    expect_header(answer, "X-Robots-Tag", "noindex");
    expect_header(answer, "Referrer-Policy", "no-referrer");
    expect_header(answer, "Location", NULL);
}
