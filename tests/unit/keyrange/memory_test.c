// SPDX-License-Identifier: MIT
#include "services/keyrange/memory.h"
#include "tests/support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t key_a[CODES_FINGERPRINT] = {1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t key_b[CODES_FINGERPRINT] = {8, 7, 6, 5, 4, 3, 2, 1};
static char dir[64];
static char path[96];

static struct memory *open_memory(void) {
    struct memory *memory = NULL;
    struct problem why = {0};
    assert_int_equal(memory_open(path, &memory, &why), STATUS_OK);
    return memory;
}

static void write_text(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void read_text(char out[1024]) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    out[fread(out, 1, 1023, file)] = '\0';
    assert_int_equal(fclose(file), 0);
}

static void what_is_higher_stays(void **state) {
    (void)state;
    struct memory *memory = NULL;
    struct known known = {0};
    assert_int_equal(memory_open("", &memory, NULL), STATUS_OK);
    memory_read(memory, key_a, &known);
    assert_true(known_is_empty(&known));
    known.counter[2] = 100;
    known.ceiling[6] = 5;
    assert_true(memory_learn(memory, key_a, &known));
    known.counter[2] = 50;
    known.ceiling[6] = 7;
    assert_true(memory_learn(memory, key_a, &known));
    struct known read = {.counter[2] = 99, .counter[3] = 4};
    memory_read(memory, key_a, &read);
    assert_int_equal(read.counter[2], 100);
    assert_int_equal(read.counter[3], 4);
    assert_int_equal(read.ceiling[6], 7);
    memory_close(memory);
}

static void a_position_belongs_to_its_jumps(void **state) {
    (void)state;
    struct known into = {.jumps = 5, .position = 100};
    known_merge(&into, &(struct known){.jumps = 4, .position = 900});
    assert_int_equal(into.position, 100);
    known_merge(&into, &(struct known){.jumps = 5, .position = 101});
    assert_int_equal(into.position, 101);
    known_merge(&into, &(struct known){.jumps = 6, .position = 7});
    assert_int_equal(into.jumps, 6);
    assert_int_equal(into.position, 7);
}

static void another_key_has_another_memory(void **state) {
    (void)state;
    struct memory *memory = NULL;
    const struct known known = {.counter[0] = 100};
    const struct known low = {.counter[0] = 3};
    assert_int_equal(memory_open("", &memory, NULL), STATUS_OK);
    assert_true(memory_learn(memory, key_a, &known));
    struct known read = {0};
    memory_read(memory, key_b, &read);
    assert_true(known_is_empty(&read));
    assert_true(memory_learn(memory, key_b, &low));
    memory_read(memory, key_b, &read);
    assert_int_equal(read.counter[0], 3);
    memory_close(memory);
}

static void the_file_outlives_the_process(void **state) {
    (void)state;
    char text[1024];
    (void)unlink(path);
    struct memory *memory = open_memory();
    assert_int_equal(access(path, F_OK), -1);
    const struct known known = {
        .counter[0] = 1000, .ceiling[0] = 2281701376, .ceiling[6] = UINT64_MAX, .jumps = 3, .position = 77};
    assert_true(memory_learn(memory, key_a, &known));
    read_text(text);
    assert_string_equal(text,
        "dunlin keyrange memory 1\nkey 0102030405060708\nlog 3 77\n0 1000 2281701376\n1 0 0\n2 0 0\n"
        "3 0 0\n4 0 0\n5 0 0\n6 0 18446744073709551615\n");
    memory_close(memory);
    memory = open_memory();
    struct known read = {0};
    memory_read(memory, key_a, &read);
    assert_memory_equal(&read, &known, sizeof read);
    // Nothing grew: nothing is written.
    assert_int_equal(unlink(path), 0);
    assert_true(memory_learn(memory, key_a, &known));
    assert_int_equal(access(path, F_OK), -1);
    memory_close(memory);
}

static void a_file_that_is_not_ours_is_refused(void **state) {
    (void)state;
#define HEAD "dunlin keyrange memory 1\nkey 0102030405060708\nlog 0 0\n"
#define SLOTS_1_TO_5 "1 0 0\n2 0 0\n3 0 0\n4 0 0\n5 0 0\n"
    static const char *const bad[] = {
        "",
        "\n",
        "key 0102030405060708",
        "dunlin keyrange memory 1\nkey ",
        "dunlin keyrange memory 2\nkey 0102030405060708\nlog 0 0\n0 0 0\n" SLOTS_1_TO_5 "6 0 0\n",
        "dunlin keyrange memory 1\nkey 0102030405060708\n0 0 0\n" SLOTS_1_TO_5 "6 0 0\n",
        "dunlin keyrange memory 1\nkey 010203040506070\nlog 0 0\n0 0 0\n" SLOTS_1_TO_5 "6 0 0\n",
        (HEAD "0 0 0\n" SLOTS_1_TO_5),
        (HEAD "0 0 0\n" SLOTS_1_TO_5 "6 0 0"),
        (HEAD "0 0 0\n" SLOTS_1_TO_5 "6 0 0\n7 0 0\n"),
        (HEAD "0 -1 0\n" SLOTS_1_TO_5 "6 0 0\n"),
        (HEAD "0 01 0\n" SLOTS_1_TO_5 "6 0 0\n"),
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct memory *memory = NULL;
        struct problem why = {0};
        write_text(bad[i]);
        if (memory_open(path, &memory, &why) != STATUS_FAILED_PRECONDITION)
            fail_msg("taken for ours: %s", bad[i]);
        assert_null(memory);
        assert_string_equal(why.reason, "BAD_SETTING");
    }
    assert_int_equal(unlink(path), 0);
}

static void a_write_that_fails_is_told(void **state) {
    (void)state;
    struct memory *memory = NULL;
    struct problem why = {0};
    const struct known known = {.counter[0] = 1};
    char nowhere[128];
    (void)snprintf(nowhere, sizeof nowhere, "%s/none/memory", dir);
    assert_int_equal(memory_open(nowhere, &memory, &why), STATUS_OK);
    assert_false(memory_learn(memory, key_a, &known));
    struct known read = {0};
    memory_read(memory, key_a, &read);
    assert_int_equal(read.counter[0], 1);
    memory_close(memory);
    memory_close(NULL);
}

static int make_dir(void **state) {
    (void)state;
    crypto_init();
    (void)snprintf(dir, sizeof dir, "/tmp/dunlin-memory-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/memory", dir);
    return 0;
}

static int remove_dir(void **state) {
    (void)state;
    return rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_higher_stays),
        cmocka_unit_test(a_position_belongs_to_its_jumps),
        cmocka_unit_test(another_key_has_another_memory),
        cmocka_unit_test(the_file_outlives_the_process),
        cmocka_unit_test(a_file_that_is_not_ours_is_refused),
        cmocka_unit_test(a_write_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
