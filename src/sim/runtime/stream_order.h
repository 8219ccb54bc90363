// Which operations of a program happened before which: vector clocks of its streams and of its host
// code, after Lamport and Mattern. Knows the rules of CUDA's streams, but no CUDA types.
//
// What orders operations (CUDA Runtime API, "Stream synchronization behavior", "API synchronization
// behavior"): an operation comes after what its stream did before, and after everything that the
// host knew when it issued it. The legacy default stream waits for all blocking streams before each
// operation, and they wait for it. An event stands for its stream's work so far. The host knows
// what it has waited for.
//
// The host counts as one: what one of its threads waited for, all know. Threads notify one another
// by means that are invisible here (mutexes, flags), and treating them as unordered would accuse
// correct programs. The same applies to functions that a stream calls on the host.
//
// Streams. Each has an index in clocks, which a later stream may reuse once the host knows that the
// earlier stream's work is done. When kMaxStreams are in use at a time, further ones share the last
// index: races between those are missed.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/operation.h"

namespace assay::sim::cuda {

class StreamOrder {
 public:
  using Index = std::uint32_t;
  static constexpr Index kLegacy = 0;

  StreamOrder();

  Index open(bool blocking);
  void close(Index);
  // Whether the program ever had more streams than the legacy one; until then everything is in
  // order.
  bool concurrent() const { return streams_.size() > 1; }

  // Issues an operation in the stream. Returns its number there, from 1; clock() is then its clock.
  std::uint32_t issue(Index);
  const Clock& clock(Index s) const { return streams_[s].clock; }

  // An event: record() returns what it stands for; wait() makes a stream wait for one.
  Clock record(Index);
  void wait(Index, const Clock& event);

  void host_waits_for(Index);
  void host_waits_for(const Clock& event);
  void host_waits_for_all();
  // Whether the host knows that an operation is done.
  bool host_knows(Index s, std::uint32_t time) const { return knows(host_, s, time); }
  bool host_knows_all() const;

 private:
  struct Stream {
    Clock clock;
    bool blocking = true;
    std::uint32_t users = 0;  // streams of the program that have this index
  };
  // Called when the stream does something: applies what the host knows and the default stream's
  // rule.
  void enter(Index);
  std::uint32_t& time(Index s) { return streams_[s].clock[s]; }

  std::vector<Stream> streams_;
  Clock host_;
};

}  // namespace assay::sim::cuda
