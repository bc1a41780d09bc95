// SPDX-License-Identifier: MIT
#include "services/keyrange/keyrange.h"

#include <stdio.h>

#define CONFIG_STRUCT keyrange_config
const struct config_field keyrange_config_fields[] = {KEYRANGE_CONFIG(CONFIG_ROW)};
const size_t keyrange_config_count = ARRAY_LEN(keyrange_config_fields);

const struct metric_family keyrange_metrics[] = {KEYRANGE_METRICS(METRIC_ROW)};
const size_t keyrange_metrics_count = ARRAY_LEN(keyrange_metrics);

enum status keyrange_init(struct keyrange *keyrange, struct problem *why) {
    for (unsigned slot = 0; slot < KEYRANGE_SLOTS; slot++) {
        char label[16];
        (void)snprintf(label, sizeof label, "%u", slot);
        keyrange->blocks[slot] = metric_add(&keyrange_metrics[KEYRANGE_METRIC_BLOCKS], label);
        keyrange->values[slot] = metric_add(&keyrange_metrics[KEYRANGE_METRIC_VALUES], label);
        keyrange->ceilings[slot] = metric_add(&keyrange_metrics[KEYRANGE_METRIC_CEILINGS], label);
    }
    keyrange->jumped = metric_add(&keyrange_metrics[KEYRANGE_METRIC_JUMPS]);
    keyrange->not_ready = metric_add(&keyrange_metrics[KEYRANGE_METRIC_NOT_READY]);
    keyrange->far_behind = metric_add(&keyrange_metrics[KEYRANGE_METRIC_FAR_BEHIND]);
    keyrange->memory_failures = metric_add(&keyrange_metrics[KEYRANGE_METRIC_MEMORY_FAILURES]);
    return memory_open(keyrange->config.memory, &keyrange->memory, why);
}

void keyrange_done(struct keyrange *keyrange) {
    memory_close(keyrange->memory);
}

struct db_options keyrange_db_options(const struct keyrange *keyrange, struct identity *identity) {
    identity->jumped = keyrange->jumped;
    return (struct db_options){
        .conninfo = keyrange->config.pg_url,
        .application = "dunlin-keyrange",
        .on_connect = identity_guard,
        .arg = identity,
    };
}
