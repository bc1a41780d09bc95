// SPDX-License-Identifier: MIT
#include "services/writer/writer.h"
#include "common/cache/cache.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_STRUCT writer_config
const struct config_field writer_config_fields[] = {WRITER_CONFIG(CONFIG_ROW)};
const size_t writer_config_count = ARRAY_LEN(writer_config_fields);

const struct metric_family writer_metrics[] = {WRITER_METRICS(METRIC_ROW)};
const size_t writer_metrics_count = ARRAY_LEN(writer_metrics);

static enum status bad_setting(struct problem *why, const char *name, const char *rule) {
    return problem_set(why, STATUS_FAILED_PRECONDITION, "BAD_SETTING", "%s: %s", name, rule);
}

enum status writer_init(struct writer *writer, struct problem *why) {
    if (!codes_key_parse(writer->config.permutation_key, &writer->key))
        return bad_setting(why, "PERMUTATION_KEY", "must be 32 hex digits");
    struct cache_address redis;
    if (writer->config.redis_url[0] != '\0') {
        if (!cache_address_parse(writer->config.redis_url, &redis))
            return bad_setting(why, "REDIS_URL", "must be redis://[:PASSWORD@]HOST:PORT[/DB]");
        cache_address_done(&redis);
    }
    struct buf sentence;
    buf_init(&sentence, 256);
    bool ok =
        target_rules_init(&writer->rules, writer->config.public_url, writer->config.allowed_hosts, &sentence);
    if (!ok)
        (void)bad_setting(why, "PUBLIC_URL or ALLOWED_HOSTS", buf_text(&sentence));
    buf_done(&sentence);
    if (!ok)
        return why->status;
    int len = snprintf(writer->public_url, sizeof writer->public_url, "%s", writer->rules.public_url);
    if (len < 0 || (size_t)len >= sizeof writer->public_url)
        return bad_setting(why, "PUBLIC_URL", "is too long once its host is written in A-labels");

    writer->created_range = metric_add(&writer_metrics[WRITER_METRIC_CREATED], "range");
    writer->created_alias = metric_add(&writer_metrics[WRITER_METRIC_CREATED], "alias");
    writer->collisions_range = metric_add(&writer_metrics[WRITER_METRIC_COLLISIONS], "range");
    writer->jumped = metric_add(&writer_metrics[WRITER_METRIC_JUMPS]);
    writer->unknown = metric_add(&writer_metrics[WRITER_METRIC_UNKNOWN]);
    writer->cache_failures = metric_add(&writer_metrics[WRITER_METRIC_CACHE_FAILURES]);
    return STATUS_OK;
}

void writer_done(struct writer *writer) {
    target_rules_done(&writer->rules);
}

struct db_options writer_db_options(const struct writer *writer, struct identity *identity) {
    identity->jumped = writer->jumped;
    return (struct db_options){
        .conninfo = writer->config.pg_url,
        .application = "dunlin-writer",
        .on_connect = identity_guard,
        .arg = identity,
    };
}
