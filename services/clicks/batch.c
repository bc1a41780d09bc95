// SPDX-License-Identifier: MIT
#include "services/clicks/batch.h"

#include "common/codes/codes.h"
#include "common/utf8/utf8.h"

#include <string.h>

void batch_reader_init(struct batch_reader *reader) {
    rpc_arena_init(&reader->arena, BATCH_MEMORY_MAX);
}

void batch_reader_done(struct batch_reader *reader) {
    rpc_arena_done(&reader->arena);
}

Dunlin__V1__ClickBatch *batch_read(struct batch_reader *reader, const void *bytes, size_t len) {
    rpc_arena_clear(&reader->arena);
    if (bytes == NULL || len > BATCH_BYTES_MAX)
        return NULL;
    return dunlin__v1__click_batch__unpack(&reader->arena.allocator, len, bytes);
}

const char *batch_fault_label(enum batch_fault fault) {
    static const char *const labels[] = {
#define BATCH_FAULT_LABEL(name, label) label,
        BATCH_FAULTS(BATCH_FAULT_LABEL)
#undef BATCH_FAULT_LABEL
    };
    return labels[fault];
}

static bool is_clean(const char *text) {
    if (text == NULL)
        return true;
    size_t len = rpc_arena_size_of(text) - 1;
    return memchr(text, '\0', len) == NULL && utf8_is_valid(text, len);
}

enum batch_fault batch_judge(const Dunlin__V1__Click *click, int64_t read_at_us) {
    if (!codes_is_plausible(click->code, rpc_arena_size_of(click->code) - 1))
        return BATCH_FAULT_CODE;
    if (click->at_us < read_at_us - BATCH_PAST_US || click->at_us > read_at_us + BATCH_FUTURE_US)
        return BATCH_FAULT_TIME;
    if (!is_clean(click->referrer_host) || !is_clean(click->user_agent) || !is_clean(click->country))
        return BATCH_FAULT_TEXT;
    return BATCH_FAULT_NONE;
}
