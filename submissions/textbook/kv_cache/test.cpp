// The entrant's own tests: small scripts against histories kept as plain rows, attention in double.
// Returns 0 if the implementation linked with it is accepted.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

using Vector = std::vector<float>;
using Batch = std::vector<std::pair<int, int>>;  // sequence, rows

// The context's allocator, with a count of what is held.
struct Counter {
  assay_ctx ctx;
  assay_ctx* base;
  std::map<void*, std::int64_t> blocks;
  std::int64_t held = 0;

  explicit Counter(assay_ctx* given) : ctx(*given), base(given) {
    ctx.priv = this;
    ctx.alloc = [](assay_ctx* c, std::size_t bytes, std::size_t align, int space) {
      auto* self = static_cast<Counter*>(c->priv);
      void* p = self->base->alloc(self->base, bytes, align, space);
      if (p != nullptr) self->held += self->blocks[p] = static_cast<std::int64_t>(bytes);
      return p;
    };
    ctx.free = [](assay_ctx* c, void* p) {
      auto* self = static_cast<Counter*>(c->priv);
      const auto block = self->blocks.find(p);
      if (block != self->blocks.end()) {
        self->held -= block->second;
        self->blocks.erase(block);
      }
      self->base->free(self->base, p);
    };
  }
};

// A cache beside its model. Sequences are numbered by the test; everything that differs is counted.
// Once something did, nothing more is called: what follows could crash.
class Pair {
 public:
  Pair(assay_ctx* ctx, const kvc_config& config) : counter_(ctx), c_(config), random_(7) {
    if (c_.Dv == 0) c_.Dv = c_.D;
    supported_ = kvc_create(&counter_.ctx, &config, &cache_) == ASSAY_OK;
  }
  ~Pair() {
    if (cache_ != nullptr && good_) kvc_destroy(cache_);
  }
  Pair(const Pair&) = delete;

  bool supported() const { return supported_; }
  float tolerance = 2e-5f, query = 1;
  int spike = 0;              // every so many keys, one that stands out
  std::vector<int> channels;  // of keys that are large
  bool scribble = false;

  // Ends the cache: the verdict on all that was done.
  bool good() {
    if (!supported_) return true;
    if (good_) {
      kvc_destroy(cache_);
      cache_ = nullptr;
      check(counter_.held == 0);
    }
    return good_;
  }

  void open(int s) {
    if (!good_) return;
    check(kvc_seq_new(cache_, &slot_[s]) == ASSAY_OK);
    held_[s].assign(static_cast<std::size_t>(c_.n_layers), {});
  }
  void close(int s) {
    if (!good_) return;
    check(kvc_seq_free(cache_, slot_[s]) == ASSAY_OK);
    held_.erase(s);
  }
  void fork(int from, int to) {
    if (!good_) return;
    check(kvc_fork(cache_, slot_[from], &slot_[to]) == ASSAY_OK);
    held_[to] = held_[from];
  }
  void truncate(int s, std::size_t n) {
    if (!good_) return;
    check(kvc_truncate(cache_, slot_[s], static_cast<std::int64_t>(n)) == ASSAY_OK);
    for (auto& layer : held_[s]) {
      if (layer.size() > n) layer.resize(n);
    }
  }

  void append(const Batch& batch, int layer, int expect = ASSAY_OK) {
    if (!good_) return;
    const auto [slots, cu] = packed(batch);
    Vector k = normal(cu.back() * c_.n_kv * c_.D), v = normal(cu.back() * c_.n_kv * c_.Dv);
    for (std::size_t i = 0; i < k.size(); ++i) {
      for (const int channel : channels)
        k[i] *= static_cast<int>(i) % c_.D == channel ? 50.0f : 1.0f;
      const auto row = static_cast<int>(i) / (c_.n_kv * c_.D);
      if (spike > 0 && row % spike == spike - 1) k[i] += 30;
    }
    const Vector kept_k = k, kept_v = v;
    check(kvc_append(cache_, layer, static_cast<std::int32_t>(slots.size()), slots.data(),
                     cu.data(), k.data(), v.data()) == expect);
    if (scribble) std::fill(k.begin(), k.end(), 9.0f), std::fill(v.begin(), v.end(), 9.0f);
    alive_.push_back(std::move(k));
    alive_.push_back(std::move(v));
    for (std::size_t b = 0; b < batch.size() && expect == ASSAY_OK; ++b) {
      for (std::int64_t t = cu[b]; t < cu[b + 1]; ++t) {
        held_[batch[b].first][static_cast<std::size_t>(layer)].push_back(
            {slice(kept_k, t, c_.n_kv * c_.D), slice(kept_v, t, c_.n_kv * c_.Dv)});
      }
    }
    for (const auto& [s, rows] : batch) {
      check(kvc_len(cache_, layer, slot_[s]) ==
            static_cast<std::int64_t>(held_[s][static_cast<std::size_t>(layer)].size()));
    }
  }

  void attend(const Batch& batch, int layer) {
    if (!good_) return;
    const auto [slots, cu] = packed(batch);
    Vector q = normal(cu.back() * c_.n_q * c_.D),
           o(static_cast<std::size_t>(cu.back() * c_.n_q * c_.Dv), 7.0f);
    for (std::size_t i = 0; i < q.size(); ++i) {
      q[i] *= query;
      if (spike > 0) q[i] += 1;
      for (const int channel : channels)
        q[i] *= static_cast<int>(i) % c_.D == channel ? 0.1f : 1.0f;
    }
    Vector lse(static_cast<std::size_t>(cu.back() * c_.n_q));
    check(kvc_attend(cache_, layer, static_cast<std::int32_t>(slots.size()), slots.data(),
                     cu.data(), q.data(), scale(), o.data(), lse.data()) == ASSAY_OK);
    error_ = norm_ = 0;
    for (std::size_t b = 0; b < batch.size() && good_; ++b) {
      for (std::int64_t t = cu[b]; t < cu[b + 1]; ++t) {
        const auto& tokens = held_[batch[b].first][static_cast<std::size_t>(layer)];
        const std::int64_t position = static_cast<std::int64_t>(tokens.size()) - (cu[b + 1] - t);
        for (int h = 0; h < c_.n_q; ++h) compare(tokens, position, h, q, o, lse, t * c_.n_q + h);
      }
    }
    check(std::sqrt(error_) <= static_cast<double>(tolerance) * std::sqrt(norm_) + 1e-6);
  }

  void step(const Batch& batch) {
    for (int l = 0; l < c_.n_layers; ++l) {
      append(batch, l);
      attend(batch, l);
    }
  }

  // Bytes add up, and are at most `most` if that is positive.
  void bytes(std::int64_t most = 0) {
    if (!good_) return;
    std::int64_t live = -1, reserved = -1;
    check(kvc_bytes(cache_, &live, &reserved) == ASSAY_OK);
    check(reserved == counter_.held && live >= 0 && live <= reserved);
    if (held_.empty()) check(live == 0);
    if (most > 0) check(reserved <= most);
  }

  void check(bool condition) { good_ = good_ && condition; }
  kvc* cache() { return cache_; }
  std::int32_t slot(int s) { return slot_[s]; }

 private:
  struct Token {
    Vector k, v;
  };

  float scale() const { return 1 / std::sqrt(static_cast<float>(c_.D)); }

  Vector normal(std::int64_t n) {
    std::normal_distribution<float> distribution;
    Vector out(static_cast<std::size_t>(n));
    for (float& x : out) x = distribution(random_);
    return out;
  }
  static Vector slice(const Vector& v, std::int64_t row, std::int64_t n) {
    return {v.begin() + row * n, v.begin() + (row + 1) * n};
  }

  std::pair<std::vector<std::int32_t>, std::vector<std::int64_t>> packed(const Batch& batch) {
    std::vector<std::int32_t> slots;
    std::vector<std::int64_t> cu{0};
    for (const auto& [s, rows] : batch) {
      slots.push_back(slot_[s]);
      cu.push_back(cu.back() + rows);
    }
    return {slots, cu};
  }

  void compare(const std::vector<Token>& tokens, std::int64_t position, int h, const Vector& q,
               const Vector& o, const Vector& lse, std::int64_t at) {
    const int kv = h / (c_.n_q / c_.n_kv);
    std::vector<double> want(static_cast<std::size_t>(c_.Dv)), scores;
    double sum = 0, most = -HUGE_VAL;
    for (std::int64_t j = 0; j <= position; ++j) {
      double dot = 0;
      for (int d = 0; d < c_.D; ++d) {
        dot += static_cast<double>(q[static_cast<std::size_t>(at * c_.D + d)]) *
               static_cast<double>(
                   tokens[static_cast<std::size_t>(j)].k[static_cast<std::size_t>(kv * c_.D + d)]);
      }
      const bool seen = c_.window < 0 || j > position - c_.window;
      scores.push_back(seen ? dot * static_cast<double>(scale()) : -HUGE_VAL);
      most = std::max(most, scores.back());
    }
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double p = std::exp(scores[j] - most);
      sum += p;
      for (std::size_t d = 0; d < want.size(); ++d) {
        want[d] += p * static_cast<double>(tokens[j].v[static_cast<std::size_t>(kv * c_.Dv) + d]);
      }
    }
    for (std::size_t d = 0; d < want.size(); ++d) {
      const double x = sum > 0 ? want[d] / sum : 0;
      const double got = static_cast<double>(o[static_cast<std::size_t>(at * c_.Dv) + d]);
      check(std::isfinite(got));
      error_ += (got - x) * (got - x);
      norm_ += x * x;
    }
    const double got = static_cast<double>(lse[static_cast<std::size_t>(at)]);
    if (sum > 0) {
      check(std::abs(got - most - std::log(sum)) <=
            50 * static_cast<double>(tolerance) * (1 + std::abs(most) / 100));
    } else {
      check(got == -HUGE_VAL);
    }
  }

  Counter counter_;
  kvc_config c_;
  kvc* cache_ = nullptr;
  std::mt19937 random_;
  bool supported_ = false, good_ = true;
  double error_ = 0, norm_ = 0;
  std::map<int, std::int32_t> slot_;
  std::map<int, std::vector<std::vector<Token>>> held_;
  std::vector<Vector> alive_;
};

kvc_config config(int layers, int n_q, int n_kv, int D) {
  return {sizeof(kvc_config), ASSAY_F32, layers, n_q, n_kv, D, 9, 1 << 20, 1 << 20, -1, 0, 0, 0};
}

bool batches(assay_ctx* ctx) {
  Pair p(ctx, config(2, 6, 2, 32));
  for (int s = 0; s < 4; ++s) p.open(s);
  p.append({{2, 5}, {0, 33}, {3, 1}}, 0);
  p.append({{0, 33}, {3, 1}, {2, 5}}, 1);
  p.attend({{3, 1}, {1, 1}, {0, 1}}, 0);
  p.attend({{0, 2}}, 1);
  p.step({{1, 7}, {2, 1}});
  p.step({{2, 1}, {0, 17}});
  p.append({{0, 9}}, 0);
  p.attend({{0, 9}}, 0);
  p.attend({{0, 50}}, 1);
  p.attend({{2, 1}, {0, 1}}, 1);
  p.bytes();
  return p.good();
}

bool edges(assay_ctx* ctx) {
  Pair p(ctx, config(1, 1, 1, 16));
  p.open(0);
  p.scribble = true;
  p.append({{0, 14}}, 0);
  for (int i = 0; i < 120; ++i) p.step({{0, 1}});
  p.attend({{0, 140}}, 0);
  return p.good();
}

bool lives(assay_ctx* ctx) {
  Pair p(ctx, config(2, 2, 1, 16));
  p.open(0);
  p.step({{0, 45}});
  p.fork(0, 1);
  p.step({{0, 3}});
  p.step({{1, 4}});
  p.attend({{0, 2}, {1, 2}}, 1);
  p.truncate(1, 41);
  p.step({{1, 2}, {0, 1}});
  p.truncate(0, 64 - 31);
  p.step({{0, 1}});
  p.close(0);
  p.open(2);
  p.step({{2, 3}, {1, 1}});
  p.fork(1, 3);
  p.close(1);
  p.step({{3, 40}});
  p.close(2);
  p.close(3);
  p.bytes();
  return p.good();
}

bool budget(assay_ctx* ctx) {
  kvc_config c = config(1, 1, 1, 8);
  c.max_tokens = 20;
  Pair p(ctx, c);
  p.open(0);
  p.open(1);
  p.append({{0, 10}}, 0);
  p.append({{1, 5}, {0, 6}}, 0, ASSAY_ECAP);
  p.append({{1, 10}}, 0);
  p.attend({{0, 1}, {1, 1}}, 0);
  return p.good();
}

bool spikes(assay_ctx* ctx) {
  Pair p(ctx, config(1, 2, 1, 16));
  p.spike = 301;
  p.open(0);
  p.append({{0, 700}}, 0);
  p.attend({{0, 600}}, 0);
  return p.good();
}

bool long_history(assay_ctx* ctx) {
  Pair p(ctx, config(1, 1, 1, 4));
  p.open(0);
  p.append({{0, 100003}}, 0);
  p.attend({{0, 1}}, 0);
  return p.good();
}

bool window(assay_ctx* ctx) {
  kvc_config c = config(1, 2, 1, 16);
  c.window = 5;
  Pair p(ctx, c);
  if (!p.supported()) return true;
  p.open(0);
  p.step({{0, 40}});
  p.step({{0, 1}});
  for (int i = 0; i < 60; ++i) p.append({{0, 64}}, 0);
  p.attend({{0, 3}}, 0);
  p.bytes(2 * 16 * 4 * 1000);
  return p.good();
}

bool packed(assay_ctx* ctx, bool large_channels) {
  kvc_config c = config(1, 2, 1, 128);
  c.quant = 8;
  Pair p(ctx, c);
  if (!p.supported()) return true;
  p.tolerance = large_channels ? 0.04f : 0.015f;
  if (large_channels) p.channels = {3, 40, 70, 100};
  p.open(0);
  p.append({{0, 1024}}, 0);
  p.attend({{0, 4}}, 0);
  p.bytes(2 * 128 * 1024 * 3 / 2);
  return p.good();
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  const bool good = batches(ctx) && edges(ctx) && lives(ctx) && budget(ctx) && spikes(ctx) &&
                    long_history(ctx) && window(ctx) && packed(ctx, false) && packed(ctx, true);
  return good ? 0 : 1;
}
