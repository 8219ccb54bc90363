// Compiles the scripts of spec.json that depend on the seed: random operations within limits, and
// ragged batches.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "assay/random.h"
#include "assay/size.h"
#include "script_builder.h"

namespace assay::kv_cache {
namespace {

using nlohmann::json;

template <class T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[to_size(random.below(static_cast<std::int64_t>(i)))]);
  }
}

// A script of random operations on a few sequences, all freed at its end. Its use of resources
// stays within limits that depend on the spec alone, and is padded up to them.
class RandomScript {
 public:
  RandomScript(const CaseSpec& spec, std::uint64_t seed)
      : limits_(spec.params.at("random")),
        steps_(limits_.at("steps")),
        most_(limits_.at("sequences")),
        tokens_(limits_.at("tokens")),
        rows_(limits_.at("rows")),
        defragments_(limits_.value("defragment", false)),
        builder_(spec, 2 * most_),
        random_(seed) {
    for (std::int64_t v = 0; v < 2 * most_; ++v) idle_.push_back(v);
  }

  Script run() {
    builder_.create(0, 0);
    for (std::int64_t i = 0; i < steps_; ++i) step();
    shuffle(live_, random_);
    for (const std::int64_t v : live_) builder_.close(0, v);
    builder_.bytes(0, kMetric);
    return padded(builder_.take());
  }

 private:
  Script padded(Script s) const {
    const kvc_config& c = s.params.config[0];
    // A statement takes at most two operations per layer; a batch names each sequence at most once.
    const auto n_ops = to_size(2 * c.n_layers * steps_ + 3 * most_ + 3);
    s.ops.resize(n_ops, Op{});
    s.pool.resize(n_ops * to_size(2 * most_ + 1), 0);
    s.k[0] = tokens_ * c.n_kv * c.D;
    s.v[0] = tokens_ * c.n_kv * c.Dv;
    s.q[0] = rows_ * c.n_q * c.D;
    s.o = rows_ * c.n_q * c.Dv;
    s.lse = rows_ * c.n_q;
    s.read_k = tokens_ * c.n_kv * c.D;
    s.read_v = tokens_ * c.n_kv * c.Dv;
    return s;
  }

  std::int64_t any() { return live_[to_size(random_.below(std::ssize(live_)))]; }

  std::int64_t length(std::int64_t v, std::int64_t layer) const {
    return builder_.model().sequence(v).layers[to_size(layer)].length;
  }

  void step() {
    if (defragments_ && random_.below(12) == 0) return builder_.defragment(0, 0);
    const std::int64_t dice = random_.below(100);
    if (live_.empty() || dice < 8) return open();
    if (dice < 14) return close();
    if (dice < 22) return fork();
    if (dice < 31) return truncate();
    if (dice < 64) return append();
    if (dice < 86) return attend();
    if (dice < 90) return builder_.length(0, random_.below(layers()), any());
    if (dice < 95) return read();
    if (dice < 98) return builder_.bytes(0, 0);
    refused();
  }

  std::int64_t layers() const { return builder_.config(0).n_layers; }
  std::int64_t window() const { return builder_.config(0).window; }
  bool has_room() const { return std::ssize(live_) < most_; }

  std::int64_t take_idle() {
    const auto at = random_.below(std::ssize(idle_));
    std::swap(idle_[to_size(at)], idle_.back());
    const std::int64_t v = idle_.back();
    idle_.pop_back();
    live_.push_back(v);
    return v;
  }

  void open() {
    if (!has_room()) return;
    builder_.open(0, take_idle(), 0);
    drop_if_refused();
  }

  void close() {
    const auto at = to_size(random_.below(std::ssize(live_)));
    const std::int64_t v = live_[at];
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
    idle_.push_back(v);
    builder_.close(0, v);
  }

  void fork() {
    if (!has_room()) return;
    const std::int64_t from = any();
    builder_.fork(0, from, take_idle(), 0);
    drop_if_refused();
  }

  // A full cache gives no slot.
  void drop_if_refused() {
    if (builder_.model().alive(live_.back(), 0)) return;
    idle_.push_back(live_.back());
    live_.pop_back();
  }

  void truncate() {
    if (window() > 0) return;  // truncations of windowed caches are bounded; text scripts have them
    const std::int64_t v = any(), longest = builder_.model().sequence(v).longest();
    const std::int64_t cut = random_.below(4) == 0
                                 ? random_.below(longest + 1)
                                 : random_.below(std::min<std::int64_t>(longest, 9) + 1);
    builder_.truncate(0, v, longest - cut);
  }

  std::vector<std::int64_t> some() {
    std::vector<std::int64_t> all = live_;
    shuffle(all, random_);
    all.resize(to_size(1 + random_.below(std::ssize(all))));
    return all;
  }

  void append() {
    Entries entries;
    std::int64_t sum = 0;
    for (const std::int64_t v : some()) {
      entries.emplace_back(v, random_.below(5) == 0 ? random_.below(40) : random_.below(4));
      sum += entries.back().second;
    }
    if (used_tokens_ + layers() * sum > tokens_) return;
    // Occasionally only one layer, so that lengths differ.
    const std::int64_t only = random_.below(6) == 0 ? random_.below(layers()) : -1;
    for (std::int64_t l = 0; l < layers(); ++l) {
      if (only >= 0 && l != only) continue;
      used_tokens_ += sum;
      builder_.append(0, l, entries, 0);
    }
  }

  void attend() {
    Entries entries;
    std::int64_t sum = 0;
    for (const std::int64_t v : some()) {
      entries.emplace_back(v, random_.below(5) == 0 ? random_.below(9) : random_.below(2));
      sum += entries.back().second;
    }
    if (used_rows_ + sum > rows_) return;
    used_rows_ += sum;
    builder_.attend(0, random_.below(layers()), entries, 0);
  }

  void read() {
    const std::int64_t v = any(), l = random_.below(layers()), n = length(v, l);
    const std::int64_t first = window() > 0 ? std::max<std::int64_t>(0, n - window() + 1) : 0;
    const std::int64_t t0 = first + random_.below(n - first + 1),
                       t1 = t0 + random_.below(n - t0 + 1);
    if (read_ + t1 - t0 > tokens_) return;
    read_ += t1 - t0;
    builder_.read(0, l, v, t0, t1, 0);
  }

  // Calls that must fail and change nothing.
  void refused() {
    const std::int64_t v = any();
    switch (random_.below(4)) {
      case 0: return builder_.truncate(0, v, builder_.model().sequence(v).longest() + 1);
      case 1: return builder_.close(0, -builder_.config(0).max_seqs - 2);
      case 2: return builder_.append(0, random_.below(layers()), {{v, 0}, {v, 0}}, 0);
      default: return builder_.attend(0, layers(), {{v, 0}}, 0);
    }
  }

  json limits_;
  std::int64_t steps_, most_, tokens_, rows_;
  bool defragments_;  // occasionally
  ScriptBuilder builder_;
  Random random_;
  std::vector<std::int64_t> live_, idle_;
  std::int64_t used_tokens_ = 0, used_rows_ = 0, read_ = 0;
};

}  // namespace

Script compile_random(const CaseSpec& spec, std::uint64_t seed) {
  return RandomScript(spec, seed).run();
}

// n sequences with lengths high / rank, shuffled by the seed, then some decode steps that visit
// them in changing order.
Script compile_ragged(const CaseSpec& spec, std::uint64_t seed) {
  const json& j = spec.params.at("ragged");
  const std::int64_t n = j.at("sequences"), low = j.at("low"), high = j.at("high"),
                     steps = j.at("steps");
  Random random(seed);
  ScriptBuilder builder(spec, n);
  std::vector<std::int64_t> lengths, order;
  for (std::int64_t i = 0; i < n; ++i) {
    lengths.push_back(std::max(low, high / (i + 1)));
    order.push_back(i);
  }
  shuffle(lengths, random);
  const auto batch = [&](const auto& rows_of) {
    Entries entries;
    shuffle(order, random);
    for (const std::int64_t v : order) entries.emplace_back(v, rows_of(v));
    return entries;
  };
  builder.create(0, 0);
  for (std::int64_t i = 0; i < n; ++i) builder.open(0, i, 0);
  builder.append(0, 0, batch([&](std::int64_t v) { return lengths[to_size(v)]; }), 0);
  builder.next_phase();
  for (std::int64_t i = 0; i < steps; ++i) {
    const Entries one = batch([](std::int64_t) { return 1; });
    builder.append(0, 0, one, 0);
    builder.attend(0, 0, one, 0);
  }
  builder.next_phase();
  builder.bytes(0, kMetric);
  if (spec.group != CaseGroup::timed) builder.read_any(0, random);
  return builder.take();
}

}  // namespace assay::kv_cache
