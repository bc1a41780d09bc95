// SPDX-License-Identifier: MIT
// What the in-process cache costs: nanoseconds for each operation, and bytes for each link.
//
//   bench_l1 [links, default 100000]
#include "services/redirector/l1.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 5
#define OPERATIONS 2000000U
#define SHORT_URL 40U // URLs have 40 to 119 bytes
#define URL_SPREAD 80U

static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15); // SplitMix64
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int64_t cpu_ns(void) {
    struct timespec now;
    REQUIRE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Seven characters, like those that links get.
static void code_of(uint32_t number, char out[CODES_TEXT]) {
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t rest = (uint64_t)number * UINT64_C(2654435761) + 1;
    for (size_t i = 0; i < CODES_MIN_LEN; i++, rest /= 62)
        out[i] = digits[rest % 62];
    out[CODES_MIN_LEN] = '\0';
}

static void put(struct l1 *l1, uint32_t number, char *url) {
    struct cached_link link = {.version = 1, .state = LINK_ACTIVE, .redirect_status = 302, .url = url};
    code_of(number, link.code);
    link.url_len = SHORT_URL + number % URL_SPREAD;
    struct l1_fetch fetch = l1_fetch(l1, link.code, 0);
    (void)l1_put(l1, &fetch, &link, 200);
}

enum operation { OPERATION_GET, OPERATION_DRAW, OPERATION_HASH };

// Nanoseconds for one operation over codes drawn from the `spread` from `first` on: the best round, since
// others share the machine.
static double measure(struct l1 *l1, enum operation operation, uint32_t first, uint32_t spread) {
    static char codes[1 << 20][8];
    static const uint8_t key[CRYPTO_SIPHASH_KEY] = {1};
    double best = 1e9;
    uint64_t seed = 1, sum = 0;
    for (uint32_t i = 0; i < spread; i++) {
        char code[CODES_TEXT];
        code_of(first + i, code);
        memcpy(codes[i], code, sizeof codes[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = cpu_ns();
        for (uint32_t i = 0; i < OPERATIONS; i++) {
            const char *code = codes[random_next(&seed) % spread];
            struct l1_hit hit = {0};
            if (operation == OPERATION_GET)
                sum += l1_get(l1, code, 1000, &hit) == L1_HIT ? (uint8_t)hit.link->url[9] : 0;
            else
                sum += operation == OPERATION_HASH ? crypto_siphash(key, code, 7) : (uint8_t)code[0];
        }
        double ns = (double)(cpu_ns() - start) / OPERATIONS;
        best = ns < best ? ns : best;
    }
    REQUIRE(sum != 1); // so that nothing is left out
    return best;
}

static void report(struct l1 *l1, uint32_t links) {
    static const uint32_t spreads[] = {1, 10000, 100000};
    printf("| operation | codes | ns |\n|---|---:|---:|\n");
    printf("| SipHash alone | 1 | %.1f |\n",
        measure(l1, OPERATION_HASH, 0, 1) - measure(l1, OPERATION_DRAW, 0, 1));
    for (size_t i = 0; i < ARRAY_LEN(spreads); i++)
        if (spreads[i] <= links)
            printf("| hit | %u | %.1f |\n", spreads[i],
                measure(l1, OPERATION_GET, 0, spreads[i]) - measure(l1, OPERATION_DRAW, 0, spreads[i]));
    printf("| miss | 100000 | %.1f |\n",
        measure(l1, OPERATION_GET, 1U << 30, 100000) - measure(l1, OPERATION_DRAW, 1U << 30, 100000));
}

int main(int argc, char **argv) {
    unsigned long links = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
    if (links < 1000 || links > 1U << 20) {
        (void)fprintf(stderr, "usage: %s [links, 1000 to %u]\n", argv[0], 1U << 20);
        return 2;
    }
    crypto_init();
    char url[SHORT_URL + URL_SPREAD + 1];
    memset(url, 'u', sizeof url);
    struct l1_options options = {.bytes = links * 320, .absent = 4096};
    size_t heap = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct l1 *l1 = l1_create(&options);
    size_t fixed = l1_bytes(l1);
    int64_t start = cpu_ns();
    for (uint32_t i = 0; i < links; i++)
        put(l1, i, url);
    double put_ns = (double)(cpu_ns() - start) / (double)links;
    REQUIRE(l1_count(l1) == links);
    heap = mallinfo2().uordblks + mallinfo2().hblkhd - heap;
    printf("%lu links with URLs of %u to %u bytes\n\n", links, SHORT_URL, SHORT_URL + URL_SPREAD - 1);
    printf("bytes per link: %.1f by the cache's own account (%.1f of them fixed), %.1f by the heap's\n\n",
        (double)l1_bytes(l1) / (double)links, (double)fixed / (double)links, (double)heap / (double)links);
    report(l1, (uint32_t)links);
    printf("| put, growing | %lu | %.1f |\n", links, put_ns);
    start = cpu_ns();
    for (uint32_t i = 0; i < OPERATIONS; i++)
        put(l1, (uint32_t)links + i, url);
    printf("| put, evicting | %u | %.1f |\n", OPERATIONS, (double)(cpu_ns() - start) / OPERATIONS);
    l1_free(l1);
    return 0;
}
