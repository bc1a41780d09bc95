// SPDX-License-Identifier: MIT
#include "common/utf8/utf8.h"

size_t utf8_next(const char *bytes, size_t len, uint32_t *code_point) {
    // By the number of bytes that follow the first: its mark, its payload bits, the smallest point of that
    // length.
    static const struct {
        uint8_t mask, mark;
        uint32_t smallest;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t follow = 0; follow < ARRAY_LEN(forms) && follow < len; follow++) {
        uint8_t first = (uint8_t)bytes[0];
        if ((first & forms[follow].mask) != forms[follow].mark)
            continue;
        uint32_t point = first & (uint8_t)~forms[follow].mask;
        for (size_t i = 1; i <= follow; i++) {
            if (((uint8_t)bytes[i] & 0xc0) != 0x80)
                return 0;
            point = point << 6 | ((uint8_t)bytes[i] & 0x3f);
        }
        if (point < forms[follow].smallest || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
            return 0;
        *code_point = point;
        return follow + 1;
    }
    return 0;
}

bool utf8_is_valid(const char *bytes, size_t len) {
    uint32_t point;
    while (len > 0) {
        size_t step = utf8_next(bytes, len, &point);
        if (step == 0)
            return false;
        bytes += step;
        len -= step;
    }
    return true;
}
