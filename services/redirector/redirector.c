// SPDX-License-Identifier: MIT
#include "services/redirector/redirector.h"
#include "common/cache/cache.h"
#include "common/web/web_listen.h"

#include <unistd.h>

#define CONFIG_STRUCT redirector_config
const struct config_field redirector_config_fields[] = {REDIRECTOR_CONFIG(CONFIG_ROW)};
const size_t redirector_config_count = ARRAY_LEN(redirector_config_fields);

const struct metric_family redirector_metrics[] = {REDIRECTOR_METRICS(METRIC_ROW)};
const size_t redirector_metrics_count = ARRAY_LEN(redirector_metrics);

static enum status bad_setting(struct problem *why, const char *name, const char *rule) {
    return problem_set(why, STATUS_FAILED_PRECONDITION, "BAD_SETTING", "%s: %s", name, rule);
}

enum status redirector_init(struct redirector *redirector, struct problem *why) {
    const struct redirector_config *config = &redirector->config;
    if (!web_listen_parse(config->listen, redirector->address, sizeof redirector->address, &redirector->port))
        return bad_setting(why, "HTTP_LISTEN", "must be ADDRESS:PORT, with a numeric address");
    struct cache_address redis;
    if (config->redis_url[0] != '\0') {
        if (!cache_address_parse(config->redis_url, &redis))
            return bad_setting(why, "REDIS_URL", "must be redis://[:PASSWORD@]HOST:PORT[/DB]");
        cache_address_done(&redis);
    }
    struct buf sentence;
    buf_init(&sentence, 256);
    bool ok = target_rules_init(&redirector->hosts, config->public_url, config->allowed_hosts, &sentence);
    if (!ok)
        (void)bad_setting(why, "PUBLIC_URL or ALLOWED_HOSTS", buf_text(&sentence));
    buf_done(&sentence);
    if (!ok)
        return why->status;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    redirector->worker_count = config->workers > 0 ? (size_t)config->workers : cores > 0 ? (size_t)cores : 1;
    return STATUS_OK;
}

void redirector_done(struct redirector *redirector) {
    target_rules_done(&redirector->hosts);
}

bool redirector_serves_host(const struct redirector *redirector, const char *host) {
    if (redirector->config.allowed_hosts[0] == '\0')
        return true;
    return host != NULL && target_rules_serve(&redirector->hosts, host);
}
