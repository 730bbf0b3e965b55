// SPDX-License-Identifier: Apache-2.0
// Heap mbufs (lb/heap/heap_mbuf.h) by their names in tests.
#pragma once

#include "lb/heap/heap_mbuf.h"

namespace holdfast::dsl {

using holdfast::bytes_of;
using holdfast::free_mbuf;
using holdfast::make_mbuf;
using holdfast::make_segment;
using holdfast::MbufShape;

}  // namespace holdfast::dsl
