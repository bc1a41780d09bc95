// SPDX-License-Identifier: MIT
// cmocka.h with what it expects to stand before it.
#pragma once

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
