// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/gobgp_answers.h"

#include <map>
#include <random>

#include "attribute.pb.h"
#include "capability.pb.h"
#include "ctrl/announce/gobgp_requests.h"
#include "lib/base/printable.h"
#include "tests/catch.h"

namespace holdfast::gobgp {
namespace {

IpAddress ip(std::string_view text) { return IpAddress::parse(text).value(); }

const Asked kAsked{
    .family = Family::ipv4, .vips = {ip("203.0.113.10"), ip("203.0.113.11")}, .own_as = 64512};

/// What was left out, and how often.
using Left = std::map<Oddity, int>;

Leave into(Left& left) {
  return [&left](Oddity oddity, const std::string& detail) {
    ++left[oddity];
    CHECK(detail.size() <= 4 * kMaxShown + 40);
    CHECK(printable(detail, 1000) == detail);
  };
}

apipb::Path good_path(const char* vip = "203.0.113.10") {
  auto path = add_request({.vip = ip(vip), .next_hop = ip("192.0.2.1"), .med = 5}, 64512)->path();
  path.set_neighbor_ip("<nil>");
  return path;
}

std::vector<Announcement> read(const std::vector<apipb::Path>& paths, Left& left,
                               const Asked& asked = kAsked) {
  apipb::Destination destination;
  for (const auto& path : paths) *destination.add_paths() = path;
  return read_rib(destination, asked, into(left));
}

template <class Message>
void add(apipb::Path& path, const Message& message) {
  path.add_pattrs()->PackFrom(message);
}

apipb::IPAddressPrefix prefix(const std::string& address, std::uint32_t length) {
  apipb::IPAddressPrefix result;
  result.set_prefix(address);
  result.set_prefix_len(length);
  return result;
}

/// The one oddity for which a changed good path is left out.
template <class Change>
Oddity oddity_of(Change change) {
  auto path = good_path();
  change(path);
  Left left;
  CHECK(read({path}, left).empty());
  REQUIRE(left.size() == 1);
  return left.begin()->first;
}

TEST_CASE("paths learnt from peers and withdrawn ones are not ours and no oddity") {
  auto learnt = good_path();
  learnt.set_neighbor_ip("192.0.2.254");
  auto scoped = good_path();
  scoped.set_neighbor_ip("fe80::1%eth0");
  auto unnamed = good_path();
  unnamed.set_neighbor_ip("");
  auto withdrawn = good_path();
  withdrawn.set_is_withdraw(true);
  Left left;
  CHECK(read({learnt, scoped, unnamed, withdrawn}, left).empty());
  CHECK(left.empty());
  CHECK(read({learnt, good_path()}, left).size() == 1);
}

TEST_CASE("a malformed prefix, one that is no host route or one of another type is left out") {
  const auto with = [](const apipb::IPAddressPrefix& nlri) {
    return oddity_of([&](apipb::Path& path) { path.mutable_nlri()->PackFrom(nlri); });
  };
  CHECK(with(prefix("203.0.113.10", 33)) == Oddity::prefix);
  CHECK(with(prefix("203.0.113.10", 31)) == Oddity::prefix);
  CHECK(with(prefix("203.0.113.10", 128)) == Oddity::prefix);
  CHECK(with(prefix("203.0.113.10", 4294967295)) == Oddity::prefix);
  CHECK(with(prefix("203.0.113.010", 32)) == Oddity::prefix);
  CHECK(with(prefix("203.0.113.10/32", 32)) == Oddity::prefix);
  CHECK(with(prefix("", 32)) == Oddity::prefix);
  CHECK(with(prefix("\n\x1b[31m", 32)) == Oddity::prefix);
  CHECK(with(prefix(std::string(100000, 'x'), 32)) == Oddity::prefix);
  CHECK(with(prefix("::ffff:203.0.113.10", 128)) == Oddity::prefix);
  CHECK(with(prefix("203.0.113.12", 32)) == Oddity::not_asked);
  CHECK(oddity_of([](apipb::Path& path) {
          path.mutable_nlri()->PackFrom(apipb::OriginAttribute());
        }) == Oddity::prefix);
  CHECK(oddity_of([](apipb::Path& path) { path.clear_nlri(); }) == Oddity::prefix);
  CHECK(oddity_of([](apipb::Path& path) { path.mutable_nlri()->set_value("\xff\xff\xff"); }) ==
        Oddity::prefix);
  CHECK(oddity_of([](apipb::Path& path) { path.mutable_nlri()->set_type_url("\xc3\x28/x"); }) ==
        Oddity::prefix);
}

TEST_CASE("a path of another family is left out, however well formed") {
  CHECK(oddity_of([](apipb::Path& path) { path.clear_family(); }) == Oddity::family);
  CHECK(oddity_of([](apipb::Path& path) {
          path.mutable_family()->set_afi(apipb::Family::AFI_IP6);
        }) == Oddity::family);
  CHECK(oddity_of([](apipb::Path& path) {
          path.mutable_family()->set_safi(apipb::Family::SAFI_FLOW_SPEC_UNICAST);
        }) == Oddity::family);
  CHECK(oddity_of([](apipb::Path& path) {
          path.mutable_family()->set_afi(static_cast<apipb::Family::Afi>(-7));
        }) == Oddity::family);
}

TEST_CASE("a path without a usable next hop is left out") {
  const auto with = [](const std::string& text) {
    return oddity_of([&](apipb::Path& path) {
      path.clear_pattrs();
      apipb::NextHopAttribute attribute;
      attribute.set_next_hop(text);
      add(path, attribute);
    });
  };
  CHECK(with("") == Oddity::next_hop);
  CHECK(with("0.0.0.0") == Oddity::next_hop);
  CHECK(with("192.0.2.256") == Oddity::next_hop);
  CHECK(with("2001:db8::1") == Oddity::next_hop);
  CHECK(oddity_of([](apipb::Path& path) { path.clear_pattrs(); }) == Oddity::next_hop);
  CHECK(oddity_of([](apipb::Path& path) {
          path.clear_pattrs();
          add(path, apipb::MpReachNLRIAttribute());
        }) == Oddity::next_hop);
  CHECK(oddity_of([](apipb::Path& path) {  // a second one
          apipb::NextHopAttribute attribute;
          attribute.set_next_hop("192.0.2.2");
          add(path, attribute);
        }) == Oddity::next_hop);
}

TEST_CASE("an attribute that is broken or comes twice costs the path") {
  CHECK(oddity_of([](apipb::Path& path) { add(path, apipb::MultiExitDiscAttribute()); }) ==
        Oddity::attribute);
  CHECK(oddity_of([](apipb::Path& path) {
          add(path, apipb::CommunitiesAttribute());
          add(path, apipb::CommunitiesAttribute());
        }) == Oddity::attribute);
  CHECK(oddity_of([](apipb::Path& path) {
          add(path, apipb::AsPathAttribute());
          add(path, apipb::AsPathAttribute());
        }) == Oddity::attribute);
  for (const auto& message :
       {std::string("apipb.NextHopAttribute"), std::string("apipb.AsPathAttribute"),
        std::string("apipb.CommunitiesAttribute"), std::string("apipb.MpReachNLRIAttribute")}) {
    CHECK(oddity_of([&](apipb::Path& path) {
            auto& any = *path.add_pattrs();
            any.set_type_url("type.googleapis.com/" + message);
            any.set_value("\x0a\xff\xff\xff\xff\x0f");
          }) == Oddity::attribute);
  }
}

TEST_CASE("attributes that we never set do not matter") {
  auto path = good_path();
  apipb::LocalPrefAttribute local_pref;
  local_pref.set_local_pref(200);
  add(path, local_pref);
  add(path, apipb::LargeCommunitiesAttribute());
  path.add_pattrs()->set_type_url("type.googleapis.com/apipb.OfTomorrow");
  path.add_pattrs();
  Left left;
  REQUIRE(read({path}, left).size() == 1);
  CHECK(left.empty());
}

TEST_CASE("an AS path is ours only as so many times our AS") {
  const auto path_of = [](const std::vector<std::uint32_t>& numbers, auto type) {
    auto path = good_path();
    apipb::AsPathAttribute attribute;
    auto& segment = *attribute.add_segments();
    segment.set_type(type);
    for (const auto number : numbers) segment.add_numbers(number);
    add(path, attribute);
    return path;
  };
  const auto sequence = apipb::AsSegment::AS_SEQUENCE;
  Left left;
  const auto good = read({path_of({64512, 64512}, sequence)}, left);
  REQUIRE(good.size() == 1);
  CHECK(good[0].prepend == 2);
  CHECK(read({path_of(std::vector<std::uint32_t>(255, 64512), sequence)}, left)[0].prepend == 255);
  CHECK(left.empty());

  CHECK(read({path_of({64512, 64513}, sequence)}, left).empty());
  CHECK(read({path_of({64513}, sequence)}, left).empty());
  CHECK(read({path_of({64512}, apipb::AsSegment::AS_SET)}, left).empty());
  CHECK(read({path_of(std::vector<std::uint32_t>(256, 64512), sequence)}, left).empty());
  CHECK(left == Left{{Oddity::as_path, 4}});

  Asked any = kAsked;
  any.own_as = 0;
  CHECK(read({path_of({64513, 64513}, sequence)}, left, any).at(0).prepend == 2);
  CHECK(read({path_of({64513, 64512}, sequence)}, left, any).empty());
}

TEST_CASE("communities come sorted and once each, whatever gobgpd's order") {
  auto path = good_path();
  apipb::CommunitiesAttribute attribute;
  for (const std::uint32_t value : {7U, 4294967295U, 0U, 7U}) attribute.add_communities(value);
  add(path, attribute);
  Left left;
  CHECK(read({path}, left).at(0).communities == std::vector<std::uint32_t>{0, 7, 4294967295});
}

TEST_CASE("a path with an identifier belongs to somebody else") {
  CHECK(oddity_of([](apipb::Path& path) { path.set_identifier(1); }) == Oddity::identifier);
}

TEST_CASE("a bad path does not hide a good one of the same answer") {
  auto bad = good_path();
  bad.clear_pattrs();
  Left left;
  CHECK(read({bad, good_path("203.0.113.11"), bad}, left).size() == 1);
  CHECK(left == Left{{Oddity::next_hop, 2}});
}

TEST_CASE("sent counts only for local paths of what was asked for") {
  apipb::Destination destination;
  auto& path = *destination.add_paths();
  path = good_path();
  path.set_neighbor_ip("192.0.2.254");
  Left left;
  CHECK_FALSE(read_sent(destination, kAsked, into(left)).has_value());
  *destination.add_paths() = good_path("203.0.113.11");
  CHECK(read_sent(destination, kAsked, into(left)) == ip("203.0.113.11"));
  CHECK_FALSE(read_sent(apipb::Destination(), kAsked, into(left)).has_value());
  CHECK(left.empty());
}

apipb::Peer peer(const std::string& address) {
  apipb::Peer result;
  result.mutable_state()->set_neighbor_address(address);
  result.mutable_state()->set_peer_asn(64999);
  result.mutable_state()->set_session_state(apipb::PeerState::ESTABLISHED);
  return result;
}

void speak(google::protobuf::RepeatedPtrField<google::protobuf::Any>& list,
           apipb::Family::Afi afi) {
  apipb::MultiProtocolCapability capability;
  capability.mutable_family()->set_afi(afi);
  capability.mutable_family()->set_safi(apipb::Family::SAFI_UNICAST);
  list.Add()->PackFrom(capability);
}

TEST_CASE("a family is in use when both ends of an established session named it") {
  Left left;
  auto message = peer("192.0.2.254");
  auto& state = *message.mutable_state();
  speak(*state.mutable_local_cap(), apipb::Family::AFI_IP);
  speak(*state.mutable_local_cap(), apipb::Family::AFI_IP6);
  // The other end has no such capability at all: an old one that speaks IPv4.
  CHECK(read_peer(message, into(left)) == BgpPeer{ip("192.0.2.254"), 64999, true, true, false});
  state.add_remote_cap()->set_value("\xff");
  speak(*state.mutable_remote_cap(), apipb::Family::AFI_IP6);
  CHECK(read_peer(message, into(left)) == BgpPeer{ip("192.0.2.254"), 64999, true, false, true});
  speak(*state.mutable_remote_cap(), apipb::Family::AFI_IP);
  CHECK(read_peer(message, into(left)) == BgpPeer{ip("192.0.2.254"), 64999, true, true, true});
  state.set_session_state(apipb::PeerState::ACTIVE);
  CHECK(read_peer(message, into(left)) == BgpPeer{ip("192.0.2.254"), 64999, false, false, false});
  CHECK(left.empty());
}

TEST_CASE("a peer without a readable address is left out") {
  Left left;
  for (const char* text : {"", "fe80::1%eth0", "<nil>", "0.0.0.0", "peer\xff"})
    CHECK_FALSE(read_peer(peer(text), into(left)).has_value());
  CHECK(left == Left{{Oddity::peer, 5}});
  apipb::Peer configured;
  configured.mutable_conf()->set_neighbor_address("2001:db8::254");
  configured.mutable_conf()->set_peer_asn(7);
  CHECK(read_peer(configured, into(left)) == BgpPeer{ip("2001:db8::254"), 7, false, false, false});
}

TEST_CASE("answers with any bytes changed give no wrong announcement and no crash") {
  silence_protobuf();
  std::mt19937 random(20261130);
  apipb::Destination destination;
  *destination.add_paths() = good_path();
  *destination.add_paths() = good_path("203.0.113.11");
  apipb::ListPathResponse response;
  *response.mutable_destination() = destination;
  const std::string bytes = response.SerializeAsString();
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = bytes;
    for (unsigned i = 0; i <= random() % 4; ++i)
      changed[random() % changed.size()] = static_cast<char>(random());
    apipb::ListPathResponse message;
    if (!message.ParseFromString(changed)) continue;
    ++parsed;
    Left left;
    for (const auto& found : read_rib(message.destination(), kAsked, into(left))) {
      CHECK((found.vip == kAsked.vips[0] || found.vip == kAsked.vips[1]));
      CHECK(found.next_hop.family() == Family::ipv4);
      CHECK_FALSE(found.next_hop.is_unspecified());
    }
  }
  CHECK(parsed > 1000);
}

}  // namespace
}  // namespace holdfast::gobgp
