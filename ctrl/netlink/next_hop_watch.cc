// SPDX-License-Identifier: Apache-2.0
#include "ctrl/netlink/next_hop_watch.h"
#include "ctrl/log.h"

#include <fmt/format.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast {

using netlink::Message;

namespace {

bool same(const ResolvedRoute& a, const ResolvedRoute& b) {
  return a.next_hops == b.next_hops && a.tunnel_source == b.tunnel_source && a.problem == b.problem;
}

}  // namespace

Result<std::unique_ptr<NextHopWatch>> NextHopWatch::start(Loop& loop,
                                                          std::vector<PortDescription> ports,
                                                          std::set<IpAddress> backends,
                                                          std::function<void()> changed) {
  constexpr std::array kGroups{static_cast<int>(RTNLGRP_LINK), static_cast<int>(RTNLGRP_NEIGH),
                               static_cast<int>(RTNLGRP_IPV4_ROUTE),
                               static_cast<int>(RTNLGRP_IPV6_ROUTE)};
  auto events = netlink::Socket::open(kGroups);
  if (!events) return tl::unexpected<Error>(events.error());
  auto asking = netlink::Socket::open({});
  if (!asking) return tl::unexpected<Error>(asking.error());
  std::unique_ptr<NextHopWatch> watch(new NextHopWatch(loop, std::move(ports), std::move(backends),
                                                       std::move(changed), std::move(*events),
                                                       std::move(*asking)));
  const int error = loop.watch(watch->events_.fd(), EPOLLIN, "netlink events",
                               [self = watch.get()](std::uint32_t) { self->on_events(); });
  if (error != 0) {
    return fail(std::generic_category().message(error), "netlink events can not be watched");
  }
  return watch;
}

NextHopWatch::NextHopWatch(Loop& loop, std::vector<PortDescription> ports,
                           std::set<IpAddress> backends, std::function<void()> changed,
                           netlink::Socket events, netlink::Socket asking)
    : loop_(loop),
      ports_(std::move(ports)),
      backends_(std::move(backends)),
      changed_(std::move(changed)),
      events_(std::move(events)),
      asking_(std::move(asking)) {
  refresh();
  tick_timer_ = loop_.call_every(kTick, "next hops", [this] { tick(); });
}

NextHopWatch::~NextHopWatch() {
  loop_.cancel(refresh_timer_);
  loop_.cancel(tick_timer_);
  loop_.unwatch(events_.fd());
}

void NextHopWatch::on_events() {
  for (int i = 0; i < 64; ++i) {  // a bounded piece a turn
    const auto got = events_.receive([this](const Message& message) { take(message); });
    if (got == netlink::Socket::Got::nothing) return;
    if (got == netlink::Socket::Got::overrun) {
      view_stale_ = routes_stale_ = true;
      refresh_soon();
    }
  }
}

void NextHopWatch::take(const Message& message) {
  if (const auto* link = std::get_if<netlink::Link>(&message.body)) {
    view_.take(*link);
    // The kernel says nothing about IPv4 routes that go away with their link.
    routes_stale_ = true;
    refresh_soon();
  } else if (const auto* neighbour = std::get_if<netlink::Neighbour>(&message.body)) {
    view_.take(*neighbour);
    if (neighbours_.contains({neighbour->link, neighbour->address})) refresh_soon();
  } else if (std::holds_alternative<netlink::Route>(message.body)) {
    routes_stale_ = true;
    refresh_soon();
  }
}

void NextHopWatch::refresh_soon() {
  if (refresh_timer_ != 0) return;
  refresh_timer_ = loop_.call_after(kGather, "next hops", [this] {
    refresh_timer_ = 0;
    refresh();
  });
}

void NextHopWatch::tick() {
  if (boot_now() - last_full_read_ >= kReadAnew) view_stale_ = routes_stale_ = true;
  // What is missing may come without an event that we hear of, such as an IPv6 source address whose
  // duplicate detection has ended.
  for (const auto& [address, route] : routes_) {
    if (!route.problem.empty() || route.tunnel_source.is_unspecified()) routes_stale_ = true;
  }
  if (view_stale_ || routes_stale_) {
    refresh();
  } else {
    ask_neighbours();
  }
}

void NextHopWatch::refresh() {
  if (view_stale_) read_links_and_neighbours();
  if (routes_stale_) read_routes();

  Routes routes;
  std::map<netlink::NeighbourKey, Instant> neighbours;
  for (const auto& backend : backends_) {
    auto resolution = resolve(backend);
    for (const auto& key : resolution.neighbours) {
      const auto asked = neighbours_.find(key);
      neighbours[key] = asked == neighbours_.end() ? -Instant(kAskAgain) : asked->second;
    }
    routes[backend] = std::move(resolution.route);
  }
  neighbours_ = std::move(neighbours);
  ask_neighbours();

  bool changed = routes.size() != routes_.size();
  for (const auto& [address, route] : routes) {
    const auto before = routes_.find(address);
    changed = changed || before == routes_.end() || !same(before->second, route);
  }
  const bool first = routes_.empty();
  routes_ = std::move(routes);
  if (changed && !first && changed_) changed_();
}

void NextHopWatch::read_links_and_neighbours() {
  netlink::KernelView view;
  const auto take = [&](const Message& message) {
    if (const auto* link = std::get_if<netlink::Link>(&message.body)) view.take(*link);
    if (const auto* entry = std::get_if<netlink::Neighbour>(&message.body)) view.take(*entry);
  };
  ++sequence_;
  const int links = asking_.ask(netlink::request_links(sequence_), sequence_, take);
  ++sequence_;
  const int neighbours = asking_.ask(netlink::request_neighbours(sequence_), sequence_, take);
  // A list that changed while it was read still is better than the old one; it is read once more.
  const auto failed = [](int error) { return error != 0 && error != EINTR; };
  if (failed(links) || failed(neighbours)) {
    log_line(LogLevel::warning,
             fmt::format("links and neighbours can not be read from the kernel: {}",
                         std::generic_category().message(failed(links) ? links : neighbours)));
    return;  // stays stale: the next tick tries again
  }
  view_ = std::move(view);
  view_stale_ = links == EINTR || neighbours == EINTR;
  last_full_read_ = boot_now();
}

void NextHopWatch::read_routes() {
  const auto domains = netlink::routing_domains(view_, ports_);
  answers_.clear();
  for (const auto& backend : backends_) {
    auto& answers = answers_[backend];
    for (const auto domain : domains) answers.push_back(read_route(backend, domain));
  }
  routes_stale_ = false;
}

netlink::RouteAnswer NextHopWatch::read_route(const IpAddress& backend, std::uint32_t domain) {
  netlink::RouteAnswer answer;
  ++sequence_;
  answer.error = asking_.ask(netlink::request_route(sequence_, backend, true, domain), sequence_,
                             [&](const Message& message) {
                               if (const auto* route = std::get_if<netlink::Route>(&message.body)) {
                                 answer.route = *route;
                               }
                             });
  if (answer.error != 0 || answer.route.source) return answer;
  ++sequence_;
  asking_.ask(netlink::request_route(sequence_, backend, false, domain), sequence_,
              [&](const Message& message) {
                if (const auto* route = std::get_if<netlink::Route>(&message.body)) {
                  answer.source = route->source;
                }
              });
  return answer;
}

netlink::Resolution NextHopWatch::resolve(const IpAddress& backend) const {
  const auto found = answers_.find(backend);
  std::optional<netlink::Resolution> best;
  if (found != answers_.end()) {
    for (const auto& answer : found->second) {
      auto resolution = netlink::resolve(backend, answer, view_, ports_);
      // The first domain that leads to a port; else the first one's problem is told.
      const bool leads = !resolution.neighbours.empty();
      if (!best || (best->neighbours.empty() && leads)) best = std::move(resolution);
    }
  }
  if (best) return std::move(*best);
  return {.route = {.problem = "no port has a kernel interface: give the backend a next_hop"}};
}

void NextHopWatch::ask_neighbours() {
  const auto now = boot_now();
  for (auto& [key, asked] : neighbours_) {
    const auto* neighbour = view_.neighbour(key);
    if (neighbour != nullptr && !neighbour->needs_asking()) continue;
    if (now - asked < kAskAgain) continue;
    asked = now;
    ++sequence_;
    const int error = asking_.ask(netlink::request_resolution(sequence_, key.link, key.address),
                                  sequence_, [](const Message&) {});
    if (error == EPERM && !std::exchange(told_no_permission_, true)) {
      log_line(LogLevel::warning,
               "no permission to have neighbours resolved (CAP_NET_ADMIN): next hops are known "
               "only while the kernel itself talks to them");
    }
  }
}

}  // namespace holdfast
