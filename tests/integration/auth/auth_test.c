// SPDX-License-Identifier: MIT
#include "common/auth/auth.h"
#include "common/crypto/crypto.h"
#include "common/rpc/rpc.h"
#include "tests/support/test_db.h"

// cmocka.h needs these before it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct test_db *test;
static struct db *writer, *clicks;

static void make_stored_key(const char *id, const char *owner, const char *scope, char key[AUTH_KEY_TEXT]) {
    char hash[2 + AUTH_HASH_HEX] = "\\x";
    auth_make_key(key, hash + 2);
    const char *const params[] = {id, hash, owner, scope};
    struct db_rows *rows;
    assert_int_equal(
        STATUS_OK, db_call(writer, 0, "SELECT dunlin.key_create($1, $2, $3, $4)", 4, params, &rows));
    db_rows_free(rows);
}

static enum status check_as(
    struct db *db, const char *before_key, const char *key, struct auth_caller *out, struct problem *why) {
    struct rpc_context context = {0};
    (void)snprintf(context.authorization, sizeof context.authorization, "%s%s", before_key, key);
    const struct rpc_context *before = rpc_context_swap(&context);
    enum status status = auth_check(db, 0, out, why);
    (void)rpc_context_swap(before);
    return status;
}

static void test_keys_are_shaped_and_differ(void **state) {
    (void)state;
    char last[AUTH_KEY_TEXT] = "";
    for (int i = 0; i < 1000; i++) {
        char key[AUTH_KEY_TEXT];
        char hash[AUTH_HASH_HEX];
        auth_make_key(key, hash);
        assert_int_equal(46, strlen(key));
        assert_memory_equal("dk_", key, 3);
        assert_int_equal(
            43, strspn(key + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"));
        assert_string_not_equal(last, key);
        memcpy(last, key, sizeof key);
        uint8_t digest[CRYPTO_HASH];
        char expected[AUTH_HASH_HEX];
        crypto_blake2b(digest, key, strlen(key));
        crypto_hex(expected, digest, sizeof digest);
        assert_string_equal(expected, hash);
    }
}

static void test_a_known_key_is_its_owners(void **state) {
    (void)state;
    char key[AUTH_KEY_TEXT];
    make_stored_key("key-1", "team.a", "links", key);
    struct auth_caller caller;
    struct problem why;
    assert_int_equal(STATUS_OK, check_as(writer, "Bearer ", key, &caller, &why));
    assert_string_equal("team.a", caller.owner);
    assert_string_equal("key-1", caller.key_id);
    assert_int_equal(AUTH_LINKS, caller.scope);
    // The clicks service asks with its own role; the scheme's letter case and the blanks after it are free.
    assert_int_equal(STATUS_OK, check_as(clicks, "bEARER   ", key, &caller, &why));

    make_stored_key("key-2", "ops", "operator", key);
    assert_int_equal(STATUS_OK, check_as(writer, "Bearer ", key, &caller, &why));
    assert_string_equal("ops", caller.owner);
    assert_int_equal(AUTH_OPERATOR, caller.scope);
}

static void test_others_are_refused(void **state) {
    (void)state;
    char key[AUTH_KEY_TEXT];
    make_stored_key("key-3", "me", "links", key);
    static const char *const wrong[] = {
        "", "Bearer", "Basic ", " Bearer ", "Bearer x", "Bearer\t", "Bearer Bearer ", "Bearer  \t"};
    struct auth_caller caller = {.owner = "untouched"};
    struct problem why;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(STATUS_UNAUTHENTICATED, check_as(writer, wrong[i], key, &caller, &why));
        assert_string_equal("API_KEY_INVALID", why.reason);
        assert_int_equal(STATUS_UNAUTHENTICATED, why.status);
    }
    assert_int_equal(STATUS_UNAUTHENTICATED, check_as(writer, "Bearer ", "", &caller, &why));
    char longer[AUTH_KEY_TEXT + 2];
    (void)snprintf(longer, sizeof longer, "%sx", key);
    assert_int_equal(STATUS_UNAUTHENTICATED, check_as(writer, "Bearer ", longer, &caller, &why));
    assert_int_equal(STATUS_UNAUTHENTICATED, check_as(writer, "", "", &caller, &why));
    assert_string_equal("API_KEY_MISSING", why.reason);
    // Well-formed, but nobody's; and one whose last digit was changed.
    char other[AUTH_KEY_TEXT];
    char hash[AUTH_HASH_HEX];
    auth_make_key(other, hash);
    assert_int_equal(STATUS_UNAUTHENTICATED, check_as(writer, "Bearer ", other, &caller, &why));
    assert_string_equal("API_KEY_INVALID", why.reason);
    key[45] = key[45] == '0' ? '1' : '0';
    assert_int_equal(STATUS_UNAUTHENTICATED, check_as(writer, "Bearer ", key, &caller, &why));
    assert_string_equal("untouched", caller.owner);
    // The problem never shows the key.
    assert_null(strstr(why.message, key + 3));
}

static void test_a_revoked_key_is_refused(void **state) {
    (void)state;
    char key[AUTH_KEY_TEXT];
    make_stored_key("key-4", "me", "links", key);
    struct auth_caller caller;
    struct problem why;
    assert_int_equal(STATUS_OK, check_as(writer, "Bearer ", key, &caller, &why));
    assert_string_equal("t", test_db_text(writer, "SELECT dunlin.key_revoke('key-4')"));
    assert_int_equal(STATUS_UNAUTHENTICATED, check_as(writer, "Bearer ", key, &caller, &why));
}

static void test_no_database_is_no_verdict(void **state) {
    (void)state;
    char key[AUTH_KEY_TEXT];
    char hash[AUTH_HASH_HEX];
    auth_make_key(key, hash);
    struct db *nowhere = db_create(&(struct db_options){
        .conninfo = "postgresql://nobody@127.0.0.1:1/nothing", .application = "dunlin-test"});
    struct auth_caller caller;
    struct problem why;
    assert_int_equal(STATUS_UNAVAILABLE, check_as(nowhere, "Bearer ", key, &caller, &why));
    assert_string_equal("POSTGRES_UNAVAILABLE", why.reason);
    db_free(nowhere);
}

static void test_owners_and_scopes(void **state) {
    (void)state;
    char longest[AUTH_OWNER_MAX + 2];
    memset(longest, 'a', sizeof longest);
    longest[AUTH_OWNER_MAX + 1] = '\0';
    assert_false(auth_owner_is_valid(longest));
    longest[AUTH_OWNER_MAX] = '\0';
    assert_true(auth_owner_is_valid(longest));
    assert_true(auth_owner_is_valid("A-z_0.9"));
    assert_false(auth_owner_is_valid(""));
    assert_false(auth_owner_is_valid("a b"));
    assert_false(auth_owner_is_valid("a/b"));
    assert_false(auth_owner_is_valid("\xc3\xa4"));
    enum auth_scope scope = AUTH_LINKS;
    assert_true(auth_scope_parse("operator", &scope));
    assert_int_equal(AUTH_OPERATOR, scope);
    assert_false(auth_scope_parse("Links", &scope));
    assert_false(auth_scope_parse("", &scope));
    assert_int_equal(AUTH_OPERATOR, scope);
    assert_true(auth_scope_parse("links", &scope));
    assert_string_equal("links", auth_scope_name(scope));
    assert_string_equal("operator", auth_scope_name(AUTH_OPERATOR));
}

static int set_up(void **state) {
    (void)state;
    test = test_db_create();
    writer = test_db_open(test, "writer");
    clicks = test_db_open(test, "clicks");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    db_free(writer);
    db_free(clicks);
    test_db_drop(test);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_shaped_and_differ),
        cmocka_unit_test(test_a_known_key_is_its_owners),
        cmocka_unit_test(test_others_are_refused),
        cmocka_unit_test(test_a_revoked_key_is_refused),
        cmocka_unit_test(test_no_database_is_no_verdict),
        cmocka_unit_test(test_owners_and_scopes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
