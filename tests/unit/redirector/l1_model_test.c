// SPDX-License-Identifier: MIT
// The in-process cache under random operations, against a model that forgets nothing.
#include "services/redirector/l1.h"

#include "tests/support/cmocka_all.h"
#include <stdio.h>
#include <string.h>

#define START INT64_C(1000000000)
#define MODEL_CODES 700
#define MODEL_STEPS 400000
enum known { KNOWN_NOTHING, KNOWN_LINK, KNOWN_ABSENT };

// What the last accepted word on a code was.
struct model {
    int64_t read_at, until;
    size_t url_len;
    enum known known;
    char fill;
};

static uint32_t draw(uint64_t *random, uint32_t below) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33) % below;
}

static void check_get(struct l1 *l1, const char *code, const struct model *model, int64_t now, bool roomy) {
    struct l1_hit hit;
    enum l1_result result = l1_get(l1, code, now, &hit);
    bool ended = model->known == KNOWN_NOTHING || now >= model->until;
    if (result == L1_HIT) {
        assert_true(model->known == KNOWN_LINK && !ended);
        assert_string_equal(hit.link->code, code);
        assert_int_equal(hit.read_at, model->read_at);
        assert_int_equal(hit.link->url_len, model->url_len);
        assert_int_equal(strlen(hit.link->url), model->url_len);
        for (size_t i = 0; i < model->url_len; i++)
            assert_int_equal(hit.link->url[i], model->fill);
    } else if (result == L1_ABSENT) {
        assert_true(model->known == KNOWN_ABSENT && !ended);
    } else if (roomy) {
        assert_true(ended || model->known == KNOWN_ABSENT); // of these some are pushed out
    }
}

static void change(struct l1 *l1, const char *code, struct model *model, int64_t now, uint64_t *random) {
    static char url[2001];
    uint32_t kind = draw(random, 100);
    int64_t read_at = now - draw(random, 2000);
    struct l1_fetch fetch = l1_fetch(l1, code, read_at);
    if (kind < 70) {
        size_t len = draw(random, 20) == 0 ? draw(random, 2000) + 1 : draw(random, 100) + 1;
        char fill = (char)('a' + draw(random, 26));
        memset(url, fill, len);
        url[len] = '\0';
        struct cached_link link = {.state = LINK_ACTIVE, .url = url, .url_len = len};
        (void)snprintf(link.code, sizeof link.code, "%s", code);
        if (l1_put(l1, &fetch, &link, now))
            *model = (struct model){read_at, read_at + L1_FRESH_US, len, KNOWN_LINK, fill};
    } else if (kind < 90) {
        if (l1_put_absent(l1, &fetch, code, US_PER_S, now))
            *model = (struct model){read_at, read_at + US_PER_S, 0, KNOWN_ABSENT, 0};
    } else {
        l1_remove(l1, code);
        model->known = KNOWN_NOTHING;
    }
}

static void random_operations(size_t limit, bool roomy) {
    static struct model models[MODEL_CODES];
    memset(models, 0, sizeof models);
    struct l1_options options = {.bytes = limit, .absent = 64, .key = {1, 2, 3}};
    struct l1 *l1 = l1_create(&options);
    uint64_t random = 99;
    int64_t now = START;
    char code[CODES_TEXT];
    for (size_t i = 0; i < MODEL_STEPS; i++) {
        now += draw(&random, 300);
        uint32_t number = draw(&random, MODEL_CODES);
        (void)snprintf(code, sizeof code, "%04u", number);
        if (draw(&random, 3) == 0)
            change(l1, code, &models[number], now, &random);
        else
            check_get(l1, code, &models[number], now, roomy);
        if (draw(&random, 20000) == 0) {
            l1_clear(l1);
            memset(models, 0, sizeof models);
        }
        assert_true(l1_bytes(l1) <= limit);
        assert_true(l1_count(l1) <= MODEL_CODES);
    }
    l1_free(l1);
}

static void it_agrees_with_a_model_when_all_fits(void **state) {
    (void)state;
    random_operations((size_t)4 * 1024 * 1024, true);
}

static void it_never_contradicts_the_model_when_little_fits(void **state) {
    (void)state;
    random_operations(L1_BYTES_MIN, false);
}

int main(void) {
    crypto_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_a_model_when_all_fits),
        cmocka_unit_test(it_never_contradicts_the_model_when_little_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
