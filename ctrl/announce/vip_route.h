// SPDX-License-Identifier: Apache-2.0
// One VIP's route as the announcer sees it: what is wanted, what the speaker is believed to have
// (to act on), and what was read back from it (to show and to judge). Pure; owned by Announcer.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "ctrl/announce/ask.h"
#include "ctrl/announce/wanted.h"
#include "ctrl/state/deadline.h"

namespace holdfast {

/// What was last read of a VIP in the speaker's RIB.
enum class RibState : std::uint8_t {
  unknown,  // not read since the speaker came
  absent,
  other,  // with other attributes than wanted, or not wanted at all
  same,   // as wanted
};

/// Whether the speaker has a route of ours. A RIB that can not be read does not change it.
enum class Presence : std::uint8_t {
  unknown,  // nothing was read yet: an earlier run may have left one
  absent,
  maybe,  // as last read, or because it was asked to since
};

class VipRoute {
 public:
  static constexpr std::chrono::milliseconds kFirstRetry{200};  // doubles with each failure
  static constexpr std::chrono::seconds kLongestRetry{5};
  static constexpr std::chrono::seconds kAlarmAfter{5};

  VipRoute() = default;

  /// True: something else is wanted than before.
  bool want(WantedVip wanted);
  [[nodiscard]] const WantedVip& wanted() const { return wanted_; }

  /// What the speaker is believed to have is not what is wanted. `blind`: it can not be read, so
  /// what is unknown is taken for wrong (both changes do no harm when they were needless).
  [[nodiscard]] bool needs_change(bool blind) const;
  /// Not before, after failures.
  [[nodiscard]] Instant next_try() const { return next_try_; }
  /// A change to what is wanted now is being asked for.
  void on_asked();
  /// It was answered; reads that were asked before `settled` tell nothing of it.
  void on_changed(const Result<void>& answer, AskNumber settled, Instant now);
  /// A removal was asked for of which no answer is awaited.
  void on_removed_blindly() { presence_ = Presence::maybe; }
  /// Nobody will answer it any more.
  void on_abandoned() { changing_ = false; }

  // Both ignore an answer that is older than the last change.
  void on_rib(const std::optional<Announcement>& found, AskNumber number, Instant now);
  void on_sent(const IpAddress& peer, bool sent, AskNumber number);
  void forget_peer(const IpAddress& peer) { sent_.erase(peer); }
  /// The speaker may be another one now: nothing is known.
  void forget();
  /// The RIB can not be read: what was read before says nothing any more.
  void on_unreadable() { read_known_ = false; }
  /// What we changed may be undone by now, and nothing will tell of it.
  void distrust() { belief_known_ = false; }
  /// There is no RIB, or it was lost with all that earlier runs had left.
  void on_no_rib() { presence_ = Presence::absent; }

  [[nodiscard]] RibState rib() const;
  /// Since when the RIB has been as it was last read.
  [[nodiscard]] Instant rib_since() const { return rib_since_; }
  [[nodiscard]] bool sent_to(const IpAddress& peer) const;
  /// Why changes fail or do nothing; empty: they work.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  [[nodiscard]] Presence presence() const { return presence_; }

  /// In what wanted, RIB and sent differ, as a clause about the VIP; empty: they agree. `peers`:
  /// those with a session that uses the VIP's family.
  [[nodiscard]] std::string difference(const std::set<IpAddress>& peers) const;

  /// Keeps the alarm's clock; true: the alarm came or went just now. `judge` false: the speaker is
  /// away, which is an alarm of its own.
  bool update_alarm(const std::set<IpAddress>& peers, bool judge, Instant now);
  [[nodiscard]] const std::string& alarm() const { return alarm_; }
  [[nodiscard]] Deadline alarm_due() const;

 private:
  void on_failure(std::string why, Instant now);

  WantedVip wanted_{};
  bool was_wanted_ = false;  // once in this run

  // To act on: what was read, or what we changed since.
  std::optional<Announcement> belief_{};
  bool belief_known_ = false;
  Presence presence_ = Presence::unknown;

  // The last change.
  bool changing_ = false;
  AskNumber settled_ = 0;
  std::optional<Announcement> attempted_{};
  bool unconfirmed_ = false;  // it was accepted, but not yet seen in the RIB
  unsigned failures_ = 0;     // since the RIB was last as wanted
  Instant next_try_{};
  std::string trouble_{};

  // To show and to judge: only what was read.
  std::optional<Announcement> read_{};
  bool read_known_ = false;
  Instant rib_since_{};
  std::map<IpAddress, bool> sent_{};  // by peer

  Deadline differs_since_{};
  std::string alarm_{};
};

}  // namespace holdfast
