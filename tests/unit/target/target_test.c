// SPDX-License-Identifier: MIT
#include "common/target/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
    const char *url;
    const char *result; // the stored bytes, or a part of the broken rule's sentence
};

#define SAME(url)                                                                                            \
    { url, url }

static struct target_rules rules;

static void check_stored(const char *url, size_t len, const char *stored) {
    struct buf out;
    struct problem why = {0};
    buf_init(&out, TARGET_MAX + 3);
    buf_puts(&out, ">> ");
    enum status status = target_normalise(&rules, url, len, &out, &why);
    if (status != STATUS_OK)
        fail_msg("%s was refused: %s", url, why.violations[0].rule);
    assert_int_equal(why.violation_count, 0);
    assert_string_equal(buf_text(&out) + 3, stored);
    assert_int_equal(out.len - 3, strlen(stored));
    assert_true(target_is_sendable(buf_text(&out) + 3, out.len - 3));
    buf_done(&out);
}

static void expect_stored(const struct row *row) {
    check_stored(row->url, strlen(row->url), row->result);
    // What is stored is its own stored form.
    check_stored(row->result, strlen(row->result), row->result);
}

static void check_refused(const char *url, size_t len, const char *rule) {
    struct buf out;
    struct problem why = {0};
    // Exactly as long as it is, so that sanitizers see a read past its end.
    char *copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, url, len);
    buf_init(&out, TARGET_MAX + 3);
    buf_puts(&out, ">> ");
    if (target_normalise(&rules, copy, len, &out, &why) != STATUS_INVALID_ARGUMENT)
        fail_msg("%s was stored as %s", url, buf_text(&out));
    assert_int_equal(why.violation_count, 1);
    assert_string_equal(why.violations[0].field, "url");
    if (strstr(why.violations[0].rule, rule) == NULL)
        fail_msg("%s: %s", url, why.violations[0].rule);
    assert_string_equal(buf_text(&out), ">> ");
    assert_true(buf_ok(&out));
    buf_done(&out);
    free(copy);
}

static void expect_all_stored(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        expect_stored(&rows[i]);
}

static void expect_all_refused(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        check_refused(rows[i].url, strlen(rows[i].url), rows[i].result);
}

static void valid_uris_are_stored_untouched(void **state) {
    (void)state;
    static const struct row rows[] = {
        SAME("https://dest.example/s?q=a+b&r=1%2B1&t=a%20b"),
        SAME("https://dest.example/n"),
        SAME("https://dest.example/n?"),
        SAME("https://dest.example/n#"),
        SAME("https://dest.example/n?#"),
        SAME("https://dest.example/"
             "go?a=1&next=https%3A%2F%2Fother.example%2Fp%3Fx%3D1%26y%3Dtwo%2520words%23frag&b=salt"
             "%20%26%20pepper"),
        SAME("https://dest.example/#/album/7?view=2"),
        SAME("https://dest.example/find?q=%23tag#top"),
        SAME("https://dest.example/#a#b"),
        SAME("http://dest.example"),
        SAME("http://dest.example?x"),
        SAME("http://dest.example#x"),
        SAME("Https://Dest.Example/Path"),
        SAME("HTTP://dest.example"),
        SAME("https://dest.example/a//b/./c/../d;p=1,2!$'()*@:~_-."),
        SAME("https://dest.example/?x[y]=3&z=[1]#[2]"),
        SAME("https://dest.example/a[b]"),
        SAME("https://dest.example/?u=a@b:c/d?e"),
        SAME("http://169.254.169.254/latest/"),
        SAME("http://localhost:6379/"),
        SAME("http://127.0.0.1.nip.example/"),
        SAME("https://dest.example:8447/"),
        SAME("https://intranet.invalid/"),
    };
    expect_all_stored(rows, ARRAY_LEN(rows));
}

static void malformed_escapes_are_kept(void **state) {
    (void)state;
    static const struct row rows[] = {
        SAME("https://dest.example/100%"),
        SAME("https://dest.example/?p=%zz&s=%u20ac"),
        SAME("https://dest.example/%E0%A4"),
        SAME("https://dest.example/%00%0d%0A"),
    };
    expect_all_stored(rows, ARRAY_LEN(rows));
}

static void what_a_uri_cannot_hold_is_encoded_once(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"https://dest.example/a b?c d#e f", "https://dest.example/a%20b?c%20d#e%20f"},
        {"https://dest.example/a%20b c", "https://dest.example/a%20b%20c"},
        {"https://dest.example/\xc3\xa4?\xc3\xb6=\xc3\xbc#\xe2\x82\xac",
            "https://dest.example/%C3%A4?%C3%B6=%C3%BC#%E2%82%AC"},
        {"https://dest.example/\xf0\x9f\x98\x80", "https://dest.example/%F0%9F%98%80"},
        {"https://dest.example/a\xcc\x88", "https://dest.example/a%CC%88"},   // no normalisation of the path
        {"https://dest.example/\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", // a joiner inside
            "https://dest.example/%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB"},
        {"https://dest.example/a\xc2\xa0"
         "b",
            "https://dest.example/a%C2%A0b"},
        {"https://dest.example/<>\"{}|^`?<>\"{}|^`",
            "https://dest.example/%3C%3E%22%7B%7D%7C%5E%60?%3C%3E%22%7B%7D%7C%5E%60"},
        {"https://dest.example/?a\\b#c\\d", "https://dest.example/?a%5Cb#c%5Cd"},
        {"https://dest.example/#c\\d", "https://dest.example/#c%5Cd"},
    };
    expect_all_stored(rows, ARRAY_LEN(rows));
}

static void ascii_white_space_is_trimmed(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"  https://dest.example/ ", "https://dest.example/"},
        {"\thttps://dest.example/\t", "https://dest.example/"},
        {" \t\r\n\fhttps://dest.example/x y\f\n\r\t ", "https://dest.example/x%20y"},
        {"https://dest.example\r\n", "https://dest.example"},
    };
    expect_all_stored(rows, ARRAY_LEN(rows));
}

static void invisible_ends_are_refused(void **state) {
    (void)state;
    // NBSP, ZWSP, BOM, ideographic space, line separator, NEL, soft hyphen, word joiner, RLO, tag space,
    // vertical tab, DEL
    static const char *const invisible[] = {"\xc2\xa0", "\xe2\x80\x8b", "\xef\xbb\xbf", "\xe3\x80\x80",
        "\xe2\x80\xa8", "\xc2\x85", "\xc2\xad", "\xe2\x81\xa0", "\xe2\x80\xae", "\xf3\xa0\x80\xa0", "\v",
        "\x7f", "\x1c", "\x1f"};
    for (size_t i = 0; i < ARRAY_LEN(invisible); i++) {
        struct buf url;
        buf_init(&url, 100);
        buf_printf(&url, " %s https://dest.example/", invisible[i]);
        check_refused(buf_text(&url), url.len, "begin or end with an invisible character");
        buf_clear(&url);
        buf_printf(&url, "https://dest.example/ %s ", invisible[i]);
        check_refused(buf_text(&url), url.len, "begin or end with an invisible character");
        buf_done(&url);
    }
}

static void controls_and_line_breaks_are_refused(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"https://dest.example/\r\nSet-Cookie: a=b", "control character"},
        {"https://dest.example/\rx", "control character"},
        {"https://dest.example/\nx", "control character"},
        {"https://dest.example/\tx", "control character"},
        {"https://dest.example/\xe2\x80\xa8x", "line break"},
        {"https://dest.example/\xe2\x80\xa9x", "line break"},
        {"https://dest.example/\xc2\x85x", "control character"},
        {"https://dest.example/\xc2\x80x", "control character"},
        {"https://dest.example/\xc2\x9fx", "control character"},
        {"https://dest.example/\x7fx", "control character"},
        {"https://dest.example/\x01x", "control character"},
        {"ht\ntps://dest.example/", "control character"},
        {"https://de\tst.example/", "control character"},
    };
    expect_all_refused(rows, ARRAY_LEN(rows));
    check_refused("https://dest.example/\0x", 23, "control character");
    check_refused("https://dest.example\0.own.example/", 33, "control character");
}

static void other_bytes_than_utf8_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"\xC0\xAF", "\xE2\x28", "\xFF", "\xE9t\xE9", "\xC3", "\xE2\x82",
        "\xF0\x9F\x98", "\x80", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80",
        "\xF0\x80\x80\x80"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct buf url;
        buf_init(&url, 100);
        buf_printf(&url, "https://dest.example/%s", bad[i]);
        check_refused(buf_text(&url), url.len, "UTF-8");
        buf_putc(&url, 'x');
        check_refused(buf_text(&url), url.len, "UTF-8");
        buf_done(&url);
    }
}

static void other_schemes_are_refused(void **state) {
    (void)state;
    static const char scheme[] = "must begin with http:// or https://";
    static const struct row rows[] = {
        {"javascript:alert(1)", scheme},
        {"data:text/html,x", scheme},
        {"vbscript:x", scheme},
        {"file:///etc/passwd", scheme},
        {"ftp://dest.example/", scheme},
        {"mailto:a@example.com", scheme},
        {"dest.example/path", scheme},
        {"//dest.example/path", scheme},
        {"/path", scheme},
        {"https:dest.example", scheme},
        {"https:/dest.example", scheme},
        {"https:\\\\dest.example", scheme},
        {"https", scheme},
        {"https:/", scheme},
        {"https ://dest.example", scheme},
        {"hxxps://dest.example", scheme},
        {"view-source:https://dest.example", scheme},
        {"", "must not be empty"},
        {" \t\r\n", "must not be empty"},
    };
    expect_all_refused(rows, ARRAY_LEN(rows));
}

static void backslashes_before_the_query_are_refused(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"https://dest.example\\@other.example/", "backslash"},
        {"https://dest.example\\.other.example/", "backslash"},
        {"https://dest.example/a\\b", "backslash"},
        {"https://\\dest.example/", "backslash"},
        {"https://dest.example/a\\b?c#d", "backslash"},
    };
    expect_all_refused(rows, ARRAY_LEN(rows));
}

static void user_information_is_refused(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"https://user:secret@dest.example/", "user information"},
        {"https://dest.example@other.example/", "user information"},
        {"https://@dest.example/", "user information"},
        {"https://dest.example:80@other.example", "user information"},
        {"https://a@b@dest.example/", "user information"},
    };
    expect_all_refused(rows, ARRAY_LEN(rows));
}

static void own_hosts_are_refused(void **state) {
    (void)state;
    static const char own[] = "lead back to this service";
    static const struct row refused[] = {
        {"https://s.example/a2", own},
        {"http://s.example/a2", own},
        {"http://s.example:443/a2", own},
        {"https://s.example:80", own},
        {"https://S.Example./a3", own},
        {"https://s.example:/a3", own},
        {"https://s.example:00443?x", own},
        {"https://\xef\xbd\x93.example/", own}, // a full-width s
        {"https://s\xe3\x80\x82"
         "example/",
            own},
        {"https://go.example:8443/", own},
        {"https://b\xc3\xbc"
         "cher.example/",
            own},
        {"https://B\xc3\x9c"
         "CHER.example/",
            own},
        {"https://xn--bcher-kva.example/", own},
        {"https://XN--BCHER-KVA.example/", own},
        {"http://[::1]:8080/", own},
        {"http://[0:0::0.0.0.1]:08080/", own},
    };
    static const struct row stored[] = {
        SAME("https://s.example:8443/a2"),
        SAME("https://go.example/"),
        SAME("https://x.s.example/"),
        SAME("https://dest.example/?u=https://s.example/"),
        SAME("http://[::1]/"),
        SAME("https://bucher.example/"),
    };
    expect_all_refused(refused, ARRAY_LEN(refused));
    expect_all_stored(stored, ARRAY_LEN(stored));
}

static void check_length(size_t len, size_t expanding, const char *rule) {
    struct buf url;
    buf_init(&url, 100000);
    buf_puts(&url, "https://dest.example/");
    for (size_t i = 0; i < expanding; i++)
        buf_putc(&url, '|');
    while (url.len < len)
        buf_putc(&url, 'x');
    if (rule != NULL) {
        check_refused(buf_text(&url), url.len, rule);
    } else {
        struct buf out;
        buf_init(&out, TARGET_MAX);
        assert_int_equal(target_normalise(&rules, buf_text(&url), url.len, &out, NULL), STATUS_OK);
        assert_int_equal(out.len, len + 2 * expanding);
        buf_done(&out);
    }
    buf_done(&url);
}

static void at_most_8192_bytes_are_stored(void **state) {
    (void)state;
    check_length(8192, 0, NULL);
    check_length(8193, 0, "8192");
    check_length(8190, 1, NULL);
    check_length(8191, 1, "8192");
    check_length(5000, 2000, "8192");
    check_length(65536, 0, "8192");
}

static void only_stored_forms_are_sendable(void **state) {
    (void)state;
    static const char *const bad[] = {"", "http:", "javascript:alert(1)", "https://dest.example/a b",
        "https://dest.example/\r\nSet-Cookie: a=b", "https://dest.example/\n",
        "https://dest.example/\xc3\xa4", "https://dest.example/\x7f", "ftp://dest.example/"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(target_is_sendable(bad[i], strlen(bad[i])));
    assert_false(target_is_sendable("https://dest.example/\0", 22));
    assert_true(target_is_sendable("HTTPS://dest.example/%zz", 24));
    struct buf longest;
    buf_init(&longest, TARGET_MAX + 1);
    buf_puts(&longest, "https://dest.example/");
    while (longest.len <= TARGET_MAX)
        buf_putc(&longest, 'x');
    assert_true(target_is_sendable(buf_text(&longest), TARGET_MAX));
    assert_false(target_is_sendable(buf_text(&longest), TARGET_MAX + 1));
    buf_done(&longest);
}

static int set_up(void **state) {
    (void)state;
    struct buf why;
    buf_init(&why, 1000);
    bool made = target_rules_init(&rules, "https://s.example/",
        "go.example:8443, B\xc3\xbc"
        "cher.example [::1]:8080",
        &why);
    buf_done(&why);
    return made ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    target_rules_done(&rules);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_uris_are_stored_untouched),
        cmocka_unit_test(malformed_escapes_are_kept),
        cmocka_unit_test(what_a_uri_cannot_hold_is_encoded_once),
        cmocka_unit_test(ascii_white_space_is_trimmed),
        cmocka_unit_test(invisible_ends_are_refused),
        cmocka_unit_test(controls_and_line_breaks_are_refused),
        cmocka_unit_test(other_bytes_than_utf8_are_refused),
        cmocka_unit_test(other_schemes_are_refused),
        cmocka_unit_test(backslashes_before_the_query_are_refused),
        cmocka_unit_test(user_information_is_refused),
        cmocka_unit_test(own_hosts_are_refused),
        cmocka_unit_test(at_most_8192_bytes_are_stored),
        cmocka_unit_test(only_stored_forms_are_sendable),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
