// SPDX-License-Identifier: MIT
#include "services/clicks/count.h"

#include "common/instant/instant.h"
#include "services/clicks/clicks_sql.h"

#include <stdlib.h>
#include <string.h>

#define APPLY_US (10 * US_PER_S)
#define RETRY_FIRST_US (100 * US_PER_MS)
#define RETRY_MAX_US (2 * US_PER_S)
#define CONFIRM_MS 5000
#define CONFIRM_AGAIN_US US_PER_S

struct share {
    int32_t partition;
    int64_t stored; // the position in Postgres when we last knew, -1 for none
    int64_t next;   // equal to `stored` where nothing is waiting
    uint64_t records;
    uint64_t letters[BATCH_FAULT_COUNT];
    struct fold fold;
};

void count_init(struct count *count, struct db *db, struct dead *dead, struct pause *pause,
    struct clicks_series *series, const char *topic) {
    *count = (struct count){.db = db, .dead = dead, .pause = pause, .series = series, .topic = topic};
    batch_reader_init(&count->reader);
}

void count_forget(struct count *count) {
    for (size_t i = 0; i < count->share_count; i++)
        fold_done(&count->shares[i].fold);
    count->share_count = 0;
    count->clicks = 0;
}

void count_done(struct count *count) {
    count_forget(count);
    free(count->shares);
    free(count->stream);
    batch_reader_done(&count->reader);
}

static struct share *find(struct count *count, int32_t partition) {
    for (size_t i = 0; i < count->share_count; i++)
        if (count->shares[i].partition == partition)
            return &count->shares[i];
    return NULL;
}

static struct share *add(struct count *count, int32_t partition) {
    if (count->share_count == count->share_cap) {
        size_t cap = count->share_cap == 0 ? 8 : count->share_cap * 2;
        struct share *shares = base_calloc(cap, sizeof *shares);
        if (count->share_count > 0)
            memcpy(shares, count->shares, count->share_count * sizeof *shares);
        free(count->shares);
        count->shares = shares;
        count->share_cap = cap;
    }
    struct share *share = &count->shares[count->share_count++];
    *share = (struct share){.partition = partition};
    fold_init(&share->fold);
    return share;
}

static struct clicks_place place_of(const struct count *count, int32_t partition) {
    return (struct clicks_place){.stream = count->stream, .topic = count->topic, .partition = partition};
}

// Drops what waits for applying and takes `position` for the truth.
static void begin_at(struct count *count, struct share *share, int64_t position) {
    count->clicks -= share->fold.clicks;
    fold_clear(&share->fold);
    share->records = 0;
    memset(share->letters, 0, sizeof share->letters);
    share->stored = position;
    share->next = position;
}

enum status count_begin(struct count *count, const char *stream, int32_t partition, int64_t *offset) {
    if (count->stream == NULL || strcmp(count->stream, stream) != 0) {
        free(count->stream);
        count->stream = base_strdup(stream);
    }
    const struct clicks_place place = place_of(count, partition);
    int64_t position = -1;
    enum status status = clicks_sql_position(count->db, &place, &position);
    if (status != STATUS_OK)
        return status;
    struct share *share = find(count, partition);
    begin_at(count, share != NULL ? share : add(count, partition), position);
    *offset = position;
    return STATUS_OK;
}

// ---- records

static void put_letter(struct count *count, const void *bytes, size_t len) {
    count->letters++;
    dead_put(count->dead, bytes, len);
}

// The clicks that can't be counted go on as a batch with the same (producer, lane, sequence).
static void put_clicks(struct count *count, Dunlin__V1__ClickBatch *batch, size_t bad) {
    batch->n_clicks = bad;
    // No larger than the record that it came from.
    unsigned char *bytes = base_calloc(1, dunlin__v1__click_batch__get_packed_size(batch) + 1);
    put_letter(count, bytes, dunlin__v1__click_batch__pack(batch, bytes));
    free(bytes);
}

static void fold_batch(struct count *count, struct share *share, Dunlin__V1__ClickBatch *batch) {
    int64_t now = base_wall_us();
    uint64_t before = share->fold.clicks;
    size_t bad = 0;
    for (size_t i = 0; i < batch->n_clicks; i++) {
        Dunlin__V1__Click *click = batch->clicks[i];
        enum batch_fault fault = batch_judge(click, now);
        if (fault == BATCH_FAULT_NONE) {
            fold_add(&share->fold, click->code, instant_day(click->at_us), 1);
        } else {
            share->letters[fault]++;
            batch->clicks[bad++] = click;
        }
    }
    count->clicks += share->fold.clicks - before;
    if (bad > 0)
        put_clicks(count, batch, bad);
}

static void log_letter(struct count *count, const struct bus_record *record, size_t bad) {
    int64_t suppressed = 0;
    if (log_allowed(&count->limit, &suppressed))
        log_warn("dead letters", log_text("topic", count->topic), log_int("partition", record->partition),
            log_int("offset", record->offset), log_int("bytes", (int64_t)record->len),
            log_int("letters", (int64_t)bad), log_int("suppressed", suppressed));
}

void count_record(struct count *count, const struct bus_record *record) {
    struct share *share = find(count, record->partition);
    REQUIRE(share != NULL);
    uint64_t letters = count->letters;
    Dunlin__V1__ClickBatch *batch = batch_read(&count->reader, record->bytes, record->len);
    if (batch == NULL) {
        share->letters[BATCH_FAULT_RECORD]++;
        put_letter(count, record->bytes, record->len);
    } else {
        fold_batch(count, share, batch);
    }
    share->records++;
    share->next = record->offset + 1;
    if (count->letters > letters)
        log_letter(count, record, (size_t)(count->letters - letters));
}

void count_jump(struct count *count, int32_t partition, int64_t offset) {
    struct share *share = find(count, partition);
    REQUIRE(share != NULL);
    // What was folded since the stored position comes again: it begins just there.
    if (offset == share->stored)
        begin_at(count, share, offset);
    share->next = offset;
}

// ---- applying

static void log_trouble(struct count *count, const char *message, enum status status) {
    int64_t suppressed = 0;
    if (log_allowed(&count->limit, &suppressed))
        log_warn(message, log_text("status", status_name(status)),
            log_text("error", db_error_text(count->db)), log_int("suppressed", suppressed));
}

// Waits before the next attempt, longer each time; true: stop.
static bool back_off(struct count *count, int64_t *wait_us) {
    *wait_us = *wait_us == 0 ? RETRY_FIRST_US : *wait_us * 2;
    if (*wait_us > RETRY_MAX_US)
        *wait_us = RETRY_MAX_US;
    return pause_wait(count->pause, *wait_us);
}

static bool read_position(struct count *count, const struct share *share, int64_t *out) {
    const struct clicks_place place = place_of(count, share->partition);
    int64_t wait_us = 0;
    for (;;) {
        enum status status = clicks_sql_position(count->db, &place, out);
        if (status == STATUS_OK)
            return true;
        log_trouble(count, "a position can't be read, trying again", status);
        if (back_off(count, &wait_us))
            return false;
    }
}

static void applied(struct count *count, struct share *share, struct bus_consumer *bus) {
    struct clicks_series *series = count->series;
    metric_inc(series->applied);
    metric_count(series->records, share->records);
    metric_count(series->counted, share->fold.clicks);
    for (enum batch_fault fault = BATCH_FAULT_NONE + 1; fault < BATCH_FAULT_COUNT; fault++)
        metric_count(series->dead[fault], share->letters[fault]);
    atomic_store(&series->applied_at_us, base_monotonic_us());
    bus_consumer_commit(bus, share->partition, share->next);
    begin_at(count, share, share->next);
}

static void read_from(struct bus_consumer *bus, const struct share *share) {
    if (bus_consumer_seek(bus, share->partition, share->next) != STATUS_OK)
        log_warn("a partition is not ours any more", log_int("partition", share->partition));
}

// Somebody else moved the position: what we folded is theirs to count.
static void lost(struct count *count, struct share *share, struct bus_consumer *bus, int64_t position) {
    metric_inc(count->series->lost);
    log_warn("a position was moved by another consumer", log_int("partition", share->partition),
        log_int("stored", share->stored), log_int("next", share->next), log_int("found", position));
    begin_at(count, share, position);
    read_from(bus, share);
}

static enum status apply_once(struct count *count, struct share *share, bool *done) {
    const struct clicks_place place = place_of(count, share->partition);
    int64_t begun = base_monotonic_us();
    enum status status =
        clicks_sql_apply(count->db, begun + APPLY_US, &place, share->stored, share->next, &share->fold, done);
    metric_observe_us(count->series->apply_time, base_monotonic_us() - begun);
    return status;
}

// After an apply that did nothing or whose outcome is unknown: the position, which moves in the same
// transaction, tells. True where there is nothing left to try.
static bool settle(
    struct count *count, struct share *share, struct bus_consumer *bus, bool unknown, bool refused) {
    int64_t position = 0;
    if (!read_position(count, share, &position))
        return true;
    if (unknown && position == share->next)
        applied(count, share, bus);
    else if (refused || position != share->stored)
        lost(count, share, bus, position);
    else
        return false;
    return true;
}

static void apply_share(struct count *count, struct share *share, struct bus_consumer *bus) {
    fold_sort(&share->fold);
    bool unknown = false; // an earlier attempt may have been committed, or be about to
    int64_t wait_us = 0;
    for (;;) {
        bool done = false;
        enum status status = apply_once(count, share, &done);
        if (status == STATUS_OK && done) {
            applied(count, share, bus);
            return;
        }
        unknown = unknown || status == STATUS_UNKNOWN;
        if ((status == STATUS_OK || status == STATUS_UNKNOWN) &&
            settle(count, share, bus, unknown, status == STATUS_OK))
            return;
        metric_inc(count->series->failed);
        log_trouble(count, "clicks can't be applied, trying again", status);
        if (back_off(count, &wait_us))
            return;
    }
}

// Reads again what was not applied yet, and puts its dead letters again.
static void rewind_all(struct count *count, struct bus_consumer *bus) {
    metric_inc(count->series->letters_failed);
    log_error(
        "dead letters were not delivered, reading their records again", log_text("topic", count->topic));
    for (size_t i = 0; i < count->share_count; i++) {
        struct share *share = &count->shares[i];
        if (share->next != share->stored) {
            begin_at(count, share, share->stored);
            read_from(bus, share);
        }
    }
    (void)pause_wait(count->pause, CONFIRM_AGAIN_US);
}

void count_apply(struct count *count, struct bus_consumer *bus) {
    bool confirmed = count->letters == 0 || dead_confirm(count->dead, CONFIRM_MS);
    count->letters = 0;
    if (!confirmed) {
        rewind_all(count, bus);
        return;
    }
    for (size_t i = 0; i < count->share_count; i++)
        if (count->shares[i].next != count->shares[i].stored)
            apply_share(count, &count->shares[i], bus);
}
