// SPDX-License-Identifier: MIT
#include "services/clicks/dead.h"

#include "common/log/log.h"

#include <stdlib.h>

#define QUEUE_MAX 10000
#define LINGER_MS 5
#define MAKE_ROOM_MS 2000

struct dead {
    char *brokers;
    char *topic;
    struct bus_producer *producer; // NULL after a failure, until the next letter
    bool failed;                   // a letter since the last dead_confirm()
};

// A letter that the topic refuses for good must not hold up the stream: it is logged as lost, and the rest
// goes on.
static void delivered(void *arg, void *record_arg, enum status status) {
    (void)record_arg;
    struct dead *dead = arg;
    if (status == STATUS_INVALID_ARGUMENT)
        log_critical("the dead-letter topic refused a record, which is lost", log_text("topic", dead->topic));
    else if (status != STATUS_OK)
        dead->failed = true;
}

static enum status open_producer(struct dead *dead, struct problem *why) {
    const struct bus_producer_options options = {
        .brokers = dead->brokers,
        .topic = dead->topic,
        .client = "dunlin-clicks-dead",
        .linger_ms = LINGER_MS,
        .queue_max = QUEUE_MAX,
        .delivered = delivered,
        .arg = dead,
    };
    return bus_producer_open(&options, &dead->producer, why);
}

enum status dead_open(const char *brokers, const char *topic, struct dead **out, struct problem *why) {
    struct dead *dead = base_calloc(1, sizeof *dead);
    dead->brokers = base_strdup(brokers);
    dead->topic = base_strdup(topic);
    enum status status = open_producer(dead, why);
    if (status != STATUS_OK) {
        dead_close(dead);
        return status;
    }
    *out = dead;
    return STATUS_OK;
}

void dead_close(struct dead *dead) {
    if (dead == NULL)
        return;
    bus_producer_close(dead->producer);
    free(dead->brokers);
    free(dead->topic);
    free(dead);
}

void dead_put(struct dead *dead, const void *bytes, size_t len) {
    if (dead->producer == NULL && open_producer(dead, NULL) != STATUS_OK)
        dead->failed = true;
    if (dead->failed)
        return;
    if (len > DEAD_BYTES_MAX) {
        log_error("a dead letter was cut", log_text("topic", dead->topic), log_int("bytes", (int64_t)len));
        len = DEAD_BYTES_MAX;
    }
    enum status status = bus_produce(dead->producer, 0, bytes, len, NULL);
    if (status == STATUS_RESOURCE_EXHAUSTED) {
        (void)bus_producer_flush(dead->producer, MAKE_ROOM_MS);
        status = bus_produce(dead->producer, 0, bytes, len, NULL);
    }
    if (status != STATUS_OK)
        dead->failed = true;
}

bool dead_confirm(struct dead *dead, int timeout_ms) {
    if (dead->producer != NULL && !dead->failed && bus_producer_flush(dead->producer, timeout_ms) > 0)
        dead->failed = true;
    if (!dead->failed)
        return true;
    // What is still queued would only arrive beside what is put again.
    bus_producer_close(dead->producer);
    dead->producer = NULL;
    dead->failed = false;
    return false;
}
