// SPDX-License-Identifier: Apache-2.0
// What every pipeline test includes, compiled once: reading these headers takes longer than a test.
#include "tests/catch.h"
#include "tests/dsl/expect.h"
