// SPDX-License-Identifier: Apache-2.0
// main() of the test programs. Catch2 3 brings it in a library of its own (catch2-with-main, chosen
// in tests/meson.build); the header of Catch2 2 writes it here.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
