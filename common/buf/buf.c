// SPDX-License-Identifier: MIT
#include "common/buf/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *buf, size_t limit) {
    *buf = (struct buf){.limit = limit};
}

void buf_done(struct buf *buf) {
    free(buf->data);
    *buf = (struct buf){.limit = buf->limit};
}

void buf_clear(struct buf *buf) {
    buf->len = 0;
    buf->overflowed = false;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

static bool reserve(struct buf *buf, size_t extra) {
    if (buf->overflowed || extra > buf->limit - buf->len) {
        buf->overflowed = true;
        return false;
    }
    size_t need = buf->len + extra + 1;
    if (need <= buf->cap)
        return true;
    size_t cap = buf->cap == 0 ? 64 : buf->cap;
    while (cap < need)
        cap *= 2;
    char *grown = realloc(buf->data, cap);
    if (grown == NULL) {
        buf->overflowed = true;
        return false;
    }
    buf->data = grown;
    buf->cap = cap;
    return true;
}

void buf_append(struct buf *buf, const void *bytes, size_t len) {
    if (len == 0 || !reserve(buf, len))
        return;
    memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void buf_puts(struct buf *buf, const char *text) {
    buf_append(buf, text, strlen(text));
}

void buf_putc(struct buf *buf, char byte) {
    buf_append(buf, &byte, 1);
}

void buf_printf(struct buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0)
        buf->overflowed = true;
    else if (len > 0 && reserve(buf, (size_t)len)) {
        (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

bool buf_ok(const struct buf *buf) {
    return !buf->overflowed;
}

const char *buf_text(const struct buf *buf) {
    return buf->data == NULL ? "" : buf->data;
}

char *buf_take(struct buf *buf, size_t *len) {
    char *bytes = buf->data != NULL ? buf->data : base_strdup("");
    if (len != NULL)
        *len = buf->len;
    *buf = (struct buf){.limit = buf->limit};
    return bytes;
}
