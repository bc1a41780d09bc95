// SPDX-License-Identifier: MIT
// Carries clicks from the workers' rings to Kafka, on a thread of its own. Never in anybody's way: when Kafka
// is slow or away, batches wait here up to a bound, then clicks wait in the rings, and a full ring counts
// what it drops.
//
// Each batch has a name, (producer, lane, sequence), that it keeps through every re-send; the lane is the
// partition.
#pragma once

#include "common/bus/bus.h"
#include "services/redirector/click_ring.h"

struct click_sender;

#define CLICK_BATCH_MAX 1000  // clicks in one record
#define CLICK_BATCHES_MAX 256 // batches not yet acknowledged

struct click_sender_options {
    const char *brokers;
    const char *topic;
    struct click_ring *const *rings;
    size_t ring_count;
};

// Connects in the background. The rings must outlive it.
struct click_sender *click_sender_start(const struct click_sender_options *options);
// Sends what the rings hold for at most `flush_us`; what is left then is counted as lost and logged. NULL is
// fine.
void click_sender_stop(struct click_sender *sender, int64_t flush_us);
// Any thread.
bool click_sender_is_up(const struct click_sender *sender);
