// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/config/config.h"
#include "common/log/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEST_CONFIG(F)                                                                                       \
    F(TEXT, listen, "T_LISTEN", "tcp://127.0.0.1:7001", 1, 30, "URL", 0, "Where RPC is served.")             \
    F(TEXT, note, "T_NOTE", "", 3, 0, "", 0, "A text that may be missing.")                                  \
    F(TEXT, key, "T_KEY", "", 4, 8, "hex digits", CONFIG_SECRET | CONFIG_REQUIRED, "A secret | a key.")      \
    F(TEXT, url, "T_URL", "", 0, 4096, "URL", CONFIG_SECRET, "A secret that may be missing.")                \
    F(INT, workers, "T_WORKERS", "2", 1, 64, "threads", 0,                                                   \
        "How many threads serve requests, each with a connection of its own, so that the sum over the "      \
        "fleet stays below what the database was configured for by those who run it.")                       \
    F(INT, shift, "T_SHIFT", "-1", 0, 0, "", 0, "A number without bounds.")                                  \
    F(BOOL, strict, "T_STRICT", "false", 0, 0, "", 0, "Whether to be strict.")                               \
    F(CHOICE, source, "T_SOURCE", "range", 0, 0, "range|random|hash", 0, "Where codes come from.")
struct test_config {
    TEST_CONFIG(CONFIG_MEMBER)
};
#define CONFIG_STRUCT test_config
static const struct config_field fields[] = {TEST_CONFIG(CONFIG_ROW)};

static struct test_config config;
static const struct config_section section = {"test", fields, ARRAY_LEN(fields), &config};

static int reset(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        char file[64];
        (void)snprintf(file, sizeof file, "%s_FILE", fields[i].name);
        (void)unsetenv(fields[i].name);
        (void)unsetenv(file);
    }
    (void)setenv("T_KEY", "c0ffee", 1);
    config = (struct test_config){0};
    return 0;
}

static void assert_loads(void) {
    struct buf why;
    buf_init(&why, 4096);
    if (!config_load(&section, 1, &why))
        fail_msg("%s", buf_text(&why));
    assert_int_equal(why.len, 0);
    buf_done(&why);
}

static void assert_refused(const char *expected) {
    struct buf why;
    buf_init(&why, 4096);
    assert_false(config_load(&section, 1, &why));
    assert_string_equal(buf_text(&why), expected);
    buf_done(&why);
}

static void test_takes_defaults(void **state) {
    (void)state;
    assert_loads();
    assert_string_equal(config.listen, "tcp://127.0.0.1:7001");
    assert_string_equal(config.note, "");
    assert_string_equal(config.key, "c0ffee");
    assert_string_equal(config.url, "");
    assert_int_equal(config.workers, 2);
    assert_int_equal(config.shift, -1);
    assert_false(config.strict);
    assert_string_equal(config.source, "range");
}

static void test_takes_the_environment(void **state) {
    (void)state;
    (void)setenv("T_LISTEN", "ipc:///tmp/x", 1);
    (void)setenv("T_NOTE", "h\xC3\xBC", 1);
    (void)setenv("T_WORKERS", "64", 1);
    (void)setenv("T_SHIFT", "-9223372036854775808", 1);
    (void)setenv("T_STRICT", "true", 1);
    (void)setenv("T_SOURCE", "hash", 1);
    assert_loads();
    (void)setenv("T_LISTEN", "changed later", 1);
    assert_string_equal(config.listen, "ipc:///tmp/x");
    assert_string_equal(config.note, "h\xC3\xBC");
    assert_int_equal(config.workers, 64);
    assert_true(config.shift == INT64_MIN);
    assert_true(config.strict);
    assert_string_equal(config.source, "hash");
}

static void test_refuses_bad_values(void **state) {
    static const struct {
        const char *name;
        const char *value;
        const char *why;
    } cases[] = {
        {"T_LISTEN", "", "T_LISTEN=\"\": must be 1 to 30 bytes long"},
        {"T_LISTEN", "0123456789012345678901234567890",
            "T_LISTEN=\"0123456789012345678901234567890\": must be 1 to 30 bytes long"},
        {"T_LISTEN", "a\nb", "T_LISTEN=\"a\\nb\": must not hold control characters"},
        {"T_NOTE", "ab", "T_NOTE=\"ab\": must be at least 3 bytes long"},
        {"T_KEY", "", "T_KEY: must be set and not empty"},
        {"T_KEY", "abc", "T_KEY: must be 4 to 8 bytes long"},
        {"T_KEY", "ab\tcd", "T_KEY: must not hold control characters"},
        {"T_WORKERS", "0", "T_WORKERS=\"0\": must be a whole number from 1 to 64"},
        {"T_WORKERS", "65", "T_WORKERS=\"65\": must be a whole number from 1 to 64"},
        {"T_WORKERS", "", "T_WORKERS=\"\": must be a whole number from 1 to 64"},
        {"T_WORKERS", "-", "T_WORKERS=\"-\": must be a whole number from 1 to 64"},
        {"T_WORKERS", "2x", "T_WORKERS=\"2x\": must be a whole number from 1 to 64"},
        {"T_WORKERS", " 2", "T_WORKERS=\" 2\": must be a whole number from 1 to 64"},
        {"T_WORKERS", "0x2", "T_WORKERS=\"0x2\": must be a whole number from 1 to 64"},
        {"T_WORKERS", "2.0", "T_WORKERS=\"2.0\": must be a whole number from 1 to 64"},
        {"T_SHIFT", "9223372036854775808",
            "T_SHIFT=\"9223372036854775808\": must be a whole number of 64 bits"},
        {"T_STRICT", "yes", "T_STRICT=\"yes\": must be true or false"},
        {"T_STRICT", "", "T_STRICT=\"\": must be true or false"},
        {"T_SOURCE", "ran", "T_SOURCE=\"ran\": must be one of range|random|hash"},
        {"T_SOURCE", "range|random", "T_SOURCE=\"range|random\": must be one of range|random|hash"},
        {"T_SOURCE", "", "T_SOURCE=\"\": must be one of range|random|hash"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        (void)reset(state);
        (void)setenv(cases[i].name, cases[i].value, 1);
        assert_refused(cases[i].why);
    }
    (void)reset(state);
    (void)unsetenv("T_KEY");
    assert_refused("T_KEY: must be set and not empty");
}

static void test_cuts_a_long_value(void **state) {
    (void)state;
    char value[5001];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    (void)setenv("T_WORKERS", value, 1);
    struct buf why;
    buf_init(&why, 4096);
    assert_false(config_load(&section, 1, &why));
    assert_int_equal(strlen("T_WORKERS=\"\"...: must be a whole number from 1 to 64") + 100, why.len);
    buf_done(&why);
}

// A file in memory; its path works for this process alone.
static int memory_file(const char *content, size_t len, char path[64]) {
    int fd = memfd_create("secret", 0);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, len), len);
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void test_reads_secrets_from_files(void **state) {
    (void)state;
    static const struct {
        const char *content;
        const char *key; // NULL: refused
    } cases[] = {
        {"deadbeef", "deadbeef"},
        {"deadbeef\n", "deadbeef"},
        {"deadbeef\r\n", "deadbeef"},
        {" beef ", " beef "},
        {"dead\n\n", NULL},
        {"abc\n", NULL},
        {"", NULL},
        {"\n", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[64];
        int fd = memory_file(cases[i].content, strlen(cases[i].content), path);
        (void)unsetenv("T_KEY");
        (void)setenv("T_KEY_FILE", path, 1);
        struct buf why;
        buf_init(&why, 4096);
        assert_int_equal(config_load(&section, 1, &why), cases[i].key != NULL);
        if (cases[i].key != NULL)
            assert_string_equal(config.key, cases[i].key);
        else
            assert_int_equal(strncmp(buf_text(&why), "T_KEY: must ", 12), 0);
        buf_done(&why);
        (void)close(fd);
    }
}

static void test_refuses_bad_secret_files(void **state) {
    (void)state;
    (void)setenv("T_KEY_FILE", "/nonexistent/key", 1);
    assert_refused("T_KEY_FILE=\"/nonexistent/key\": is set beside the setting itself; set one of the two");
    (void)unsetenv("T_KEY");
    assert_refused("T_KEY_FILE=\"/nonexistent/key\": can't be opened: No such file or directory");
    (void)setenv("T_KEY_FILE", "/", 1);
    assert_refused("T_KEY_FILE=\"/\": can't be read");
    (void)setenv("T_KEY_FILE", "/dev/zero", 1);
    assert_refused("T_KEY_FILE=\"/dev/zero\": is larger than 64 KB");
    char path[64];
    int fd = memory_file("dea\0beef", 8, path);
    (void)setenv("T_KEY_FILE", path, 1);
    assert_refused("T_KEY: must not hold control characters");
    (void)close(fd);
    // What is no secret has no file.
    (void)reset(state);
    (void)setenv("T_NOTE_FILE", "/nonexistent/note", 1);
    assert_loads();
}

static char *print(void (*printer)(FILE *, const struct config_section *, size_t)) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    printer(out, &section, 1);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_help_fits_its_width(void **state) {
    (void)state;
    char *text = print(config_print_help);
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n") + 1)
        assert_in_range(strcspn(at, "\n"), 0, 110);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        assert_non_null(strstr(text, fields[i].name));
    assert_non_null(strstr(text, "test:\n  T_LISTEN                      Where RPC is served.\n"));
    assert_non_null(strstr(text, "[URL, 1 to 30 bytes; default tcp://127.0.0.1:7001]"));
    assert_non_null(strstr(text, "[threads, 1 to 64; default 2]"));
    assert_non_null(strstr(text, "[range, random or hash; default range]"));
    assert_non_null(strstr(text, "T_KEY_FILE"));
    assert_null(strstr(text, "T_NOTE_FILE"));
    free(text);
}

static void test_markdown_is_one_row_a_setting(void **state) {
    (void)state;
    char *text = print(config_print_markdown);
    assert_non_null(strstr(text, "## test\n\n| variable | value | default | meaning |\n|---|---|---|---|\n"));
    assert_non_null(strstr(
        text, "\n| `T_LISTEN` | URL, 1 to 30 bytes | `tcp://127.0.0.1:7001` | Where RPC is served. |\n"));
    assert_non_null(strstr(text, "| `T_KEY` | hex digits, 4 to 8 bytes; secret, or the path of a file that "
                                 "holds it in `T_KEY_FILE` | required | A secret \\| a key. |\n"));
    assert_non_null(
        strstr(text, "| `T_SOURCE` | range, random or hash | `range` | Where codes come from. |\n"));
    assert_non_null(strstr(text, "| `T_NOTE` | text, at least 3 bytes | empty by default |"));
    free(text);
}

static void test_log_masks_secrets(void **state) {
    (void)state;
    (void)setenv("T_KEY", "hunter22", 1);
    assert_loads();
    int saved = dup(STDERR_FILENO);
    int memory = memfd_create("log", 0);
    assert_true(saved >= 0 && memory >= 0 && dup2(memory, STDERR_FILENO) >= 0);
    config_log(&section, 1);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    char text[4096] = "";
    assert_true(pread(memory, text, sizeof text - 1, 0) > 0);
    (void)close(saved);
    (void)close(memory);
    assert_null(strstr(text, "hunter22"));
    assert_non_null(
        strstr(text, "\"T_LISTEN\":\"tcp://127.0.0.1:7001\",\"T_NOTE\":\"\",\"T_KEY\":\"(hidden)\","
                     "\"T_URL\":\"\",\"T_WORKERS\":2,\"T_SHIFT\":-1,\"T_STRICT\":false,"
                     "\"T_SOURCE\":\"range\"}\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_takes_defaults, reset),
        cmocka_unit_test_setup(test_takes_the_environment, reset),
        cmocka_unit_test_setup(test_refuses_bad_values, reset),
        cmocka_unit_test_setup(test_cuts_a_long_value, reset),
        cmocka_unit_test_setup(test_reads_secrets_from_files, reset),
        cmocka_unit_test_setup(test_refuses_bad_secret_files, reset),
        cmocka_unit_test_setup(test_help_fits_its_width, reset),
        cmocka_unit_test_setup(test_markdown_is_one_row_a_setting, reset),
        cmocka_unit_test_setup(test_log_masks_secrets, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
