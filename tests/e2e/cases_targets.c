// SPDX-License-Identifier: MIT
#include "tests/e2e/cases.h"
#include <stdio.h>
#include <string.h>

static void create(const char *url_json, struct link *out) {
    char body[1024];
    (void)snprintf(body, sizeof body, "{\"url\":\"%s\"}", url_json);
    link_create(cases_stack, body, out);
}

void targets_come_out_byte_for_byte(void **state) {
    (void)state;
    static const struct {
        int number;
        const char *url;
        const char *suffix; // after the code
    } rows[] = {
        {1, "https://dest.example/s?q=a+b&r=1%2B1&t=a%20b", ""},
        {3, "https://dest.example/n", ""},
        {3, "https://dest.example/n", "?"},
        {3, "https://dest.example/n?", ""},
        {3, "https://dest.example/n?", "?"},
        {3, "https://dest.example/n?", "/?x=1"},
        {5,
            "https://dest.example/"
            "go?a=1&next=https%3A%2F%2Fother.example%2Fp%3Fx%3D1%26y%3Dtwo%2520words%23frag&b=salt%20%26%"
            "20pepper",
            ""},
        {7, "https://dest.example/#/album/7?view=2", ""},
        {7, "https://dest.example/find?q=%23tag#top", ""},
        {15, "https://dest.example/part#part1", ""},
        {15, "https://dest.example/part", ""},
        {19, "Https://Dest.Example/Path", ""},
        {19, "HTTP://dest.example", ""},
        {19, "hTTpS://DEST.example:8443/Path?Q#F", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct link link;
        char with_suffix[80];
        create(rows[i].url, &link);
        (void)snprintf(with_suffix, sizeof with_suffix, "%s%s", link.code, rows[i].suffix);
        link_must_redirect(cases_stack, with_suffix, rows[i].url);
    }
}

void targets_of_other_schemes_are_refused(void **state) {
    (void)state;
    static const char *const urls[] = {"javascript:alert(1)", "JavaScript://dest.example/%0aalert(1)",
        "data:text/html,x", "vbscript:x", "file:///etc/passwd", "ftp://dest.example/", "mailto:a@example.com",
        "//dest.example/", "dest.example", "https:dest.example", "https:/dest.example", "http://",
        "https:///path"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        cases_expect_url_refused(17, urls[i]);
}

void targets_with_controls_are_refused(void **state) {
    (void)state;
    static const struct {
        int number;
        const char *url_json;
    } rows[] = {
        {23, "https://dest.example/\\r\\nSet-Cookie: a=b"},
        {23, "https://dest.example/\\rSet-Cookie: a=b"},
        {23, "https://dest.example/\\nSet-Cookie: a=b"},
        {23, "https://dest.example/\\u2028Set-Cookie: a=b"},
        {23, "https://dest.example/\\u2029Set-Cookie: a=b"},
        {23, "https://dest.example/\\u0085Set-Cookie: a=b"},
        {23, "https://dest.example\\r\\nSet-Cookie: a=b"},
        {25, "https://dest.example/\\u0000x"},
        {25, "\\u0000"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        cases_expect_url_refused(rows[i].number, rows[i].url_json);
    cases_expect_alias_refused(25, "nul\\u0000alias");
    // No field has such a name.
    cases_expect_create(25, "{\"url\":\"https://dest.example/\",\"ur\\u0000l\":1}", 0, 422, "body");
}

void a_fragment_is_the_browsers_business(void **state) {
    (void)state;
    struct link link;
    char target[64];
    create("https://dest.example/whole", &link);
    // No browser sends one; what does is told.
    (void)snprintf(target, sizeof target, "/%s#part2", link.code);
    cases_expect_get(15, target, 400);
}
