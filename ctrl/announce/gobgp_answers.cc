// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/gobgp_answers.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>

#include "attribute.pb.h"
#include "capability.pb.h"
#include "ctrl/announce/gobgp_requests.h"
#include "lib/base/printable.h"

namespace holdfast::gobgp {
namespace {

// What gobgpd says for the sender of a path that nobody sent: Go's text of an address that is none.
constexpr std::string_view kLocalSource = "<nil>";
constexpr std::uint32_t kLongestPrepend = 255;

[[nodiscard]] std::optional<Family> family_of(const apipb::Family& message) {
  if (message.safi() != apipb::Family::SAFI_UNICAST) return std::nullopt;
  if (message.afi() == apipb::Family::AFI_IP) return Family::ipv4;
  if (message.afi() == apipb::Family::AFI_IP6) return Family::ipv6;
  return std::nullopt;
}

/// What the attributes of a path say, as far as an Announcement has it.
class Attributes {
 public:
  explicit Attributes(std::uint32_t own_as) : own_as_(own_as) {}

  /// What is wrong with it, if something is. Attributes that we never set are none of our business.
  [[nodiscard]] std::optional<Oddity> take(const google::protobuf::Any& attribute) {
    if (apipb::NextHopAttribute next_hop; attribute.Is<apipb::NextHopAttribute>()) {
      if (!attribute.UnpackTo(&next_hop)) return Oddity::attribute;
      return take_next_hop(next_hop.next_hop());
    }
    if (apipb::MpReachNLRIAttribute reach; attribute.Is<apipb::MpReachNLRIAttribute>()) {
      if (!attribute.UnpackTo(&reach)) return Oddity::attribute;
      // A second next hop is a link-local one.
      return reach.next_hops().empty() ? Oddity::next_hop : take_next_hop(reach.next_hops(0));
    }
    if (apipb::AsPathAttribute as_path; attribute.Is<apipb::AsPathAttribute>()) {
      if (has_as_path_ || !attribute.UnpackTo(&as_path)) return Oddity::attribute;
      has_as_path_ = true;
      return take_as_path(as_path);
    }
    if (apipb::MultiExitDiscAttribute med; attribute.Is<apipb::MultiExitDiscAttribute>()) {
      if (result_.med || !attribute.UnpackTo(&med)) return Oddity::attribute;
      result_.med = med.med();
    } else if (apipb::CommunitiesAttribute set; attribute.Is<apipb::CommunitiesAttribute>()) {
      if (has_communities_ || !attribute.UnpackTo(&set)) return Oddity::attribute;
      has_communities_ = true;
      auto& values = result_.communities;
      values.assign(set.communities().begin(), set.communities().end());
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
    }
    return std::nullopt;
  }

  [[nodiscard]] Announcement& result() { return result_; }

 private:
  [[nodiscard]] std::optional<Oddity> take_next_hop(const std::string& text) {
    const auto address = IpAddress::parse(text);
    // Still unset it is 0.0.0.0.
    if (!address || address->is_unspecified() || !result_.next_hop.is_unspecified())
      return Oddity::next_hop;
    result_.next_hop = *address;
    return std::nullopt;
  }

  /// Only what our prepends make: one AS some times.
  [[nodiscard]] std::optional<Oddity> take_as_path(const apipb::AsPathAttribute& as_path) {
    std::uint32_t count = 0;
    std::uint32_t as = own_as_;
    for (const auto& segment : as_path.segments()) {
      if (segment.type() != apipb::AsSegment::AS_SEQUENCE) return Oddity::as_path;
      for (const std::uint32_t number : segment.numbers()) {
        if (as == 0) as = number;
        if (number != as || ++count > kLongestPrepend) return Oddity::as_path;
      }
    }
    result_.prepend = static_cast<std::uint8_t>(count);
    return std::nullopt;
  }

  Announcement result_{};
  std::uint32_t own_as_;
  bool has_as_path_ = false;
  bool has_communities_ = false;
};

/// The VIP that a path leads to; none if it is not ours to look at.
[[nodiscard]] std::optional<IpAddress> read_vip(const apipb::Path& path, const Asked& asked,
                                                const Leave& leave) {
  const auto left_out = [&](Oddity oddity, std::string_view detail) -> std::optional<IpAddress> {
    leave(oddity, printable(detail));
    return std::nullopt;
  };
  if (family_of(path.family()) != asked.family)
    return left_out(Oddity::family,
                    fmt::format("AFI {}, SAFI {}", static_cast<int>(path.family().afi()),
                                static_cast<int>(path.family().safi())));
  apipb::IPAddressPrefix prefix;
  if (!path.nlri().Is<apipb::IPAddressPrefix>() || !path.nlri().UnpackTo(&prefix))
    return left_out(Oddity::prefix, path.nlri().type_url());
  const auto vip = IpAddress::parse(prefix.prefix());
  if (!vip || vip->family() != asked.family || prefix.prefix_len() != host_length(asked.family))
    return left_out(Oddity::prefix, fmt::format("{}/{}", prefix.prefix(), prefix.prefix_len()));
  if (!std::binary_search(asked.vips.begin(), asked.vips.end(), *vip))
    return left_out(Oddity::not_asked, vip->text());
  return vip;
}

[[nodiscard]] std::optional<Announcement> read_path(const apipb::Path& path, const Asked& asked,
                                                    const Leave& leave) {
  const auto vip = read_vip(path, asked, leave);
  if (!vip) return std::nullopt;
  if (path.identifier() != 0) {
    // Somebody else's beside ours: ADD-PATH keeps paths of one prefix apart by it, we set none.
    leave(Oddity::identifier, fmt::format("{} with {}", vip->text(), path.identifier()));
    return std::nullopt;
  }
  Attributes attributes(asked.own_as);
  for (const auto& attribute : path.pattrs()) {
    if (const auto oddity = attributes.take(attribute)) {
      leave(*oddity, vip->text());
      return std::nullopt;
    }
  }
  Announcement& result = attributes.result();
  if (result.next_hop.is_unspecified() || result.next_hop.family() != asked.family) {
    leave(Oddity::next_hop, fmt::format("{} by {}", vip->text(), result.next_hop.text()));
    return std::nullopt;
  }
  result.vip = *vip;
  return result;
}

[[nodiscard]] bool is_local(const apipb::Path& path) {
  return path.neighbor_ip() == kLocalSource && !path.is_withdraw();
}

/// Whether a capability list has the multiprotocol capability (RFC 4760) of a family.
/// `has_any`: it has one of any family.
[[nodiscard]] bool speaks(const google::protobuf::RepeatedPtrField<google::protobuf::Any>& list,
                          Family family, bool& has_any) {
  bool found = false;
  for (const auto& any : list) {
    apipb::MultiProtocolCapability capability;
    if (!any.Is<apipb::MultiProtocolCapability>() || !any.UnpackTo(&capability)) continue;
    has_any = true;
    found = found || family_of(capability.family()) == family;
  }
  return found;
}

/// Both ends named the family; an end that names none at all speaks IPv4 (RFC 4760, section 8).
[[nodiscard]] bool in_use(const apipb::PeerState& state, Family family) {
  const auto end = [family](const auto& list) {
    bool has_any = false;
    return speaks(list, family, has_any) || (!has_any && family == Family::ipv4);
  };
  return end(state.local_cap()) && end(state.remote_cap());
}

}  // namespace

std::string_view oddity_text(Oddity oddity) {
  switch (oddity) {
    case Oddity::family:
      return "a path of another family than it was asked for";
    case Oddity::prefix:
      return "a prefix that is no host route of the family asked for";
    case Oddity::not_asked:
      return "a prefix that it was not asked for";
    case Oddity::identifier:
      return "a path of a VIP that has a path identifier, so is not ours";
    case Oddity::attribute:
      return "a path attribute that is malformed or comes twice";
    case Oddity::next_hop:
      return "a path without a next hop of its family";
    case Oddity::as_path:
      return "a local path whose AS path is not made of our prepends";
    case Oddity::peer:
      return "a neighbour whose address can not be read";
  }
  return "";
}

void silence_protobuf() { google::protobuf::SetLogHandler(nullptr); }

BgpIdentity read_identity(const apipb::GetBgpResponse& answer) {
  return {.as = answer.global().asn(), .router_id = printable(answer.global().router_id())};
}

std::optional<BgpPeer> read_peer(const apipb::Peer& peer, const Leave& leave) {
  const auto& state = peer.state();
  const std::string& text =
      state.neighbor_address().empty() ? peer.conf().neighbor_address() : state.neighbor_address();
  const auto address = IpAddress::parse(text);
  if (!address || address->is_unspecified()) {
    leave(Oddity::peer, printable(text));
    return std::nullopt;
  }
  const bool established = state.session_state() == apipb::PeerState::ESTABLISHED;
  return BgpPeer{.address = *address,
                 .as = state.peer_asn() != 0 ? state.peer_asn() : peer.conf().peer_asn(),
                 .established = established,
                 .ipv4 = established && in_use(state, Family::ipv4),
                 .ipv6 = established && in_use(state, Family::ipv6)};
}

std::vector<Announcement> read_rib(const apipb::Destination& destination, const Asked& asked,
                                   const Leave& leave) {
  std::vector<Announcement> result;
  for (const auto& path : destination.paths()) {
    if (!is_local(path)) continue;
    if (auto announcement = read_path(path, asked, leave))
      result.push_back(*std::move(announcement));
  }
  return result;
}

std::optional<IpAddress> read_sent(const apipb::Destination& destination, const Asked& asked,
                                   const Leave& leave) {
  for (const auto& path : destination.paths()) {
    if (!is_local(path)) continue;
    if (const auto vip = read_vip(path, asked, leave)) return vip;
  }
  return std::nullopt;
}

}  // namespace holdfast::gobgp
