// SPDX-License-Identifier: MIT
// Faults that users of link shorteners reported, each turned into inputs and the right answer, against one
// fleet for all files of the program test_e2e_cases. `number` is the case's in the list that the project
// keeps of them.
#pragma once

#include "tests/support/links.h"

extern struct stack *cases_stack;

// The four services are the processes they were at the start, and a plain redirect on a new connection takes
// under 1 s.
void cases_expect_alive(int number);
// Rows in the table of links. What is refused must not add one.
int64_t cases_count_links(void);

// POST of this body: the status, a problem document unless it is 201, `field` named in it unless NULL; no
// link is made unless it is 201; and all alive.
void cases_expect_create(int number, const char *body, size_t body_len, int status, const char *field);
// {"url": …}, given as a JSON text without its quotes: refused for `url` with 422.
void cases_expect_url_refused(int number, const char *url_json);
// {"alias": …} likewise.
void cases_expect_alias_refused(int number, const char *alias_json);
// GET with this target, which may hold any bytes but CR and LF: the status; and all alive.
void cases_expect_get(int number, const char *target, int status);
// Runs one statement as the owner of the schema.
void cases_run_sql(const char *sql);
// The prefix of keys in Redis: of this database's number of jumps.
void cases_redis_key(const char *code, char out[64]);

// cases_targets.c
void targets_come_out_byte_for_byte(void **state);
void targets_of_other_schemes_are_refused(void **state);
void targets_with_controls_are_refused(void **state);
void a_fragment_is_the_browsers_business(void **state);
// cases_planted.c
void planted_line_breaks_never_reach_a_header(void **state);
// cases_paths.c
void one_trailing_slash_is_the_same_link(void **state);
void dot_segments_stay_among_links(void **state);
void escaped_letters_are_the_same_link(void **state);
void letter_case_tells_links_apart(void **state);
void codes_are_ascii(void **state);
void head_answers_as_get(void **state);
void our_own_address_is_never_the_hosts_word(void **state);
// cases_api.c
void aliases_are_of_one_alphabet(void **state);
void our_own_routes_are_no_aliases(void **state);
void json_of_wrong_kinds_is_refused(void **state);
void json_that_is_not_utf8_is_refused(void **state);
void deep_json_is_refused(void **state);
// cases_order.c
void the_first_of_several_refusals_is_told(void **state);
void oversized_requests_are_refused(void **state);
// cases_outside.c
void a_lookup_touches_one_key_in_redis(void **state);
void a_request_is_one_line_in_a_log(void **state);
// cases_rpc.c
void malformed_rpc_is_refused(void **state);
