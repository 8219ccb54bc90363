#include "sim/memory/stream_races.h"

#include <algorithm>
#include <iterator>

namespace assay::sim {
namespace {

bool conflict(TouchKind a, TouchKind b) {
  return a != b || a == TouchKind::write;  // two reads do not conflict, nor do two updates
}

constexpr std::size_t kCollectAt = std::size_t{1} << 16;  // states or accesses

}  // namespace

void StreamRaces::begin(const Operation& operation, std::string name) {
  now_ = operation;
  name_ = std::move(name);
  ids_.clear();
  by_place_.clear();
  steps_.clear();
  races_.clear();
  if (states_.size() > kCollectAt || accesses_.size() > kCollectAt) collect();
}

void StreamRaces::touch(std::uint64_t address, std::uint64_t bytes, TouchKind kind,
                        std::uint32_t id, const std::function<std::string(std::uint32_t)>& place) {
  if (bytes == 0) return;
  if (entries_.size() >= kMaxEntries || states_.size() >= kMaxEntries) clear();
  const AccessId access = access_id(kind, id, place);
  const std::uint64_t end = address + bytes;
  const auto first = split(address, cursor_), last = split(end, first);
  for (auto at = first; at != last; ++at) {
    const Step& next = step(at->second, access);
    for (const AccessId other : next.races)
      report(access, other, at->first, std::next(at)->first - at->first);
    at->second = next.next;
  }
  join(first, last);
}

std::vector<StreamRace> StreamRaces::take() {
  std::vector<StreamRace> all;
  for (auto& [pair, race] : races_) all.push_back(std::move(race));
  races_.clear();
  return all;
}

void StreamRaces::forget(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || entries_.empty()) return;
  const auto first = split(address, entries_.end()), last = split(address + bytes, first);
  for (auto at = first; at != last; ++at) at->second = 0;
  join(first, last);
}

// Instructions of one source line count as one access.
StreamRaces::AccessId StreamRaces::access_id(
    TouchKind kind, std::uint32_t id, const std::function<std::string(std::uint32_t)>& place) {
  const auto [at, fresh] = ids_.try_emplace({kind, id}, 0);
  if (!fresh) return at->second;
  std::string text = place(id);
  const auto [same, is_new] =
      by_place_.try_emplace({kind, text}, static_cast<AccessId>(accesses_.size()));
  if (is_new) accesses_.push_back({now_.stream, now_.time, {name_, now_.stream_name, text, kind}});
  return at->second = same->second;
}

StreamRaces::StateId StreamRaces::intern(State state) {
  const auto [at, fresh] = known_.try_emplace(state, static_cast<StateId>(states_.size()));
  if (fresh) states_.push_back(std::move(state));
  return at->second;
}

bool StreamRaces::before(AccessId a) const {
  return now_.knows(accesses_[a].stream, accesses_[a].time);
}

const StreamRaces::Step& StreamRaces::step(StateId from, AccessId access) {
  const auto [at, fresh] = steps_.try_emplace(std::uint64_t{from} << 32 | access);
  Step& out = at->second;
  if (!fresh) return out;
  const TouchKind kind = accesses_[access].words.kind;
  const auto races_with = [&](AccessId a) {
    return !before(a) && conflict(kind, accesses_[a].words.kind);
  };
  State next = states_[from];
  if (next.writer != 0 && races_with(next.writer)) out.races.push_back(next.writer);
  std::ranges::copy_if(next.others, std::back_inserter(out.races), races_with);
  if (kind == TouchKind::write) {
    next = {access, {}};
  } else {
    // An operation that is ordered after this access is ordered after those before it too. But such
    // an earlier access can only be dropped if it conflicts with the same kinds of accesses, that
    // is, if it is of the same kind.
    std::erase_if(next.others,
                  [&](AccessId a) { return before(a) && (accesses_[a].words.kind == kind); });
    if (next.others.size() == kMaxOthers) next.others.erase(next.others.begin());
    next.others.push_back(access);
  }
  out.next = intern(std::move(next));
  return out;
}

void StreamRaces::report(AccessId mine, AccessId other, std::uint64_t address,
                         std::uint64_t bytes) {
  StreamRace& race = races_[{mine, other}];
  if (race.count++ != 0) return;
  race.access = accesses_[mine].words;
  race.other = accesses_[other].words;
  race.address = address;
  race.bytes = bytes;
}

// Returns the entry that begins there, splitting one if needed. Touches mostly ascend, so the
// search starts just after `from`.
StreamRaces::Entries::iterator StreamRaces::split(std::uint64_t at, Entries::iterator from) {
  constexpr int kSteps = 8;
  auto after = from;
  if (from != entries_.end() && from->first <= at) {
    int steps = 0;
    while (after != entries_.end() && after->first <= at && ++steps <= kSteps) ++after;
    if (steps > kSteps) after = entries_.upper_bound(at);
  } else {
    after = entries_.upper_bound(at);
  }
  if (after == entries_.begin()) return entries_.emplace_hint(after, at, 0);
  const auto there = std::prev(after);
  return there->first == at ? there : entries_.emplace_hint(after, at, there->second);
}

// Merges neighbouring entries with the same history, from `first` to `last` and those around them.
void StreamRaces::join(Entries::iterator first, Entries::iterator last) {
  const std::uint64_t end = last->first;
  auto at = first == entries_.begin() ? first : std::prev(first);
  for (auto next = std::next(at); next != entries_.end() && at->first <= end;
       next = std::next(at)) {
    if (next->second == at->second) {
      entries_.erase(next);
    } else {
      at = next;
    }
  }
  cursor_ = at;
  if (const auto begin = entries_.begin(); begin->second == 0) {
    if (cursor_ == begin) ++cursor_;
    entries_.erase(begin);
  }
}

void StreamRaces::clear() {
  entries_.clear();
  cursor_ = entries_.end();
  states_.assign(1, {});
  known_.clear();
  accesses_.assign(1, {});
  ids_.clear();
  by_place_.clear();
  steps_.clear();
}

// Drops states and accesses that no entry refers to any more.
void StreamRaces::collect() {
  const std::vector<State> states = std::exchange(states_, {State{}});
  const std::vector<Access> accesses = std::exchange(accesses_, {Access{}});
  known_.clear();
  std::vector<StateId> new_state(states.size(), 0);
  std::vector<AccessId> new_access(accesses.size(), 0);
  const auto moved = [&](AccessId a) {
    if (a == 0 || new_access[a] != 0) return new_access[a];
    accesses_.push_back(accesses[a]);
    return new_access[a] = static_cast<AccessId>(accesses_.size() - 1);
  };
  for (auto& [begin, state] : entries_) {
    if (state == 0) continue;
    if (new_state[state] == 0) {
      State s{moved(states[state].writer), {}};
      for (const AccessId a : states[state].others) s.others.push_back(moved(a));
      new_state[state] = intern(std::move(s));
    }
    state = new_state[state];
  }
  if (accesses_.size() > kMaxEntries || states_.size() > kMaxEntries) clear();
}

}  // namespace assay::sim
