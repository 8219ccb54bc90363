#include "sim/runtime/stream_order.h"

#include <algorithm>

namespace assay::sim::cuda {
namespace {

void join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

StreamOrder::StreamOrder() { streams_.push_back({{0}, true, 1}); }

StreamOrder::Index StreamOrder::open(bool blocking) {
  Index at = 1;
  const auto is_free = [&](Index s) {
    return streams_[s].users == 0 && (time(s) == 0 || host_knows(s, time(s)));
  };
  while (at < streams_.size() && !is_free(at)) ++at;
  if (at == kMaxStreams) {
    --at;
  } else {
    if (at == streams_.size()) streams_.push_back({Clock(at + 1), blocking, 0});
    streams_[at].blocking = blocking;
  }
  streams_[at].blocking |= blocking;  // streams that share an index are ordered more than necessary
  ++streams_[at].users;
  return at;
}

void StreamOrder::close(Index s) { --streams_[s].users; }

void StreamOrder::enter(Index s) {
  Stream& stream = streams_[s];
  join(stream.clock, host_);
  if (s == kLegacy) {
    for (const Stream& other : streams_)
      if (other.blocking) join(stream.clock, other.clock);
  } else if (stream.blocking) {
    join(stream.clock, streams_[kLegacy].clock);
  }
}

std::uint32_t StreamOrder::issue(Index s) {
  enter(s);
  return ++time(s);
}

Clock StreamOrder::record(Index s) {
  enter(s);
  return clock(s);
}

void StreamOrder::wait(Index s, const Clock& event) {
  enter(s);
  join(streams_[s].clock, event);
}

void StreamOrder::host_waits_for(Index s) {
  if (s == kLegacy) enter(s);
  join(host_, clock(s));
}

void StreamOrder::host_waits_for(const Clock& event) { join(host_, event); }

bool StreamOrder::host_knows_all() const {
  for (Index s = 0; s < streams_.size(); ++s) {
    const std::uint32_t time = streams_[s].clock[s];
    if (time > 0 && !host_knows(s, time)) return false;
  }
  return true;
}

void StreamOrder::host_waits_for_all() {
  for (const Stream& s : streams_) join(host_, s.clock);
}

}  // namespace assay::sim::cuda
