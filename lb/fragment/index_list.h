// SPDX-License-Identifier: Apache-2.0
// Doubly linked lists of the numbers of a fixed array's elements: a queue from whose middle one can
// leave. The links lie with the elements, so nothing is allocated. Pure; one owner.
#pragma once

#include <cstdint>
#include <vector>

namespace holdfast {

class IndexList {
 public:
  using Index = std::uint16_t;
  static constexpr Index kNone = 0xffff;
  struct Link {
    Index before = kNone;
    Index behind = kNone;
  };
  /// One for each element; an element is in at most one of the lists that share it.
  using Links = std::vector<Link>;

  [[nodiscard]] bool empty() const { return front_ == kNone; }
  /// kNone: empty.
  [[nodiscard]] Index front() const { return front_; }

  void push_back(Links& links, Index index) {
    links[index] = {.before = back_, .behind = kNone};
    (back_ == kNone ? front_ : links[back_].behind) = index;
    back_ = index;
  }
  /// Requires: it is in this list.
  void remove(Links& links, Index index) {
    const Link link = links[index];
    (link.before == kNone ? front_ : links[link.before].behind) = link.behind;
    (link.behind == kNone ? back_ : links[link.behind].before) = link.before;
  }

 private:
  Index front_ = kNone;
  Index back_ = kNone;
};

}  // namespace holdfast
