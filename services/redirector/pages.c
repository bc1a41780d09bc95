// SPDX-License-Identifier: MIT
#include "services/redirector/pages.h"

static void page(struct answer *answer, const char *type, const char *body) {
    answer->status = 200;
    answer_header(answer, "Content-Type", type);
    answer_header(answer, "Cache-Control", "public, max-age=3600");
    answer_header(answer, "Referrer-Policy", "no-referrer");
    buf_puts(&answer->body, body);
}

bool pages_answer(struct answer *answer, enum route_kind kind) {
    switch (kind) {
    case ROUTE_HOME:
        page(answer, "text/html; charset=utf-8",
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width\"><title>Dunlin</title></head>\n"
            "<body><h1>Dunlin</h1><p>Short links are served here.</p></body></html>\n");
        return true;
    case ROUTE_ROBOTS:
        // Links may be followed, and say noindex themselves; the API is nobody's to crawl.
        page(answer, "text/plain; charset=utf-8", "User-agent: *\nDisallow: /api/\n");
        return true;
    case ROUTE_FAVICON:
        answer->status = 204;
        answer_header(answer, "Cache-Control", "public, max-age=86400");
        return true;
    default:
        return false;
    }
}
