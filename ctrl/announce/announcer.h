// SPDX-License-Identifier: Apache-2.0
// Keeps the routes of our VIPs in the speaker as they are wanted. Level-triggered: it never trusts
// its own memory, but reads the speaker's RIB and what was sent to each peer when the speaker
// comes, each 10 s and after its own changes, compares, and adds or removes what differs, one by
// one, and only routes of VIPs of the configuration with `announce = true`.
//
// Pure: no I/O, no clock. The shell round it (announce_shell.h) performs what due() asks for,
// brings each answer back by its number, and calls due() again after each event and at
// next_deadline(). Answers that nobody waits for any more are ignored. Owned by the shell, control
// thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ctrl/announce/ask.h"
#include "ctrl/announce/read_plan.h"
#include "ctrl/announce/speaker_link.h"
#include "ctrl/announce/vip_route.h"
#include "ctrl/announce/wanted.h"
#include "ctrl/state/deadline.h"
#include "ctrl/state_changes.h"

namespace holdfast {

class Announcer {
 public:
  static constexpr std::chrono::seconds kFullRead{10};
  static constexpr std::chrono::seconds kReadAgain{1};     // what could not be read
  static constexpr std::chrono::seconds kPatience{3};      // a question without an answer
  static constexpr std::chrono::seconds kSpeakerAlarm{5};  // without a speaker, or without a peer
  // Removals that are left with a speaker that does not answer. When it goes on it finds each one
  // cancelled as well, and does about every second all the same.
  static constexpr std::chrono::milliseconds kBlindPause{200};
  static constexpr unsigned kBlindRounds = 10;

  /// `speaker` names it in texts: "gobgpd at 127.0.0.1:50051".
  Announcer(std::string speaker, Instant now);

  /// Every VIP of the configuration; always the same ones.
  void want(const WantedVips& wanted, Instant now);

  /// The daemon ends soon, and nothing will be wanted any more: whatever may still be announced is
  /// removed even where the speaker does not answer. Call as often as you like.
  void leave() { leaving_ = true; }

  // News of the speaker (BgpSpeaker::News).
  void on_restarted(Instant now);
  void on_peers_changed() { peers_at_ = Instant{0}; }
  void on_lost(const Error& error, Instant now);

  // Answers, by the number of the question.
  void answered(AskNumber number, const Result<BgpIdentity>& answer, Instant now);
  void answered(AskNumber number, const Result<std::vector<BgpPeer>>& answer, Instant now);
  void answered(AskNumber number, const Result<std::vector<Announcement>>& answer, Instant now);
  void answered(AskNumber number, const Result<std::vector<IpAddress>>& answer, Instant now);
  void answered(AskNumber number, const Result<void>& answer, Instant now);

  /// What to ask now; at most one question of a kind is open at a time.
  [[nodiscard]] std::vector<Ask> due(Instant now);
  /// When to call due() again at the latest.
  [[nodiscard]] Deadline next_deadline() const;
  /// What happened since the last call.
  [[nodiscard]] std::vector<StateChange> take_events() { return std::exchange(events_, {}); }

  // For operators.
  struct PeerView {
    BgpPeer peer{};
    Instant since{};  // established, or not, for this long
  };
  [[nodiscard]] const std::string& speaker() const { return speaker_; }
  [[nodiscard]] const SpeakerLink& link() const { return link_; }
  [[nodiscard]] const std::map<IpAddress, PeerView>& peers() const { return peers_; }
  [[nodiscard]] const std::map<IpAddress, VipRoute>& routes() const { return routes_; }
  /// Peers with a session that uses the family.
  [[nodiscard]] std::set<IpAddress> peers_in_use(Family family) const;
  /// What is wrong for longer than it may be, one sentence each.
  [[nodiscard]] std::vector<std::string> alarms() const;
  /// What is wrong with the speaker itself, while no alarm says so; empty: nothing, or it is not
  /// known yet.
  [[nodiscard]] std::string warning() const;

  /// Whether the speaker has a route of ours. Unknown: that was not read yet in this run, and
  /// nothing was added.
  [[nodiscard]] Presence anything_announced() const;

 private:
  /// A question that was asked and not yet answered. Number 0: none.
  struct Flight {
    AskNumber number = 0;
    Instant asked{};
    ReadTarget target{};            // of reads
    std::vector<IpAddress> vips{};  // of reads; of a change: the one
    [[nodiscard]] bool open() const { return number != 0; }
  };

  /// Something wrong with all VIPs: an alarm when it lasts.
  struct Trouble {
    Deadline since{};
    bool told = false;
  };

  /// The answer without the speaker's name before its error: texts here have it already.
  template <class T>
  Result<T> unnamed(Result<T> answer) const;
  Ask begin(Flight& flight, Instant now);
  /// The flight that `number` belongs to, which is over now; empty: nobody waits for it.
  static std::optional<Flight> land(Flight& flight, AskNumber number);
  void give_up_on_silence(Instant now);
  void on_link(SpeakerLink::Effect effect, Instant now);
  void plan_full_read(Instant now);
  void plan_reads_of(const IpAddress& vip, Instant now);
  void read_failed(const Flight& flight, const Error& error, Instant now);
  void drop_family(const IpAddress& peer, Family family);
  std::optional<Ask> next_read(bool of_peers, Flight& flight, Instant now);
  std::optional<Ask> next_change(Instant now);
  /// The speaker does not answer, but what is sent to it now may be done later.
  [[nodiscard]] bool removes_blindly() const;
  void remove_blindly(std::vector<Ask>& asks, Instant now);
  /// The RIB can not be read, again and again.
  [[nodiscard]] bool blind(Family family) const;
  [[nodiscard]] bool wants_anything() const;
  [[nodiscard]] bool has_peer() const;
  void update_alarms(Instant now);
  void log_link();
  void log_rib(const IpAddress& vip, const VipRoute& route);
  void update_trouble(Trouble& trouble, bool wrong, Instant now);
  [[nodiscard]] std::string state_text() const;
  [[nodiscard]] std::string away_text() const;
  [[nodiscard]] std::string lonely_text() const;
  [[nodiscard]] static std::string subject_of(const IpAddress& vip);
  void event(Severity severity, std::string subject, std::string text) {
    events_.push_back({.kind = EventKind::announcement,
                       .severity = severity,
                       .subject = std::move(subject),
                       .text = std::move(text)});
  }

  std::string speaker_;
  SpeakerLink link_;
  SpeakerState logged_ = SpeakerState::connecting;
  std::map<IpAddress, PeerView> peers_{};
  std::map<IpAddress, VipRoute> routes_{};
  std::map<IpAddress, std::pair<RibState, Instant>> logged_rib_{};

  ReadPlan plan_{};
  Instant next_full_read_{};
  Deadline peers_at_{};                      // when to list the peers
  std::map<Family, unsigned> unreadable_{};  // reads of the RIB that failed in a row
  IpAddress last_changed_{};
  bool leaving_ = false;
  Instant next_blind_{};
  unsigned blind_rounds_ = 0;  // since the speaker was last up

  AskNumber next_number_ = 1;
  Flight identity_{};
  Flight peer_list_{};
  Flight rib_{};
  Flight sent_{};
  Flight change_{};

  Trouble away_{};    // something is wanted, but the speaker is not up
  Trouble lonely_{};  // something is wanted, but there is no session
  std::vector<StateChange> events_{};
};

}  // namespace holdfast
