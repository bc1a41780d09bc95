// SPDX-License-Identifier: MIT
// A growable run of bytes with a hard limit, for everything whose size a peer decides. Failure is sticky:
// append freely, ask buf_ok() once at the end. Owned by one thread at a time.
#pragma once

#include "common/base/base.h"
#include <stdbool.h>

struct buf {
    char *data; // NULL while empty; always followed by a NUL otherwise
    size_t len;
    size_t cap;
    size_t limit;
    bool overflowed;
};

// init/done: the struct is the caller's. `limit` bounds len; what would pass it is dropped whole and marks
// the buffer.
void buf_init(struct buf *buf, size_t limit);
void buf_done(struct buf *buf);
// Empties it, keeps its memory, forgets an overflow.
void buf_clear(struct buf *buf);

void buf_append(struct buf *buf, const void *bytes, size_t len);
void buf_puts(struct buf *buf, const char *text);
void buf_putc(struct buf *buf, char byte);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

// False once anything was dropped.
MUST_CHECK bool buf_ok(const struct buf *buf);
// The content as text, "" while empty; valid until the next change.
const char *buf_text(const struct buf *buf);
// Gives the bytes (NUL-terminated, released with free()) to the caller and leaves the buffer empty. Never
// NULL.
char *buf_take(struct buf *buf, size_t *len);
