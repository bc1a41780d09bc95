// SPDX-License-Identifier: MIT
// Rows that no service of ours wrote: what a restored dump, a hand or another version may leave behind.
#include "common/buf/buf.h"
#include "common/cache/cache.h"
#include "common/linkcache/linkcache.h"
#include "dunlin/v1/cache.pb-c.h"
#include "tests/e2e/cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cache *cache;

static void plant_in_postgres(const char *code, const char *url_sql) {
    char sql[512];
    (void)snprintf(sql, sizeof sql,
        "INSERT INTO dunlin.links (code, long_url, owner_id, source, create_id, created_at, updated_at) "
        "VALUES "
        "('%s', %s, 'demo', 'alias', decode(repeat('00', 16), 'hex'), now(), now())",
        code, url_sql);
    cases_run_sql(sql);
}

static void plant_in_redis(const char *code, const char *url) {
    Dunlin__V1__CachedLink link = DUNLIN__V1__CACHED_LINK__INIT;
    link.code = (char *)code;
    link.version = 1;
    link.state = LINK_ACTIVE;
    link.redirect_status = 302;
    link.verified_at_us = base_wall_us();
    link.has_url = true;
    link.url.data = (uint8_t *)url;
    link.url.len = strlen(url);
    uint8_t packed[512];
    size_t len = dunlin__v1__cached_link__get_packed_size(&link);
    assert_true(len <= sizeof packed);
    assert_int_equal(dunlin__v1__cached_link__pack(&link, packed), len);
    char key[LINKCACHE_KEY];
    cases_redis_key(code, key);
    assert_int_equal(cache_set(cache, key, packed, len, 60000), STATUS_OK);
}

static void ask(const char *method, const char *code, struct http_answer *out) {
    char target[64];
    (void)snprintf(target, sizeof target, "/%s", code);
    http_ask(cases_stack->url, &(struct http_request){.method = method, .target = target}, out);
    if (http_field(out, "Set-Cookie") != NULL)
        fail_msg("case 23: %s /%s: a planted header came out", method, code);
}

static void expect_500(const char *code) {
    static const char *const methods[] = {"GET", "HEAD"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        struct http_answer answer;
        ask(methods[i], code, &answer);
        if (answer.status != 500)
            fail_msg("case 23: %s /%s: status %d, not 500", methods[i], code, answer.status);
        assert_null(http_field(&answer, "Location"));
        assert_null(strstr(buf_text(&answer.body), "Set-Cookie"));
        http_answer_done(&answer);
    }
    cases_expect_alive(23);
}

static void plant_everywhere(void) {
    static const struct {
        const char *url;
        const char *sql;
    } rows[] = {
        {"https://dest.example/\r\nSet-Cookie: a=b", "E'https://dest.example/\\r\\nSet-Cookie: a=b'"},
        {"https://dest.example/\rSet-Cookie: a=b", "E'https://dest.example/\\rSet-Cookie: a=b'"},
        {"https://dest.example/\nSet-Cookie: a=b", "E'https://dest.example/\\nSet-Cookie: a=b'"},
        {"https://dest.example/\xe2\x80\xa8Set-Cookie: a=b",
            "U&'https://dest.example/\\2028Set-Cookie: a=b'"},
        {"https://dest.example/\xc2\x85Set-Cookie: a=b", "U&'https://dest.example/\\0085Set-Cookie: a=b'"},
        {"javascript:alert(1)", "'javascript:alert(1)'"}, // case 17: old rows may exist
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char in_postgres[32], in_both[32];
        (void)snprintf(in_postgres, sizeof in_postgres, "planted-pg-%zu", i);
        plant_in_postgres(in_postgres, rows[i].sql);
        expect_500(in_postgres);
        expect_500(in_postgres); // and from whatever the first lookup left in Redis
        (void)snprintf(in_both, sizeof in_both, "planted-both-%zu", i);
        plant_in_postgres(in_both, rows[i].sql);
        plant_in_redis(in_both, rows[i].url);
        expect_500(in_both);
    }
}

// What Redis holds for a code is believed only where it could be sent; else the authority is asked.
static void plant_over_a_good_row(void) {
    struct link link;
    struct http_answer answer;
    link_create(cases_stack, "{\"url\":\"https://dest.example/good\"}", &link);
    plant_in_redis(link.code, "https://dest.example/\r\nSet-Cookie: a=b");
    ask("GET", link.code, &answer);
    assert_int_equal(answer.status, 302);
    assert_string_equal(http_field(&answer, "Location"), "https://dest.example/good");
    http_answer_done(&answer);
    cases_expect_alive(23);
}

void planted_line_breaks_never_reach_a_header(void **state) {
    (void)state;
    assert_int_equal(cache_create(cases_stack->redis, US_PER_S, &cache, NULL), STATUS_OK);
    // The table refuses such rows; a database that lost its constraint has them.
    cases_run_sql("ALTER TABLE dunlin.links DROP CONSTRAINT links_long_url_check");
    plant_everywhere();
    plant_over_a_good_row();
    cases_run_sql("DELETE FROM dunlin.links WHERE code LIKE 'planted-%'");
    cache_free(cache);
}
