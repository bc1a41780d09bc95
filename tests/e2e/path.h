// SPDX-License-Identifier: MIT
// One fleet for all files of the program test_e2e_path, and their tests.
#pragma once

#include "tests/support/cmocka_all.h"
#include "tests/support/http_client.h"
#include "tests/support/stack.h"

extern struct stack *path_stack;

// Exactly one field of that name, with this value.
void path_expect_field(const struct http_answer *answer, const char *name, const char *value);
void path_expect_no_field(const struct http_answer *answer, const char *name);

// path_clicks.c
void clicks_are_counted_within_5_seconds(void **state);
void clicks_are_told_per_day(void **state);
void clicks_refuses_bad_spans(void **state);

// path_ctl.c
void ctl_creates_and_gets(void **state);
void ctl_counts(void **state);
void ctl_decodes(void **state);
void ctl_makes_keys(void **state);
void ctl_says_refused_usage_and_unavailable(void **state);
