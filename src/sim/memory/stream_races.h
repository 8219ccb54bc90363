// Races between operations of a device: two that access one byte of global memory, at least one of
// them writing, without anything that orders them. Found in whatever order they ran.
//
// For each byte: the last operation that wrote it, and the later ones that read or updated it and
// are not ordered before one another. Neighbouring bytes with the same history share an entry. Two
// atomic updates do not race. An operation is identified by when it happened; the clock of the
// current operation tells whether that was before it (sim/operation.h).
//
// Limits: kMaxEntries entries and as many histories (some 100 MB); beyond that, all histories are
// forgotten. kMaxOthers reads and updates since the last write; beyond that, the oldest is
// forgotten. Races with what was forgotten are missed, but no false race is reported.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/memory/footprint.h"
#include "sim/operation.h"

namespace assay::sim {

// An access to a byte, in words.
struct StreamAccess {
  std::string name, stream;  // "scale(float*)", "stream 3"
  std::string place;         // "a.cu:12", or "the host"
  TouchKind kind{};
};

struct StreamRace {
  StreamAccess access, other;            // the later call first
  std::uint64_t address = 0, bytes = 0;  // of the first run that they share
  std::uint64_t count = 0;               // of runs
};

class StreamRaces {
 public:
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 20, kMaxOthers = 64;

  StreamRaces() = default;
  StreamRaces(const StreamRaces&) = delete;
  StreamRaces& operator=(const StreamRaces&) = delete;

  // The touches that follow are those of this operation, which is called `name`.
  void begin(const Operation&, std::string name);
  // `place` is called once for each distinct access, by kind and `id`.
  void touch(std::uint64_t address, std::uint64_t bytes, TouchKind kind, std::uint32_t id,
             const std::function<std::string(std::uint32_t)>& place);
  // The operation's races, one for each pair of accesses.
  std::vector<StreamRace> take();
  // The range was freed, or written by something that is ordered with everything.
  void forget(std::uint64_t address, std::uint64_t bytes);

  std::size_t entries() const { return entries_.size(); }

 private:
  using AccessId = std::uint32_t;  // index in accesses_; 0: none
  using StateId = std::uint32_t;   // index in states_; 0: no history

  // By first address; each extends to the next entry. Bytes before the first have no history.
  using Entries = std::map<std::uint64_t, StateId>;

  struct Access {
    std::uint32_t stream = 0, time = 0;
    StreamAccess words;
  };
  struct State {
    AccessId writer = 0;
    std::vector<AccessId> others;  // later reads and updates, in order
    auto operator<=>(const State&) const = default;
  };
  struct Step {
    StateId next = 0;
    std::vector<AccessId> races;
  };

  AccessId access_id(TouchKind, std::uint32_t id,
                     const std::function<std::string(std::uint32_t)>& place);
  StateId intern(State);
  const Step& step(StateId from, AccessId);
  void report(AccessId mine, AccessId other, std::uint64_t address, std::uint64_t bytes);
  bool before(AccessId) const;
  Entries::iterator split(std::uint64_t at, Entries::iterator from);
  void join(Entries::iterator first, Entries::iterator last);
  void clear();  // all histories
  void collect();

  Entries entries_;
  Entries::iterator cursor_ = entries_.end();  // near the last touch
  std::vector<State> states_{State{}};
  std::map<State, StateId> known_;
  std::vector<Access> accesses_{Access{}};

  // For the current operation.
  Operation now_;
  std::string name_;
  std::map<std::pair<TouchKind, std::uint32_t>, AccessId> ids_;
  std::map<std::pair<TouchKind, std::string>, AccessId> by_place_;
  std::unordered_map<std::uint64_t, Step> steps_;  // by state and access
  std::map<std::pair<AccessId, AccessId>, StreamRace> races_;
};

}  // namespace assay::sim
