// SPDX-License-Identifier: MIT
#include "common/target/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LABEL_63 "abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklmnopqrstuvwxyz"
// 253 bytes: three labels of 63, three dots, and 61 more
#define NAME_253                                                                                             \
    LABEL_63 "." LABEL_63 "." LABEL_63 ".abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklmnopqrstuvwx"

static const struct target_rules no_rules;

// The stored host (and port) of "http://AUTHORITY/"; "" where it is refused, with the rule in `why`.
static void normalise(const char *authority, char out[600], struct problem *why) {
    char url[2000];
    struct buf stored;
    int len = snprintf(url, sizeof url, "http://%s/", authority);
    assert_true(len > 0 && (size_t)len < sizeof url);
    buf_init(&stored, TARGET_MAX);
    memset(why, 0, sizeof *why);
    out[0] = '\0';
    if (target_normalise(&no_rules, url, (size_t)len, &stored, why) == STATUS_OK) {
        assert_memory_equal(stored.data, "http://", 7);
        assert_int_equal(stored.data[stored.len - 1], '/');
        (void)snprintf(out, 600, "%.*s", (int)(stored.len - 8), stored.data + 7);
    }
    buf_done(&stored);
}

static void expect_stored(const char *authority, const char *expected) {
    char stored[600];
    struct problem why;
    normalise(authority, stored, &why);
    if (strcmp(stored, expected) != 0)
        fail_msg("%s: got \"%s\" %s", authority, stored, why.violations[0].rule);
}

static void expect_refused(const char *authority, const char *rule) {
    char stored[600];
    struct problem why;
    normalise(authority, stored, &why);
    if (stored[0] != '\0' || strstr(why.violations[0].rule, rule) == NULL)
        fail_msg("%s: got \"%s\" %s", authority, stored, why.violations[0].rule);
}

static void names_stay_as_sent(void **state) {
    (void)state;
    static const char *const hosts[] = {"dest.example", "Dest.EXAMPLE", "dest.example.", "a_b.example",
        "_dmarc.dest.example", "localhost", "x", "1.example", "r3---sn.example", "a--b.example",
        "1password.example", "0xg.0x1g", "127.0.0.1a", NAME_253};
    assert_int_equal(strlen(NAME_253), 253);
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        expect_stored(hosts[i], hosts[i]);
    expect_stored(LABEL_63 ".example", LABEL_63 ".example");
    expect_stored(NAME_253 ".", NAME_253 ".");
}

static void other_names_are_refused(void **state) {
    (void)state;
    static const char *const hosts[] = {"a..b", ".dest.example", "dest.example..", ".", "..", "-a.example",
        "a-.example", "a.-", "dest%2eexample", "%64est.example", "dest.example%00", "a b.example", "a<b",
        "a>b", "a\"b", "a{b}", "a|b", "a^b", "a`b", "a+b", "a,b", "a;b", "a&b", "a=b", "a!b", "a$b", "a'b",
        "(a)", "a*b", "*.example", "a~b", "a[b]"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        expect_refused(hosts[i], "labels of letters, digits");
    expect_refused("", "must have a host");
    expect_refused(":80", "must have a host");
    expect_refused(LABEL_63 "x.example", "at most 63");
    expect_refused("a" NAME_253, "at most 253");
    expect_refused("a" NAME_253 ".", "at most 253");
}

static void unicode_names_become_a_labels(void **state) {
    (void)state;
    static const struct {
        const char *sent, *stored;
    } rows[] = {
        {"z\xc3\xbcrich.example", "xn--zrich-kva.example"},
        {"Z\xc3\x9cRICH.Example:08080", "xn--zrich-kva.example:08080"},
        {"zu\xcc\x88rich.example", "xn--zrich-kva.example"}, // decomposed
        {"fa\xc3\x9f.example", "xn--fa-hia.example"},        // non-transitional: not "fass"
        {"\xe4\xb8\xad\xe5\x9b\xbd", "xn--fiqs8s"},
        {"dest\xe3\x80\x82"
         "example\xe3\x80\x82",
            "dest.example."}, // ideographic full stops
        {"\xef\xbc\xa4"
         "est.example",
            "dest.example"},                                         // full-width D
        {"\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "127.0.0.1"}, // full-width 127
        {"a_b.z\xc3\xbcrich", "a_b.xn--zrich-kva"},
        // Look-alikes are stored, and seen as what they are.
        {"\xd0\xb0\xd1\x80\xd1\x80\xd3\x8f\xd0\xb5.example", "xn--80ak6aa92e.example"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect_stored(rows[i].sent, rows[i].stored);
}

static void unicode_names_are_judged_after_mapping(void **state) {
    (void)state;
    expect_refused("dest.example\xef\xbc\x8f.z\xc3\xbcrich", "labels of letters"); // full-width slash
    expect_refused("a\xe2\x84\x80"
                   "b.example",
        "labels of letters");                                    // U+2100 maps to a/c
    expect_refused("\xef\xbc\x85.example", "labels of letters"); // full-width percent sign
    expect_refused("user\xef\xbc\xa0"
                   "dest.example",
        "labels of letters"); // full-width @
    expect_refused("dest.example\xef\xbc\x9a"
                   "80",
        "labels of letters"); // full-width colon
    expect_refused("\xe3\x80\x82"
                   "com",
        "labels of letters"); // an empty label
    expect_refused("z\xc3\xbcrich..example", "labels of letters");
    expect_refused("a b.z\xc3\xbcrich", "labels of letters");
    expect_refused("\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.1", "must be an IPv4 address"); // 127.1
    expect_refused("\xef\xbc\x90x7f.1", "must be an IPv4 address");                      // 0x7f.1
    expect_refused("\xe2\x91\xa0", "must be an IPv4 address");                           // a circled 1
    expect_refused("-z\xc3\xbcrich.example", "internationalised");
    expect_refused("\xf0\x9f\x98\x80.example", "internationalised"); // IDNA 2008 has no emoji
    expect_refused("a\xe2\x80\xae"
                   "b.example",
        "internationalised");
    expect_refused("\xc2\xad", "internationalised"); // a soft hyphen maps to nothing
}

static void a_labels_must_be_valid(void **state) {
    (void)state;
    static const char *const good[] = {"xn--zrich-kva.example", "XN--Zrich-KVA.example",
        "a.xn--fa-hia.example.", "xn--80ak6aa92e.example", "xn--fiqs8s"};
    static const char *const bad[] = {"xn--a.example", "a.xn--zzzzzz99999.example", "xn--abc-x.example",
        "xn--a-ecp.example", "xn--0000h.example"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        expect_stored(good[i], good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        expect_refused(bad[i], "internationalised");
}

static void hosts_that_end_in_a_number_are_ipv4(void **state) {
    (void)state;
    static const char *const good[] = {"127.0.0.1", "0.0.0.0", "255.255.255.255", "192.0.2.10:80"};
    static const char *const bad[] = {"127.1", "2130706433", "0x7f.1", "0x7f000001", "0X7F000001",
        "0177.0.0.1", "127.0.0.01", "127.0.0.256", "1.2.3", "1.2.3.4.5", "1.2.3.4.", "1.2.3.",
        "dest.example.0", "dest.example.1.", "dest.0x", "dest.0xfF", "a.09", "999999999999999999999999", "0",
        "0x"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        expect_stored(good[i], good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        expect_refused(bad[i], "must be an IPv4 address");
}

static void brackets_hold_ipv6(void **state) {
    (void)state;
    static const char *const good[] = {"[::1]", "[::]", "[2001:DB8::1]:8080", "[2001:db8:0:0:0:0:0:1]",
        "[::ffff:192.0.2.1]", "[0000:0000:0000:0000:0000:ffff:192.168.100.100]:"};
    static const char *const bad[] = {"[", "[]", "]", "[::1", "[:::1]", "[::1%25eth0]", "[::1%eth0]",
        "[127.0.0.1]", "[v1.a:b]", "[dest.example]", "[1:2:3:4:5:6:7:8:9]", "[12345::]", "[::g]", "[::1 ]",
        "[[::1]]", "[0000:0000:0000:0000:0000:ffff:192.168.100.1000]", "[z\xc3\xbcrich]"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        expect_stored(good[i], good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        expect_refused(bad[i], bad[i][0] == '[' ? "IPv6" : "labels of letters");
    expect_refused("[::1]x", "port");
    expect_refused("[::1].", "port");
    expect_refused("::1", "must have a host");
    expect_refused("2001:db8::1", "must be an IPv4 address");
    expect_refused("db8::1", "port");
    expect_refused("xn--.example", "labels of letters");
}

static void ports_are_1_to_65535(void **state) {
    (void)state;
    static const char *const good[] = {"dest.example:", "dest.example:1", "dest.example:65535",
        "dest.example:0080", "dest.example:00000000000000000000443", "192.0.2.1:", "[::1]:1"};
    static const char *const bad[] = {"dest.example:0", "dest.example:000", "dest.example:65536",
        "dest.example:99999", "dest.example:4294967376", "dest.example:18446744073709551696",
        "dest.example:80a", "dest.example:+80", "dest.example:-1", "dest.example: 80", "dest.example:80:80",
        "dest.example::80", "dest.example:\xef\xbc\x98"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        expect_stored(good[i], good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        expect_refused(bad[i], "1 to 65535");
}

static void expect_own(const struct target_rules *rules, size_t at, const char *host, int port) {
    assert_true(at < rules->own_count);
    assert_string_equal(rules->own[at].host, host);
    assert_int_equal(rules->own[at].port, port);
}

static void rules_list_our_own_hosts(void **state) {
    (void)state;
    struct target_rules rules;
    struct buf why;
    buf_init(&why, 1000);
    assert_true(target_rules_init(&rules, "http://127.0.0.1:8080", "", &why));
    assert_int_equal(rules.own_count, 1);
    expect_own(&rules, 0, "127.0.0.1", 8080);
    assert_string_equal(rules.public_url, "http://127.0.0.1:8080");
    target_rules_done(&rules);
    assert_true(target_rules_init(&rules,
        "https://B\xc3\x9c"
        "CHER.example./",
        ",, Go.Example. ,a:8080 [::0:1]", &why));
    assert_int_equal(rules.own_count, 4);
    expect_own(&rules, 0, "xn--bcher-kva.example", 80);
    expect_own(&rules, 1, "go.example", 80);
    expect_own(&rules, 2, "a", 8080);
    expect_own(&rules, 3, "::1", 80);
    assert_string_equal(rules.public_url, "https://xn--bcher-kva.example.");
    static const char *const served[] = {"xn--bcher-kva.example", "XN--Bcher-kva.Example.:443", "go.EXAMPLE",
        "go.example:1", "go.example:", "a", "a:0", "[::1]", "[0:0::1]:8080"};
    for (size_t i = 0; i < ARRAY_LEN(served); i++)
        assert_true(target_rules_serve(&rules, served[i]));
    static const char *const others[] = {
        "", ":80", "b", "xa", "a..", "go.example.evil.example", "::1", "[::2]", "[::1", "127.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(target_rules_serve(&rules, others[i]));
    target_rules_done(&rules);
    // Where PUBLIC_URL has a port of its own, a bare host is ours there and at the front door.
    assert_true(target_rules_init(&rules, "http://127.0.0.1:8080", "s.example", &why));
    assert_int_equal(rules.own_count, 3);
    expect_own(&rules, 1, "s.example", 80);
    expect_own(&rules, 2, "s.example", 8080);
    target_rules_done(&rules);
    target_rules_done(&rules);
    assert_int_equal(why.len, 0);
    buf_done(&why);
}

static void bad_settings_are_told(void **state) {
    (void)state;
    static const struct {
        const char *url, *hosts, *why;
    } rows[] = {
        {"", "", "PUBLIC_URL: The URL must begin with http"},
        {"s.example", "", "PUBLIC_URL: The URL must begin with http"},
        {"http://", "", "PUBLIC_URL: The URL must have a host."},
        {"http://s.example/x", "", "PUBLIC_URL: The URL must have no path"},
        {"http://s.example//", "", "PUBLIC_URL: The URL must have no path"},
        {"http://s.example?", "", "PUBLIC_URL: The URL must have no path"},
        {"http://s.example#", "", "PUBLIC_URL: The URL must have no path"},
        {"http://s.example:0", "", "PUBLIC_URL: The port"},
        {"http://u@s.example", "", "PUBLIC_URL: The URL must not hold user information"},
        {" http://s.example", "", "PUBLIC_URL: The URL must begin with http"},
        {"http://s.example ", "", "PUBLIC_URL: The host must consist"},
        {"http://s.example", "http://go.example", "ALLOWED_HOSTS, \"http://go.example\": The port"},
        {"http://s.example", "a, b..c", "ALLOWED_HOSTS, \"b..c\": The host must consist"},
        {"http://s.example", "1.2.3", "ALLOWED_HOSTS, \"1.2.3\": A host that ends in a number"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct target_rules rules = {.own_count = 42};
        struct buf why;
        buf_init(&why, 1000);
        assert_false(target_rules_init(&rules, rows[i].url, rows[i].hosts, &why));
        if (strncmp(buf_text(&why), rows[i].why, strlen(rows[i].why)) != 0)
            fail_msg("%s %s: %s", rows[i].url, rows[i].hosts, buf_text(&why));
        assert_int_equal(rules.own_count, 42);
        buf_done(&why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_stay_as_sent),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(unicode_names_become_a_labels),
        cmocka_unit_test(unicode_names_are_judged_after_mapping),
        cmocka_unit_test(a_labels_must_be_valid),
        cmocka_unit_test(hosts_that_end_in_a_number_are_ipv4),
        cmocka_unit_test(brackets_hold_ipv6),
        cmocka_unit_test(ports_are_1_to_65535),
        cmocka_unit_test(rules_list_our_own_hosts),
        cmocka_unit_test(bad_settings_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
