// SPDX-License-Identifier: Apache-2.0
#include "ctrl/netlink/kernel_view.h"

namespace holdfast::netlink {

void KernelView::take(const Link& link) {
  if (link.deleted) {
    links_.erase(link.index);
  } else {
    links_[link.index] = link;
  }
}

void KernelView::take(const Neighbour& neighbour) {
  const NeighbourKey key{neighbour.link, neighbour.address};
  if (neighbour.deleted) {
    neighbours_.erase(key);
  } else {
    neighbours_[key] = neighbour;
  }
}

const Link* KernelView::link(std::uint32_t index) const {
  const auto it = links_.find(index);
  return it == links_.end() ? nullptr : &it->second;
}

const Neighbour* KernelView::neighbour(const NeighbourKey& key) const {
  const auto it = neighbours_.find(key);
  return it == neighbours_.end() ? nullptr : &it->second;
}

}  // namespace holdfast::netlink
