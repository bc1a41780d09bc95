// SPDX-License-Identifier: MIT
#include "common/codes/codes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct codes_key key = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
static const struct codes_key other_key = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16}};
static const struct codes_domain seven = {.a = 238328, .b = 14776336, .len = 7};
static const struct codes_domain eight = {.a = 14776336, .b = 14776336, .len = 8};

static void expect_bijection(const struct codes_domain *domain) {
    uint64_t size = domain->a * domain->b;
    uint8_t *seen = base_calloc(size, 1);
    for (uint64_t n = 0; n < size; n++) {
        uint64_t image = codes_permute(&key, domain, n);
        assert_true(image < size);
        assert_int_equal(seen[image]++, 0);
        assert_int_equal(codes_permute_inverse(&key, domain, image), n);
    }
    free(seen);
}

static void every_small_domain_is_permuted(void **state) {
    (void)state;
    static const struct codes_domain domains[] = {
        {1, 1, 1},
        {1, 9, 1},
        {9, 1, 1},
        {2, 3, 2},
        {3, 2, 2},
        {10, 7, 3},
        {62, 62, 2},
        {62, 3844, 3},
        {3844, 62, 3},
        {257, 1000, 255},
    };
    for (size_t i = 0; i < ARRAY_LEN(domains); i++)
        expect_bijection(&domains[i]);
}

static void expect_inverse(const struct codes_domain *domain, uint64_t n) {
    uint64_t image = codes_permute(&key, domain, n);
    assert_true(image < domain->a * domain->b);
    assert_int_equal(codes_permute_inverse(&key, domain, image), n);
    assert_int_equal(codes_permute(&key, domain, codes_permute_inverse(&key, domain, n)), n);
}

static void the_inverse_undoes_it_on_the_real_domains(void **state) {
    (void)state;
    const struct codes_domain *const domains[] = {&seven, &eight};
    for (size_t i = 0; i < ARRAY_LEN(domains); i++) {
        uint64_t size = domains[i]->a * domains[i]->b;
        for (uint64_t n = 0; n < 2000; n++) {
            expect_inverse(domains[i], n);
            expect_inverse(domains[i], size - 1 - n);
            // A multiplier without a common factor walks the whole domain in big steps.
            expect_inverse(domains[i], n * UINT64_C(2654435761) % size);
        }
    }
}

// Neighbours must not have neighbouring images: the mean distance of two random points is a third of the
// domain.
static void neighbours_are_scattered(void **state) {
    (void)state;
    uint64_t size = seven.a * seven.b;
    double sum = 0;
    uint64_t last = codes_permute(&key, &seven, 0);
    for (uint64_t n = 1; n <= 10000; n++) {
        uint64_t image = codes_permute(&key, &seven, n);
        sum += (double)(image > last ? image - last : last - image) / (double)size;
        last = image;
    }
    assert_true(sum / 10000 > 0.32 && sum / 10000 < 0.345);
}

static void keys_and_lengths_give_other_permutations(void **state) {
    (void)state;
    struct codes_domain longer = seven;
    longer.len = 8;
    unsigned same_key = 0;
    unsigned same_len = 0;
    for (uint64_t n = 0; n < 1000; n++) {
        uint64_t image = codes_permute(&key, &seven, n);
        same_key += image == codes_permute(&other_key, &seven, n);
        same_len += image == codes_permute(&key, &longer, n);
    }
    assert_int_equal(same_key, 0);
    assert_int_equal(same_len, 0);
}

int main(void) {
    crypto_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_domain_is_permuted),
        cmocka_unit_test(the_inverse_undoes_it_on_the_real_domains),
        cmocka_unit_test(neighbours_are_scattered),
        cmocka_unit_test(keys_and_lengths_give_other_permutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
