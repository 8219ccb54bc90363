// Races between operations of a device: two that access one byte of global memory, at least one of
// them writing, that nothing orders. Found whatever order they ran in.
//
// For each byte: the last operation that wrote it, and those since that read or updated it and are
// not ordered before one another. Neighbouring bytes with one history share an entry. Two atomic
// updates do not race. What is known of an operation is when it happened; whether it was before the
// present one, the clock of the present one says (sim/operation.h).
//
// Bounds: kMaxEntries entries and as many histories (some 100 MB); beyond them all histories are
// forgotten. Of reads and updates since the last write kMaxOthers; beyond them the oldest is
// forgotten. Races with what was forgotten are missed, and nothing is reported that is none.
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

  // The touches to come are those of this operation, which is called `name`.
  void begin(const Operation&, std::string name);
  // `place` is asked for once for each access that is told apart: by kind and `id`.
  void touch(std::uint64_t address, std::uint64_t bytes, TouchKind kind, std::uint32_t id,
             const std::function<std::string(std::uint32_t)>& place);
  // Those of the operation, one for each pair of accesses.
  std::vector<StreamRace> take();
  // The range was freed, or written by who is ordered with everything.
  void forget(std::uint64_t address, std::uint64_t bytes);

  std::size_t entries() const { return entries_.size(); }

 private:
  using AccessId = std::uint32_t;  // index in accesses_; 0: none
  using StateId = std::uint32_t;   // index in states_; 0: no history

  // By the first address: up to the next entry. Bytes before the first have no history.
  using Entries = std::map<std::uint64_t, StateId>;

  struct Access {
    std::uint32_t stream = 0, time = 0;
    StreamAccess words;
  };
  struct State {
    AccessId writer = 0;
    std::vector<AccessId> others;  // reads and updates since, as they happened
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

  // Of the present operation.
  Operation now_;
  std::string name_;
  std::map<std::pair<TouchKind, std::uint32_t>, AccessId> ids_;
  std::map<std::pair<TouchKind, std::string>, AccessId> by_place_;
  std::unordered_map<std::uint64_t, Step> steps_;  // by state and access
  std::map<std::pair<AccessId, AccessId>, StreamRace> races_;
};

}  // namespace assay::sim
