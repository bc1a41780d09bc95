// SPDX-License-Identifier: MIT
// What create_link() needs, planned and recorded: counter values and inserts without a database. Include
// after cmocka.h.
#pragma once

#include "services/writer/create.h"

#include <stdio.h>
#include <string.h>

#define CALLS_MAX 16

// An insert that commits and loses its answer has status UNKNOWN and outcome CREATE_MADE.
struct plan {
    enum status status;
    enum create_outcome outcome;
};

struct call {
    char code[CODES_TEXT];
    struct new_link link; // its texts are not valid any more
    uint8_t create_id[WRITER_CREATE_ID];
};

struct fake {
    struct plan plans[CALLS_MAX]; // the last one that is not zero is repeated
    size_t plan_count;
    enum status take_status;
    uint64_t next;
    unsigned takes, drops, collisions, asked_again;
    size_t call_count;
    struct call calls[CALLS_MAX];
    size_t link_count; // rows: one per code and create_id
    char url[256], owner[72], source[16];
};

static enum status take(void *arg, int64_t deadline_us, uint64_t *counter, struct problem *why) {
    struct fake *fake = arg;
    assert_true(deadline_us > 0);
    fake->takes++;
    if (fake->take_status != STATUS_OK)
        return problem_set(why, fake->take_status, "KEYRANGE_UNAVAILABLE", "planned");
    *counter = fake->next++;
    return STATUS_OK;
}

static void drop(void *arg) {
    ((struct fake *)arg)->drops++;
}

static void collided(void *arg) {
    ((struct fake *)arg)->collisions++;
}

static void asked_again(void *arg) {
    ((struct fake *)arg)->asked_again++;
}

static bool has_row(const struct fake *fake, const struct new_link *link) {
    for (size_t i = 0; i < fake->call_count; i++)
        if (fake->plans[i < fake->plan_count ? i : fake->plan_count - 1].outcome == CREATE_MADE &&
            strcmp(fake->calls[i].code, link->code) == 0 &&
            memcmp(fake->calls[i].create_id, link->create_id, WRITER_CREATE_ID) == 0)
            return true;
    return false;
}

static enum status insert(void *arg, int64_t deadline_us, const struct new_link *link,
    enum create_outcome *outcome, struct stored_link *made, struct problem *why) {
    struct fake *fake = arg;
    size_t at = fake->call_count;
    assert_true(deadline_us > 0);
    assert_true(at < CALLS_MAX);
    const struct plan *plan = &fake->plans[at < fake->plan_count ? at : fake->plan_count - 1];
    if (plan->outcome == CREATE_MADE && !has_row(fake, link))
        fake->link_count++;
    struct call *call = &fake->calls[fake->call_count++];
    call->link = *link;
    (void)snprintf(call->code, sizeof call->code, "%s", link->code);
    memcpy(call->create_id, link->create_id, WRITER_CREATE_ID);
    (void)snprintf(fake->url, sizeof fake->url, "%s", link->url);
    (void)snprintf(fake->owner, sizeof fake->owner, "%s", link->owner);
    (void)snprintf(fake->source, sizeof fake->source, "%s", link->source);
    if (plan->status != STATUS_OK)
        return problem_set(why, plan->status, "PLANNED", "planned");
    *outcome = plan->outcome;
    if (plan->outcome == CREATE_MADE) {
        *made = (struct stored_link){.version = 1};
        (void)snprintf(made->code, sizeof made->code, "%s", link->code);
    }
    return STATUS_OK;
}
