// SPDX-License-Identifier: MIT
#include "services/redirector/click_sender.h"
#include "common/crypto/crypto.h"
#include "common/log/log.h"
#include "dunlin/v1/click.pb-c.h"
#include "services/redirector/redirector.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LANES_MAX 64
#define TURN_MS 20 // how long a click may lie in a ring that is not full
#define LINGER_MS 50
#define REOPEN_US US_PER_S

enum batch_state { BATCH_FREE, BATCH_READY, BATCH_SENT };

struct batch {
    enum batch_state state;
    int32_t lane;
    size_t clicks;
    uint8_t *bytes;
    size_t len;
};

struct click_sender {
    struct click_sender_options options;
    struct bus_producer *producer; // NULL while it can't be opened
    int64_t reopen_at_us;
    uint64_t id;
    uint64_t sequences[LANES_MAX];
    int32_t next_lane;
    size_t next_ring;
    struct batch batches[CLICK_BATCHES_MAX];
    struct click taken[CLICK_BATCH_MAX];
    pthread_t thread;
    atomic_bool stopping;
    atomic_bool up;
    int64_t flush_us; // written before `stopping`
    struct metric *sent;
    struct metric *resent;
    struct metric *left_over;
};

// ---- batches

static void pack(struct click_sender *sender, struct batch *batch, size_t count) {
    Dunlin__V1__Click clicks[CLICK_BATCH_MAX];
    Dunlin__V1__Click *pointers[CLICK_BATCH_MAX];
    for (size_t i = 0; i < count; i++) {
        clicks[i] = (Dunlin__V1__Click)DUNLIN__V1__CLICK__INIT;
        clicks[i].at_us = sender->taken[i].at_us;
        clicks[i].code = sender->taken[i].code;
        pointers[i] = &clicks[i];
    }
    Dunlin__V1__ClickBatch message = DUNLIN__V1__CLICK_BATCH__INIT;
    message.producer = sender->id;
    message.lane = (uint32_t)batch->lane;
    message.sequence = sender->sequences[batch->lane]++;
    message.n_clicks = count;
    message.clicks = pointers;
    batch->len = dunlin__v1__click_batch__get_packed_size(&message);
    batch->bytes = base_calloc(1, batch->len);
    (void)dunlin__v1__click_batch__pack(&message, batch->bytes);
}

static struct batch *free_batch(struct click_sender *sender) {
    for (size_t i = 0; i < CLICK_BATCHES_MAX; i++)
        if (sender->batches[i].state == BATCH_FREE)
            return &sender->batches[i];
    return NULL;
}

static void release(struct batch *batch) {
    free(batch->bytes);
    *batch = (struct batch){.state = BATCH_FREE};
}

static void delivered(void *arg, void *record_arg, enum status status) {
    struct click_sender *sender = arg;
    struct batch *batch = record_arg;
    if (status == STATUS_OK) {
        metric_count(sender->sent, batch->clicks);
        release(batch);
        return;
    }
    // The same bytes under the same name go out again: whoever counts tells that it was there before.
    batch->state = BATCH_READY;
    metric_inc(sender->resent);
}

// Fills batches from the rings, in turn, as long as there is room.
static void cut(struct click_sender *sender) {
    int32_t lanes = sender->producer == NULL ? 0 : bus_producer_partitions(sender->producer);
    if (lanes > LANES_MAX)
        lanes = LANES_MAX;
    size_t empty = 0;
    while (lanes > 0 && empty < sender->options.ring_count) {
        struct batch *batch = free_batch(sender);
        if (batch == NULL)
            return;
        struct click_ring *ring = sender->options.rings[sender->next_ring];
        sender->next_ring = (sender->next_ring + 1) % sender->options.ring_count;
        size_t count = click_ring_take(ring, sender->taken, CLICK_BATCH_MAX);
        if (count == 0) {
            empty++;
            continue;
        }
        empty = 0;
        sender->next_lane = (sender->next_lane + 1) % lanes;
        *batch = (struct batch){.state = BATCH_READY, .lane = sender->next_lane, .clicks = count};
        pack(sender, batch, count);
    }
}

// ---- the producer

static void reopen(struct click_sender *sender) {
    int64_t now = base_monotonic_us();
    if (sender->producer != NULL || now < sender->reopen_at_us)
        return;
    sender->reopen_at_us = now + REOPEN_US;
    const struct bus_producer_options options = {
        .brokers = sender->options.brokers,
        .topic = sender->options.topic,
        .client = "dunlin-redirector",
        .linger_ms = LINGER_MS,
        .queue_max = CLICK_BATCHES_MAX,
        .delivered = delivered,
        .arg = sender,
    };
    struct problem why = {0};
    if (bus_producer_open(&options, &sender->producer, &why) != STATUS_OK)
        log_error("no Kafka producer could be made", log_text("error", why.message));
}

static void send_ready(struct click_sender *sender) {
    for (size_t i = 0; i < CLICK_BATCHES_MAX && sender->producer != NULL; i++) {
        struct batch *batch = &sender->batches[i];
        if (batch->state != BATCH_READY)
            continue;
        enum status status = bus_produce(sender->producer, batch->lane, batch->bytes, batch->len, batch);
        if (status == STATUS_OK) {
            batch->state = BATCH_SENT;
        } else if (status == STATUS_UNAVAILABLE) {
            log_error("the Kafka producer failed for good and is made anew");
            bus_producer_close(sender->producer);
            sender->producer = NULL;
        } else {
            return;
        }
    }
}

static void wait_a_turn(struct click_sender *sender) {
    if (sender->producer != NULL) {
        bus_producer_poll(sender->producer, TURN_MS);
        return;
    }
    const struct timespec pause = {.tv_nsec = TURN_MS * 1000000L};
    (void)nanosleep(&pause, NULL);
}

static void turn(struct click_sender *sender) {
    reopen(sender);
    cut(sender);
    send_ready(sender);
    wait_a_turn(sender);
    atomic_store(&sender->up, sender->producer != NULL && bus_producer_is_up(sender->producer));
}

static size_t left(const struct click_sender *sender) {
    size_t count = 0;
    for (size_t i = 0; i < sender->options.ring_count; i++)
        count += click_ring_count(sender->options.rings[i]);
    for (size_t i = 0; i < CLICK_BATCHES_MAX; i++)
        count += sender->batches[i].clicks;
    return count;
}

static void *run(void *arg) {
    struct click_sender *sender = arg;
    (void)pthread_setname_np(pthread_self(), "sender");
    while (!atomic_load(&sender->stopping))
        turn(sender);
    int64_t until = base_monotonic_us() + sender->flush_us;
    while (left(sender) > 0 && base_monotonic_us() < until)
        turn(sender);
    return NULL;
}

// ---- life

struct click_sender *click_sender_start(const struct click_sender_options *options) {
    struct click_sender *sender = base_calloc(1, sizeof *sender);
    sender->options = *options;
    sender->id = crypto_random_u64();
    sender->sent = metric_add(&redirector_metrics[REDIRECTOR_METRIC_CLICKS_SENT]);
    sender->resent = metric_add(&redirector_metrics[REDIRECTOR_METRIC_BATCHES_RESENT]);
    sender->left_over = metric_add(&redirector_metrics[REDIRECTOR_METRIC_CLICKS_LOST], "shutdown");
    REQUIRE(pthread_create(&sender->thread, NULL, run, sender) == 0);
    return sender;
}

void click_sender_stop(struct click_sender *sender, int64_t flush_us) {
    if (sender == NULL)
        return;
    sender->flush_us = flush_us;
    atomic_store(&sender->stopping, true);
    (void)pthread_join(sender->thread, NULL);
    size_t lost = left(sender);
    if (lost > 0) {
        metric_count(sender->left_over, lost);
        log_error("clicks were left over at shutdown", log_int("clicks", (int64_t)lost));
    }
    bus_producer_close(sender->producer);
    for (size_t i = 0; i < CLICK_BATCHES_MAX; i++)
        free(sender->batches[i].bytes);
    free(sender);
}

bool click_sender_is_up(const struct click_sender *sender) {
    return atomic_load(&sender->up);
}
