// SPDX-License-Identifier: MIT
#include "services/clicks/clicks.h"

#define CONFIG_STRUCT clicks_config
const struct config_field clicks_config_fields[] = {CLICKS_CONFIG(CONFIG_ROW)};
const size_t clicks_config_count = ARRAY_LEN(clicks_config_fields);

const struct metric_family clicks_metrics[] = {CLICKS_METRICS(METRIC_ROW)};
const size_t clicks_metrics_count = ARRAY_LEN(clicks_metrics);

enum {
#define CLICKS_METRIC_ENUM(member, ...) METRIC_##member,
    CLICKS_METRICS(CLICKS_METRIC_ENUM)
#undef CLICKS_METRIC_ENUM
};

static int64_t apply_age(void *arg) {
    struct clicks_series *series = arg;
    return (base_monotonic_us() - atomic_load(&series->applied_at_us)) / US_PER_S;
}

void clicks_init(struct clicks *clicks) {
    struct clicks_series *series = &clicks->series;
    series->records = metric_add(&clicks_metrics[METRIC_records]);
    series->counted = metric_add(&clicks_metrics[METRIC_counted]);
    series->applied = metric_add(&clicks_metrics[METRIC_applies], "applied");
    series->lost = metric_add(&clicks_metrics[METRIC_applies], "lost");
    series->failed = metric_add(&clicks_metrics[METRIC_applies], "failed");
    series->apply_time = metric_add(&clicks_metrics[METRIC_apply_time]);
    series->letters_failed = metric_add(&clicks_metrics[METRIC_letters_failed]);
    series->lag = metric_add(&clicks_metrics[METRIC_lag]);
    for (enum batch_fault fault = BATCH_FAULT_NONE + 1; fault < BATCH_FAULT_COUNT; fault++)
        series->dead[fault] = metric_add(&clicks_metrics[METRIC_dead], batch_fault_label(fault));
    atomic_store(&series->applied_at_us, base_monotonic_us());
    metric_add_read(&clicks_metrics[METRIC_age], apply_age, series);
}

struct db_options clicks_db_options(const struct clicks_config *config) {
    return (struct db_options){.conninfo = config->pg_url, .application = "dunlin-clicks"};
}
