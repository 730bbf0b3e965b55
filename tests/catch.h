// SPDX-License-Identifier: Apache-2.0
// The test framework, under one name: Catch2 2 (Debian 12) and 3 (Debian 13) keep their headers in
// different places. Only what both have in common is used: TEST_CASE, SECTION, REQUIRE, CHECK,
// INFO, CAPTURE, FAIL, SUCCEED, GENERATE, Catch::StringMaker.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
