// SPDX-License-Identifier: MIT
#include "services/keyrange/memory.h"
#include "common/buf/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1024)
#define POSITION_EVERY_US (10 * US_PER_S)

struct memory {
    char *path; // NULL: there is no file
    char *next; // where the file is written before it takes its place
    char *dir;
    pthread_mutex_t lock; // guards what follows, and the order of writes
    uint8_t fingerprint[CODES_FINGERPRINT];
    struct known known;
    struct known written;
    int64_t position_due_us; // when a position that moved is worth a write
};

void known_merge(struct known *into, const struct known *from) {
    for (unsigned slot = 0; slot < KEYRANGE_SLOTS; slot++) {
        if (from->counter[slot] > into->counter[slot])
            into->counter[slot] = from->counter[slot];
        if (from->ceiling[slot] > into->ceiling[slot])
            into->ceiling[slot] = from->ceiling[slot];
    }
    if (from->jumps > into->jumps || (from->jumps == into->jumps && from->position > into->position)) {
        into->jumps = from->jumps;
        into->position = from->position;
    }
}

bool known_is_empty(const struct known *known) {
    static const struct known nothing;
    return memcmp(known, &nothing, sizeof nothing) == 0;
}

// ---- the file: the key's fingerprint, the jumps and the position, then slot, counter and ceiling a line

static void render(const struct memory *memory, struct buf *out) {
    char hex[2 * CODES_FINGERPRINT + 1];
    crypto_hex(hex, memory->fingerprint, CODES_FINGERPRINT);
    buf_printf(out, "dunlin keyrange memory 1\nkey %s\nlog %" PRIu64 " %" PRIu64 "\n", hex,
        memory->known.jumps, memory->known.position);
    for (unsigned slot = 0; slot < KEYRANGE_SLOTS; slot++)
        buf_printf(out, "%u %" PRIu64 " %" PRIu64 "\n", slot, memory->known.counter[slot],
            memory->known.ceiling[slot]);
}

// Lenient; what is read counts only where it renders to the same bytes.
static void scan(struct memory *memory, const char *text) {
    static const char key[] = "\nkey ";
    const char *at = strstr(text, key);
    if (at == NULL || strlen(at + sizeof key - 1) < sizeof(char[2 * CODES_FINGERPRINT]))
        return;
    char hex[2 * CODES_FINGERPRINT + 1];
    (void)snprintf(hex, sizeof hex, "%s", at + sizeof key - 1);
    if (!crypto_unhex(memory->fingerprint, CODES_FINGERPRINT, hex))
        return;
    static const char log[] = "\nlog ";
    char *end = NULL;
    at = strstr(text, log);
    if (at == NULL)
        return;
    memory->known.jumps = strtoull(at + sizeof log - 1, &end, 10);
    memory->known.position = strtoull(end, &end, 10);
    at = strchr(end, '\n');
    for (unsigned slot = 0; slot < KEYRANGE_SLOTS && at != NULL; slot++) {
        (void)strtoull(at + 1, &end, 10);
        memory->known.counter[slot] = strtoull(end, &end, 10);
        memory->known.ceiling[slot] = strtoull(end, &end, 10);
        at = strchr(end, '\n');
    }
}

static enum status read_file(struct memory *memory, struct problem *why) {
    char text[FILE_MAX];
    FILE *file = fopen(memory->path, "re");
    if (file == NULL && errno == ENOENT)
        return STATUS_OK;
    if (file == NULL)
        return problem_set(why, STATUS_FAILED_PRECONDITION, "BAD_SETTING", "KEYRANGE_MEMORY: %s: %s",
            memory->path, strerror(errno));
    size_t len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    (void)fclose(file);
    struct buf again;
    buf_init(&again, FILE_MAX);
    scan(memory, text);
    render(memory, &again);
    bool same = buf_ok(&again) && strcmp(buf_text(&again), text) == 0;
    buf_done(&again);
    memory->written = memory->known;
    if (same)
        return STATUS_OK;
    return problem_set(why, STATUS_FAILED_PRECONDITION, "BAD_SETTING",
        "KEYRANGE_MEMORY: %s is not what keyrange writes; without it the counters are not checked against it",
        memory->path);
}

static bool write_all(int fd, const struct buf *bytes) {
    ssize_t written = write(fd, bytes->data, bytes->len);
    return written == (ssize_t)bytes->len && fsync(fd) == 0;
}

static bool sync_dir(const char *dir) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        (void)close(fd);
    return done;
}

static bool write_file(const struct memory *memory) {
    int fd = open(memory->next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    struct buf bytes;
    buf_init(&bytes, FILE_MAX);
    render(memory, &bytes);
    bool done = buf_ok(&bytes) && write_all(fd, &bytes);
    buf_done(&bytes);
    done = close(fd) == 0 && done;
    return done && rename(memory->next, memory->path) == 0 && sync_dir(memory->dir);
}

// ---- life

static void set_path(struct memory *memory, const char *path) {
    size_t size = strlen(path) + sizeof ".new";
    memory->path = base_strdup(path);
    memory->next = base_calloc(1, size);
    (void)snprintf(memory->next, size, "%s.new", path);
    char *copy = base_strdup(path); // dirname() writes into it
    memory->dir = base_strdup(dirname(copy));
    free(copy);
}

enum status memory_open(const char *path, struct memory **out, struct problem *why) {
    struct memory *memory = base_calloc(1, sizeof *memory);
    (void)pthread_mutex_init(&memory->lock, NULL);
    if (path[0] != '\0') {
        set_path(memory, path);
        enum status status = read_file(memory, why);
        if (status != STATUS_OK) {
            memory_close(memory);
            return status;
        }
    }
    *out = memory;
    return STATUS_OK;
}

void memory_close(struct memory *memory) {
    if (memory == NULL)
        return;
    (void)pthread_mutex_destroy(&memory->lock);
    free(memory->path);
    free(memory->next);
    free(memory->dir);
    free(memory);
}

void memory_read(struct memory *memory, const uint8_t fingerprint[CODES_FINGERPRINT], struct known *into) {
    (void)pthread_mutex_lock(&memory->lock);
    if (memcmp(memory->fingerprint, fingerprint, CODES_FINGERPRINT) == 0)
        known_merge(into, &memory->known);
    (void)pthread_mutex_unlock(&memory->lock);
}

// Everything but the position is what a claim or a jump depends on.
static bool is_due(const struct memory *memory) {
    struct known rest = memory->known;
    rest.position = memory->written.position;
    if (memcmp(&rest, &memory->written, sizeof rest) != 0)
        return true;
    return memory->known.position != memory->written.position &&
           base_monotonic_us() >= memory->position_due_us;
}

bool memory_learn(
    struct memory *memory, const uint8_t fingerprint[CODES_FINGERPRINT], const struct known *known) {
    (void)pthread_mutex_lock(&memory->lock);
    if (memcmp(memory->fingerprint, fingerprint, CODES_FINGERPRINT) != 0) {
        memcpy(memory->fingerprint, fingerprint, CODES_FINGERPRINT);
        memory->known = (struct known){0};
    }
    known_merge(&memory->known, known);
    bool done = true;
    if (memory->path != NULL && is_due(memory)) {
        done = write_file(memory);
        if (done)
            memory->written = memory->known;
        memory->position_due_us = base_monotonic_us() + POSITION_EVERY_US;
    }
    (void)pthread_mutex_unlock(&memory->lock);
    return done;
}
