// SPDX-License-Identifier: MIT
// The thread that reads the click stream and has it counted. It owns a Postgres connection, the consumer and
// the dead-letter producer, waits for Kafka and Postgres and takes up again whatever is lost. Also in its
// care: the topics, and the months of clicks_daily.
#pragma once

#include "services/clicks/clicks.h"

struct consume;

// `config` and `series` must outlive it. INVALID_ARGUMENT for settings that waiting can't mend.
MUST_CHECK enum status consume_start(const struct clicks_config *config, struct clicks_series *series,
    struct consume **out, struct problem *why);
// Applies what is folded (one attempt), leaves the group, ends the thread. NULL is fine.
void consume_stop(struct consume *consume);
// In the group, and a broker answered last. Any thread, does not block.
bool consume_is_up(const struct consume *consume);
