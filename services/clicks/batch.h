// SPDX-License-Identifier: MIT
// Reads a record of the click stream and judges its clicks. Pure but for memory: no clock, no I/O. One
// thread.
#pragma once

#include "common/rpc/rpc_arena.h"
#include "dunlin/v1/click.pb-c.h"

#define BATCH_BYTES_MAX ((size_t)1024 * 1024)       // of a record
#define BATCH_MEMORY_MAX ((size_t)64 * 1024 * 1024) // that a record may unpack to

// A click counts when it was answered from this long before to this long after it is read.
#define BATCH_PAST_US (400 * US_PER_DAY)
#define BATCH_FUTURE_US (3600 * US_PER_S)

struct batch_reader {
    struct rpc_arena arena;
};

// init/done: the struct is the caller's and must not move in between.
void batch_reader_init(struct batch_reader *reader);
void batch_reader_done(struct batch_reader *reader);

// The batch in a record's bytes, valid until the next call; NULL where they are none, or are too large.
Dunlin__V1__ClickBatch *batch_read(struct batch_reader *reader, const void *bytes, size_t len);

// Why a click is not counted. X(NAME, metric label)
#define BATCH_FAULTS(X)                                                                                      \
    X(NONE, "none")                                                                                          \
    X(RECORD, "record") /* the whole record: not a ClickBatch */                                             \
    X(CODE, "code")     /* can't be a code or alias */                                                       \
    X(TIME, "time")     /* too long ago or in the future */                                                  \
    X(TEXT, "text")     /* a detail that is no UTF-8 or holds a NUL */
enum batch_fault {
#define BATCH_FAULT_ENUM(name, label) BATCH_FAULT_##name,
    BATCH_FAULTS(BATCH_FAULT_ENUM)
#undef BATCH_FAULT_ENUM
        BATCH_FAULT_COUNT,
};
const char *batch_fault_label(enum batch_fault fault);

// `click` must come from batch_read(): its texts are told apart from ones that a NUL cut short.
enum batch_fault batch_judge(const Dunlin__V1__Click *click, int64_t read_at_us);
