// The entrant's own tests on a device: a cache beside a copy of it on the host, whose attention is
// a formula in double. Batches in any order, chunks on a history, forks, rollbacks, refused calls,
// and scores far from 0. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

using Floats = std::vector<float>;

// Device memory that goes back at the end of its scope.
class Memory {
 public:
  explicit Memory(const Floats& contents) : floats_(contents.size()) {
    cudaMalloc(&data_, (floats_ + 1) * sizeof(float));
    cudaMemcpy(data_, contents.data(), floats_ * sizeof(float), cudaMemcpyHostToDevice);
  }
  Memory(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  float* get() const { return data_; }
  Floats read() const {
    Floats host(floats_);
    cudaMemcpy(host.data(), data_, floats_ * sizeof(float), cudaMemcpyDeviceToHost);
    return host;
  }

 private:
  float* data_ = nullptr;
  std::size_t floats_;
};

struct Shape {
  std::int32_t layers = 1, n_q = 4, n_kv = 2, D = 16, slots = 8;
  std::int64_t most_tokens = 10000, longest = 5000;
  float spread = 1;  // of the keys
};

// An entry of a batch: a slot and its number of rows.
using Entry = std::pair<std::int32_t, std::int64_t>;
using Entries = std::vector<Entry>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Tokens of one layer of a slot.
struct History {
  Floats k, v;
};

class Pair {  // a cache and its copy
 public:
  Pair(assay_ctx* ctx, const Shape& shape)
      : stream_(static_cast<cudaStream_t>(ctx->stream)),
        shape_(shape),
        row_(std::int64_t{shape.n_kv} * shape.D),
        copy_(index(shape.slots), std::vector<History>(index(shape.layers))) {
    const kvc_config c{sizeof(kvc_config),
                       ASSAY_F32,
                       shape.layers,
                       shape.n_q,
                       shape.n_kv,
                       shape.D,
                       shape.slots,
                       shape.most_tokens,
                       shape.longest,
                       -1,
                       0,
                       0,
                       0};
    expect(kvc_create(ctx, &c, &cache_) == ASSAY_OK);
  }
  Pair(const Pair&) = delete;
  ~Pair() { kvc_destroy(cache_); }

  bool good() const { return good_; }

  std::int32_t open() {
    std::int32_t slot = -1;
    expect(kvc_seq_new(cache_, &slot) == ASSAY_OK);
    return take(slot);
  }
  std::int32_t fork(std::int32_t from) {
    std::int32_t slot = -1;
    expect(kvc_fork(cache_, from, &slot) == ASSAY_OK);
    if (take(slot) >= 0) copy_[index(slot)] = copy_[index(from)];
    return slot;
  }
  void close(std::int32_t slot) { expect(kvc_seq_free(cache_, slot) == ASSAY_OK); }

  void cut(std::int32_t slot, std::int64_t length, int status = ASSAY_OK) {
    expect(kvc_truncate(cache_, slot, length) == status);
    if (status != ASSAY_OK) return;
    for (History& h : copy_[index(slot)]) {
      h.k.resize(std::min(h.k.size(), index(length * row_)));
      h.v.resize(h.k.size());
    }
  }

  void append(std::int32_t layer, const Entries& entries, int status = ASSAY_OK) {
    if (!good_) return;
    const Batch batch(entries);
    const Floats k = draw(batch.rows() * row_, shape_.spread), v = draw(batch.rows() * row_, 1);
    {
      const Memory on_k(k), on_v(v);
      expect(kvc_append(cache_, layer, batch.size(), batch.slots.data(), batch.cu.data(),
                        on_k.get(), on_v.get()) == status);
      wait();
    }
    for (std::size_t b = 0; status == ASSAY_OK && b < entries.size(); ++b) {
      History& h = copy_[index(entries[b].first)][index(layer)];
      const std::int64_t from = batch.cu[b] * row_, to = batch.cu[b + 1] * row_;
      h.k.insert(h.k.end(), k.begin() + from, k.begin() + to);
      h.v.insert(h.v.end(), v.begin() + from, v.begin() + to);
    }
    for (const Entry& e : entries) expect_length(layer, e.first);
  }

  void attend(std::int32_t layer, const Entries& entries, bool wants_lse = true) {
    if (!good_) return;
    const Batch batch(entries);
    const std::int64_t width = std::int64_t{shape_.n_q} * shape_.D, rows = batch.rows();
    const Floats q = draw(rows * width, 1);
    const Memory on_q(q), on_o(Floats(index(rows * width), NAN)),
        on_lse(Floats(index(rows * shape_.n_q), NAN));
    expect(kvc_attend(cache_, layer, batch.size(), batch.slots.data(), batch.cu.data(), on_q.get(),
                      kScale, on_o.get(), wants_lse ? on_lse.get() : nullptr) == ASSAY_OK);
    wait();
    const Floats o = on_o.read(), lse = on_lse.read();
    for (std::size_t b = 0; b < entries.size(); ++b) {
      const History& h = copy_[index(entries[b].first)][index(layer)];
      const std::int64_t length = static_cast<std::int64_t>(h.k.size()) / row_;
      for (std::int64_t row = batch.cu[b]; row < batch.cu[b + 1]; ++row) {
        const std::int64_t visible = length - (batch.cu[b + 1] - row) + 1;
        for (std::int64_t head = 0; head < shape_.n_q; ++head) {
          const std::int64_t at = row * shape_.n_q + head;
          expect(is_right(h, head, visible, &q[index(at * shape_.D)], &o[index(at * shape_.D)],
                          wants_lse ? &lse[index(at)] : nullptr));
        }
      }
    }
  }

  // New rows in every layer, and attention to them.
  void step(const Entries& entries) {
    for (std::int32_t l = 0; l < shape_.layers; ++l) append(l, entries);
    for (std::int32_t l = 0; l < shape_.layers; ++l) attend(l, entries);
  }

  void read(std::int32_t layer, std::int32_t slot, std::int64_t from, std::int64_t to) {
    if (!good_) return;
    const History& h = copy_[index(slot)][index(layer)];
    const Memory k(Floats(index((to - from) * row_), NAN)),
        v(Floats(index((to - from) * row_), NAN));
    expect(kvc_read(cache_, layer, slot, from, to, k.get(), v.get()) == ASSAY_OK);
    wait();
    expect(k.read() == Floats(h.k.begin() + from * row_, h.k.begin() + to * row_) &&
           v.read() == Floats(h.v.begin() + from * row_, h.v.begin() + to * row_));
  }

  void expect_length(std::int32_t layer, std::int32_t slot) {
    expect(kvc_len(cache_, layer, slot) * row_ ==
           static_cast<std::int64_t>(copy_[index(slot)][index(layer)].k.size()));
  }
  void expect_empty() {
    std::int64_t live = -1, reserved = -1;
    expect(kvc_bytes(cache_, &live, &reserved) == ASSAY_OK && live == 0 && reserved >= 0);
  }

 private:
  static constexpr float kScale = 0.4f;

  struct Batch {
    std::vector<std::int32_t> slots;
    std::vector<std::int64_t> cu{0};
    explicit Batch(const Entries& entries) {
      for (const Entry& e : entries) {
        slots.push_back(e.first);
        cu.push_back(cu.back() + e.second);
      }
    }
    std::int32_t size() const { return static_cast<std::int32_t>(slots.size()); }
    std::int64_t rows() const { return cu.back(); }
  };

  void expect(bool so) { good_ = good_ && so; }
  void wait() { expect(cudaStreamSynchronize(stream_) == cudaSuccess); }
  // A slot that has just been given.
  std::int32_t take(std::int32_t slot) {
    expect(slot >= 0 && slot < shape_.slots);
    if (!good_) return -1;
    for (History& h : copy_[index(slot)]) h = {};
    return slot;
  }
  Floats draw(std::int64_t n, float spread) {
    std::normal_distribution<float> normal(0, spread);
    Floats values(index(n));
    std::generate(values.begin(), values.end(), [&] { return normal(random_); });
    return values;
  }

  bool is_right(const History& h, std::int64_t head, std::int64_t visible, const float* q,
                const float* o, const float* lse) const {
    const std::int64_t first = head / (shape_.n_q / shape_.n_kv) * shape_.D;
    if (visible <= 0) {
      return std::all_of(o, o + shape_.D, [](float x) { return x == 0; }) &&
             (lse == nullptr || *lse == -INFINITY);
    }
    std::vector<double> weights(index(visible));
    double top = -INFINITY, sum = 0, size = 4;
    for (std::int64_t j = 0; j < visible; ++j) {
      double score = 0, terms = 0;
      for (std::int64_t d = 0; d < shape_.D; ++d) {
        const double term = static_cast<double>(kScale) * q[d] * h.k[index(j * row_ + first + d)];
        score += term;
        terms += std::abs(term);
      }
      weights[index(j)] = score;
      top = std::max(top, score);
      size = std::max(size, terms);
    }
    for (double& w : weights) sum += w = std::exp(w - top);
    const double tolerance = 1e-6 * size;
    if (lse != nullptr && !(std::abs(*lse - (top + std::log(sum))) <= tolerance)) return false;
    for (std::int64_t d = 0; d < shape_.D; ++d) {
      double want = 0, terms = 1e-3;
      for (std::int64_t j = 0; j < visible; ++j) {
        const double term = weights[index(j)] / sum * h.v[index(j * row_ + first + d)];
        want += term;
        terms += std::abs(term);
      }
      if (!(std::abs(o[d] - want) <= 2 * tolerance * terms)) return false;
    }
    return true;
  }

  cudaStream_t stream_;
  Shape shape_;
  std::int64_t row_;
  std::vector<std::vector<History>> copy_;
  std::mt19937 random_{17};
  kvc* cache_ = nullptr;
  bool good_ = true;
};

bool grows(assay_ctx* ctx) {
  Pair c(ctx, {.layers = 2});
  const std::int32_t a = c.open(), b = c.open(), d = c.open(), e = c.open();
  if (!c.good()) return false;
  c.attend(0, {{b, 2}, {a, 1}});  // nothing there
  c.step({{a, 37}});
  c.step({{d, 5}, {a, 1}, {e, 0}, {b, 16}});
  for (int i = 0; i < 3; ++i) c.step({{b, 1}, {d, 1}, {a, 1}});
  c.attend(0, {{a, 41}, {d, 20}}, false);
  c.attend(1, {{d, 1}});
  c.attend(0, {{e, 1}, {b, 19}});
  c.append(0, {{e, 3}});  // in one layer only
  c.expect_length(1, e);
  c.attend(0, {{e, 1}});
  c.attend(1, {{e, 1}});
  c.read(0, a, 30, 41);
  c.read(1, d, 0, 8);
  return c.good();
}

bool forks(assay_ctx* ctx) {
  Pair c(ctx, {.layers = 2});
  const std::int32_t a = c.open();
  if (!c.good()) return false;
  c.step({{a, 45}});
  const std::int32_t b = c.fork(a), d = c.fork(b);
  if (!c.good()) return false;
  c.step({{d, 0}, {b, 4}, {a, 3}});
  c.attend(0, {{d, 1}, {a, 1}, {b, 1}});
  c.cut(b, 31);
  c.step({{b, 7}});
  c.close(a);
  c.step({{d, 2}, {b, 1}});
  c.read(1, d, 28, 47);
  c.read(0, b, 0, 39);
  const std::int32_t again = c.open();
  if (!c.good()) return false;
  c.expect_length(0, again);
  c.step({{again, 3}});
  for (const std::int32_t slot : {again, b, d}) c.close(slot);
  c.expect_empty();
  return c.good();
}

bool rolls_back(assay_ctx* ctx) {
  Pair c(ctx, {});
  const std::int32_t a = c.open();
  if (!c.good()) return false;
  c.step({{a, 66}});
  for (const std::int64_t length : {63, 64, 33, 32, 31, 16, 1}) {
    c.cut(a, length);
    c.step({{a, 2}});
  }
  c.cut(a, 4, ASSAY_ESTATE);
  c.cut(a, (std::int64_t{1} << 32) + 1, ASSAY_ESTATE);
  c.expect_length(0, a);
  c.cut(a, 0);
  c.attend(0, {{a, 1}});
  c.step({{a, 18}});
  return c.good();
}

// A batch that does not fit is refused as a whole.
bool refuses(assay_ctx* ctx) {
  Pair c(ctx, {.slots = 3, .most_tokens = 40, .longest = 30});
  const std::int32_t a = c.open(), b = c.open();
  if (!c.good()) return false;
  c.append(0, {{a, 20}, {b, 15}});
  c.append(0, {{a, 3}, {b, 3}}, ASSAY_ECAP);
  c.append(0, {{b, 1}, {a, 11}}, ASSAY_ECAP);
  c.append(0, {{b, 2}, {a, 3}});
  c.append(0, {{b, 1}}, ASSAY_ECAP);
  c.attend(0, {{b, 3}, {a, 4}});
  return c.good();
}

bool other_shapes(assay_ctx* ctx) {
  for (const Shape& shape :
       {Shape{.n_q = 15, .n_kv = 5, .D = 7}, Shape{.n_q = 24, .n_kv = 2},
        Shape{.n_q = 1, .n_kv = 1, .D = 1}, Shape{.D = 128}, Shape{.D = 8, .spread = 60},
        Shape{.n_q = 1, .n_kv = 1, .spread = 2}}) {
    Pair c(ctx, shape);
    const std::int32_t a = c.open(), b = c.open();
    if (!c.good()) return false;
    c.step({{a, 5}, {b, 17}});
    c.step({{b, 1}, {a, 3}});
    if (!c.good()) return false;
  }
  return true;
}

// All scores of some rows lie far below 0.
bool low_scores(assay_ctx* ctx) {
  Pair c(ctx, {.D = 8, .spread = 300000});
  const std::int32_t a = c.open();
  if (!c.good()) return false;
  c.step({{a, 3}});
  for (int i = 0; i < 12; ++i) c.attend(0, {{a, 3}});
  return c.good();
}

bool long_history(assay_ctx* ctx) {
  Pair c(ctx, {.n_q = 2, .n_kv = 1, .D = 4});
  const std::int32_t a = c.open(), b = c.open();
  if (!c.good()) return false;
  c.append(0, {{a, 700}, {b, 1300}});
  c.attend(0, {{b, 1}, {a, 2}});
  c.attend(0, {{a, 6}});
  return c.good();
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  for (const auto test :
       {grows, forks, rolls_back, refuses, other_shapes, low_scores, long_history}) {
    if (!test(ctx)) return 1;
  }
  return 0;
}
