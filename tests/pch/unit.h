// SPDX-License-Identifier: Apache-2.0
// What nearly every unit test includes, compiled once: reading it takes longer than a small test.
#include "tests/catch.h"
