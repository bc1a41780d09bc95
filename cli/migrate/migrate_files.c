// SPDX-License-Identifier: MIT
#include "cli/migrate/migrate.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 4

bool migrate_parse_name(const char *name, unsigned *number) {
    size_t len = strlen(name);
    if (len > MIGRATE_NAME_MAX || len < DIGITS + 2 + 4 || strcmp(name + len - 4, ".sql") != 0) {
        return false;
    }
    unsigned value = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(name[i] - '0');
    }
    const char *word = name + DIGITS + 1;
    size_t word_len = len - DIGITS - 1 - 4;
    if (name[DIGITS] != '_' || strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_") != word_len) {
        return false;
    }
    *number = value;
    return true;
}

// The whole file, or NULL with the reason. A NUL byte would end what the server is sent.
static char *read_file(const char *dir, const char *name, size_t *len, struct buf *why) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) {
        buf_printf(why, "%s: the path is too long", name);
        return NULL;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        buf_printf(why, "%s: %s", path, strerror(errno));
        return NULL;
    }
    char *bytes = base_calloc(1, MIGRATE_FILE_MAX + 2);
    size_t got = fread(bytes, 1, MIGRATE_FILE_MAX + 1, file);
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (failed || got > MIGRATE_FILE_MAX || memchr(bytes, '\0', got) != NULL) {
        buf_printf(why, "%s: %s", path,
            failed                   ? "cannot be read"
            : got > MIGRATE_FILE_MAX ? "is over 1 MiB"
                                     : "holds a NUL byte");
        free(bytes);
        return NULL;
    }
    char *exact = base_strndup(bytes, got);
    free(bytes);
    *len = got;
    return exact;
}

static int is_sql(const struct dirent *entry) {
    size_t len = strlen(entry->d_name);
    return len > 4 && entry->d_name[0] != '.' && strcmp(entry->d_name + len - 4, ".sql") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool read_one(
    const char *dir, const char *name, unsigned expected, struct migrate_file *out, struct buf *why) {
    unsigned number;
    if (!migrate_parse_name(name, &number)) {
        buf_printf(why, "%s/%s: a migration is named like 0001_some_words.sql", dir, name);
        return false;
    }
    if (number != expected) {
        buf_printf(why, "%s/%s: number %04u %s; expected %04u", dir, name, number,
            number < expected ? "is there twice or is 0" : "leaves a gap", expected);
        return false;
    }
    struct migrate_file file = {.number = number};
    file.sql = read_file(dir, name, &file.sql_len, why);
    if (file.sql == NULL) {
        return false;
    }
    memcpy(file.name, name, strlen(name)); // its length was checked
    uint8_t hash[CRYPTO_HASH];
    crypto_blake2b(hash, file.sql, file.sql_len);
    crypto_hex(file.checksum, hash, sizeof hash);
    *out = file;
    return true;
}

bool migrate_read(const char *dir, struct migrate_set *out, struct buf *why) {
    struct dirent **entries;
    int count = scandir(dir, &entries, is_sql, by_name);
    if (count < 0) {
        buf_printf(why, "%s: %s", dir, strerror(errno));
        return false;
    }
    struct migrate_set set = {.files = base_calloc((size_t)count + 1, sizeof set.files[0])};
    bool ok = count > 0;
    if (!ok) {
        buf_printf(why, "%s: no migrations there", dir);
    }
    for (int i = 0; i < count; i++) {
        ok = ok && read_one(dir, entries[i]->d_name, (unsigned)i + 1, &set.files[i], why);
        set.count += ok ? 1 : 0;
        free(entries[i]);
    }
    free(entries);
    if (!ok) {
        migrate_done(&set);
        return false;
    }
    *out = set;
    return true;
}

void migrate_done(struct migrate_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        free(set->files[i].sql);
    }
    free(set->files);
    *set = (struct migrate_set){0};
}

bool migrate_plan(const struct migrate_set *set, const struct migrate_applied *applied, size_t count,
    size_t *done, struct buf *why) {
    for (size_t i = 0; i < count; i++) {
        if (applied[i].number != i + 1) {
            buf_printf(why, "the database has migration %04u, but not %04zu", applied[i].number, i + 1);
            return false;
        }
        if (i >= set->count) {
            buf_printf(why,
                "the database has migration %04u, which these files don't: it is newer than they are",
                applied[i].number);
            return false;
        }
        const struct migrate_file *file = &set->files[i];
        if (strcmp(applied[i].checksum, file->checksum) != 0) {
            buf_printf(why,
                "%s was changed after it was applied (checksum then %.16s…, now %.16s…): put it back, and "
                "write a new "
                "migration for the change",
                file->name, applied[i].checksum, file->checksum);
            return false;
        }
    }
    *done = count;
    return true;
}
