// SPDX-License-Identifier: MIT
#include "services/writer/create.h"
#include "common/instant/instant.h"
#include "common/log/log.h"

#include <string.h>
#include <time.h>

#define ASK_AGAIN_US (50 * US_PER_MS)

static enum status check(
    const struct create_means *means, const struct create_wish *wish, struct buf *url, struct problem *why) {
    bool ok = target_normalise(means->rules, wish->url, wish->url_len, url, why) == STATUS_OK;
    if (wish->alias != NULL && codes_check_alias(wish->alias, strlen(wish->alias), why) != STATUS_OK)
        ok = false;
    if (wish->has_expiry && wish->expires_at <= base_wall_us())
        ok = problem_violate(why, "expires_at", "It must be in the future.") == STATUS_OK;
    else if (wish->has_expiry && wish->expires_at > INSTANT_MAX)
        ok = problem_violate(why, "expires_at", "It must be before the year 10000.") == STATUS_OK;
    return ok ? STATUS_OK : why->status;
}

// One insert, run again with the same code and create_id while its outcome is unknown.
static enum status insert(const struct create_means *means, int64_t deadline_us, const struct new_link *link,
    enum create_outcome *outcome, struct stored_link *made, struct problem *why) {
    enum status status = means->insert(means->arg, deadline_us, link, outcome, made, why);
    if (status != STATUS_UNKNOWN)
        return status;
    means->asked_again(means->arg);
    while (base_monotonic_us() + ASK_AGAIN_US < deadline_us) {
        const struct timespec pause = {.tv_nsec = ASK_AGAIN_US * 1000};
        (void)nanosleep(&pause, NULL);
        memset(why, 0, sizeof *why);
        status = means->insert(means->arg, deadline_us, link, outcome, made, why);
        // Only what Postgres says after it has looked for the first try's row settles it.
        if (status == STATUS_OK || status == STATUS_INVALID_ARGUMENT)
            return status;
    }
    return problem_set(why, STATUS_UNAVAILABLE, "OUTCOME_UNKNOWN",
        "Postgres was lost during the commit: the link may exist or not.");
}

static enum status create_alias(const struct create_means *means, int64_t deadline_us, struct new_link *link,
    struct stored_link *made, struct problem *why) {
    crypto_random(link->create_id, sizeof link->create_id);
    enum create_outcome outcome;
    enum status status = insert(means, deadline_us, link, &outcome, made, why);
    if (status == STATUS_OK && outcome == CREATE_TAKEN) {
        (void)problem_set(why, STATUS_ALREADY_EXISTS, "ALIAS_TAKEN", "The alias is taken.");
        (void)problem_violate(why, "alias", "It is taken, by a link that exists or existed.");
        return why->status;
    }
    return status;
}

static enum status create_range(const struct create_means *means, int64_t deadline_us, struct new_link *link,
    struct stored_link *made, struct problem *why) {
    char code[CODES_TEXT];
    link->code = code;
    link->slot = means->slot;
    for (int attempt = 0; attempt < CREATE_ATTEMPTS; attempt++) {
        enum status status = means->take(means->arg, deadline_us, &link->counter, why);
        if (status != STATUS_OK)
            return status;
        if (!codes_encode(means->key, link->slot, link->counter, code))
            return problem_set(
                why, STATUS_RESOURCE_EXHAUSTED, "SLOT_EXHAUSTED", "The slot has no codes left.");
        crypto_random(link->create_id, sizeof link->create_id);
        enum create_outcome outcome;
        status = insert(means, deadline_us, link, &outcome, made, why);
        if (status != STATUS_OK || outcome == CREATE_MADE)
            return status;
        if (outcome == CREATE_TAKEN) {
            // A counter's codes are all different: this one was handed out before.
            log_critical("a code from the counter was taken: the counter went backwards",
                log_text("code", code), log_int("slot", link->slot),
                log_int("counter", (int64_t)link->counter));
            means->collided(means->arg);
        } else {
            log_error("the authority does not know this block, dropped", log_int("slot", link->slot),
                log_int("counter", (int64_t)link->counter));
        }
        means->drop(means->arg);
    }
    (void)problem_set(
        why, STATUS_UNAVAILABLE, "NO_FREE_CODE", "No free code was found in %d attempts.", CREATE_ATTEMPTS);
    return why->status;
}

enum status create_link(const struct create_means *means, int64_t deadline_us, const struct create_wish *wish,
    struct stored_link *made, struct problem *why) {
    struct buf url;
    buf_init(&url, TARGET_MAX);
    enum status status = check(means, wish, &url, why);
    if (status == STATUS_OK) {
        struct new_link link = {
            .code = wish->alias,
            .url = buf_text(&url),
            .owner = wish->owner,
            .source = wish->alias != NULL ? "alias" : "range",
            .has_expiry = wish->has_expiry,
            .expires_at = wish->expires_at,
        };
        status = wish->alias != NULL ? create_alias(means, deadline_us, &link, made, why)
                                     : create_range(means, deadline_us, &link, made, why);
    }
    buf_done(&url);
    return status;
}
