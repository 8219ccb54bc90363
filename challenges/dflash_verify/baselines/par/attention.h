// Attention of the nodes of trees: all query rows of a key head pass over a tile of keys.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "abi.h"
#include "shared/baselines/threads.h"
#include "vectors.h"

namespace {

constexpr int kRows = 2 * kLanes;        // query rows of a block
constexpr std::int64_t kTile = 64;       // keys of a tile
constexpr std::int64_t kMostBlocks = 8;  // blocks that share a tile

// out[c][row] (+)= sum over i < n of a[i][row] * b(i, c) for kCount columns c and the rows of a
// block. a: vectors of a block, kRows apart. b(i, c) = b[i * step_i + c * step_c].
template <int kCount, bool kAdd>
inline void multiply(const float* a, std::int64_t n, const float* b, std::int64_t step_i,
                     std::int64_t step_c, float* out) {
  Vec acc[kCount][2];
  for (int c = 0; c < kCount; ++c) {
    acc[c][0] = kAdd ? load(out + c * kRows) : Vec{};
    acc[c][1] = kAdd ? load(out + c * kRows + kLanes) : Vec{};
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const Vec a0 = load(a + i * kRows), a1 = load(a + i * kRows + kLanes);
    const float* row = b + i * step_i;
    for (int c = 0; c < kCount; ++c) {
      const float x = row[c * step_c];
      acc[c][0] += a0 * x;
      acc[c][1] += a1 * x;
    }
  }
  for (int c = 0; c < kCount; ++c) {
    store(out + c * kRows, acc[c][0]);
    store(out + c * kRows + kLanes, acc[c][1]);
  }
}

template <bool kAdd>
void multiply_all(const float* a, std::int64_t n, const float* b, std::int64_t step_i,
                  std::int64_t step_c, std::int64_t columns, float* out) {
  std::int64_t c = 0;
  for (; c + 8 <= columns; c += 8) {
    multiply<8, kAdd>(a, n, b + c * step_c, step_i, step_c, out + c * kRows);
  }
  for (; c < columns; ++c) multiply<1, kAdd>(a, n, b + c * step_c, step_i, step_c, out + c * kRows);
}

// A block of query rows of one key head: its transposed queries and its running softmax.
struct Block {
  float *q, *o;      // [D][kRows]
  float *max, *sum;  // [kRows]
};

template <class T>
class Attention {
 public:
  Attention(const fa_params* p, const std::int64_t* P, const std::int64_t* cu,
            const std::int32_t* parent, const T* q, const void* const* kc, const void* const* vc,
            T* o, float* lse)
      : p_(p),
        P_(P),
        cu_(cu),
        parent_(parent),
        q_(q),
        kc_(kc),
        vc_(vc),
        o_(o),
        lse_(lse),
        D_(p->D),
        group_(p->Hq / p->Hkv),
        stride_(p->Hkv * p->D) {}

  std::int32_t run(assay_ctx* ctx) {
    const std::int64_t threads = std::max(1, ctx->nthreads);
    std::int64_t total = 0, most = 0;
    for (std::int64_t b = 0; b < p_->B; ++b) {
      total += blocks(b) * p_->Hkv;
      most = std::max(most, blocks(b));
    }
    per_task_ = std::clamp<std::int64_t>(total / (2 * threads), 1, std::min(kMostBlocks, most));
    std::int64_t tasks = 0;
    for (std::int64_t b = 0; b < p_->B; ++b) tasks += tasks_of(b);
    const std::int64_t workers = std::min(threads, tasks);
    const std::int64_t each = scratch_floats();
    auto* scratch = static_cast<float*>(
        ctx->alloc(ctx, static_cast<std::size_t>(workers * each) * sizeof(float), 64, 0));
    if (scratch == nullptr) return ASSAY_ENOMEM;
    std::atomic<std::int64_t> next{0};
    on_threads(workers, [&](std::int64_t t) {
      for (std::int64_t i = next++; i < tasks; i = next++) task(i, scratch + t * each);
    });
    ctx->free(ctx, scratch);
    return ASSAY_OK;
  }

 private:
  std::int64_t nodes(std::int64_t b) const { return cu_[b + 1] - cu_[b]; }
  std::int64_t rows(std::int64_t b) const { return nodes(b) * group_; }
  std::int64_t blocks(std::int64_t b) const { return (rows(b) + kRows - 1) / kRows; }
  std::int64_t tasks_of(std::int64_t b) const {
    return (blocks(b) + per_task_ - 1) / per_task_ * p_->Hkv;
  }
  std::int64_t block_floats() const { return (2 * D_ + 2) * kRows; }
  std::int64_t scratch_floats() const {
    const std::int64_t widened = std::is_same_v<T, float> ? 0 : 2 * kTile * D_;
    return (per_task_ * block_floats() + kTile * kRows + widened + kRows) / 16 * 16 + 16;
  }

  static float read(float x) { return x; }
  static float read(std::uint16_t x) { return widen(x); }
  static void write(float& to, float x) { to = x; }
  static void write(std::uint16_t& to, float x) { to = narrow(x); }

  // Rows of an item and key head: node-major, so that a block holds few nodes and all their heads.
  std::int64_t q_index(std::int64_t b, std::int64_t head, std::int64_t row) const {
    return (cu_[b] + row / group_) * p_->Hq + head * group_ + row % group_;
  }

  void task(std::int64_t index, float* scratch) const {
    std::int64_t b = 0;
    while (index >= tasks_of(b)) index -= tasks_of(b++);
    const std::int64_t head = index % p_->Hkv, first = index / p_->Hkv * per_task_;
    const std::int64_t count = std::min(per_task_, blocks(b) - first);
    Block all[kMostBlocks];
    float* at = scratch;
    for (std::int64_t i = 0; i < count; ++i, at += block_floats()) {
      all[i] = {at, at + D_ * kRows, at + 2 * D_ * kRows, at + (2 * D_ + 1) * kRows};
      start(b, head, (first + i) * kRows, all[i]);
    }
    float* p = scratch + per_task_ * block_floats();
    float* tile = p + kTile * kRows;
    const T* k = static_cast<const T*>(kc_[b]) + head * D_;
    const T* v = static_cast<const T*>(vc_[b]) + head * D_;
    for (std::int64_t j = 0; j < P_[b]; j += kTile) {
      const std::int64_t n = std::min(kTile, P_[b] - j);
      if constexpr (std::is_same_v<T, float>) {
        for (std::int64_t i = 0; i < count; ++i) {
          absorb(all[i], k + j * stride_, v + j * stride_, stride_, n, p);
        }
      } else {
        widen_rows(k + j * stride_, n, tile);
        widen_rows(v + j * stride_, n, tile + kTile * D_);
        for (std::int64_t i = 0; i < count; ++i) absorb(all[i], tile, tile + kTile * D_, D_, n, p);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) finish(b, head, (first + i) * kRows, all[i]);
  }

  void widen_rows(const T* from, std::int64_t n, float* to) const {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t d = 0; d < D_; ++d) to[j * D_ + d] = read(from[j * stride_ + d]);
    }
  }

  // Queries, scaled and transposed, and the softmax over the node itself and its ancestors.
  void start(std::int64_t b, std::int64_t head, std::int64_t first, const Block& block) const {
    std::memset(block.q, 0, static_cast<std::size_t>(block_floats()) * sizeof(float));
    const std::int64_t count = std::min<std::int64_t>(kRows, rows(b) - first);
    for (std::int64_t r = 0; r < count; ++r) {
      const T* q = q_ + q_index(b, head, first + r) * D_;
      for (std::int64_t d = 0; d < D_; ++d) block.q[d * kRows + r] = read(q[d]) * p_->scale;
      block.max[r] = -kInf;
      for (std::int64_t a = (first + r) / group_; a >= 0; a = parent_[cu_[b] + a]) {
        absorb_one(b, head, P_[b] + a, r, block);
      }
    }
  }

  void absorb_one(std::int64_t b, std::int64_t head, std::int64_t key, std::int64_t r,
                  const Block& block) const {
    const T* k = static_cast<const T*>(kc_[b]) + key * stride_ + head * D_;
    const T* v = static_cast<const T*>(vc_[b]) + key * stride_ + head * D_;
    float score = 0;
    for (std::int64_t d = 0; d < D_; ++d) score += block.q[d * kRows + r] * read(k[d]);
    const float old = block.max[r], max = score > old || std::isnan(score) ? score : old;
    const float correction = old == -kInf ? 0.0f : std::exp(old - max), p = std::exp(score - max);
    block.max[r] = max;
    block.sum[r] = block.sum[r] * correction + p;
    for (std::int64_t d = 0; d < D_; ++d) {
      float& o = block.o[d * kRows + r];
      o = o * correction + p * read(v[d]);
    }
  }

  // One tile of keys that all rows see. p: room for [kTile][kRows].
  void absorb(const Block& block, const float* k, const float* v, std::int64_t stride,
              std::int64_t n, float* p) const {
    multiply_all<false>(block.q, D_, k, 1, stride, n, p);
    for (int half = 0; half < kRows; half += kLanes) {
      const Vec old = load(block.max + half);
      Vec max = old;
      for (std::int64_t j = 0; j < n; ++j) max = larger(load(p + j * kRows + half), max);
      Vec sum{};
      for (std::int64_t j = 0; j < n; ++j) {
        const Vec e = exp_nonpositive(load(p + j * kRows + half) - max);
        store(p + j * kRows + half, e);
        sum += e;
      }
      const Vec correction = exp_nonpositive(old - max);
      store(block.max + half, max);
      store(block.sum + half, load(block.sum + half) * correction + sum);
      if (std::memcmp(&old, &max, sizeof max) == 0) continue;
      for (std::int64_t d = 0; d < D_; ++d) {
        float* o = block.o + d * kRows + half;
        store(o, load(o) * correction);
      }
    }
    multiply_all<true>(p, n, v, stride, 1, D_, block.o);
  }

  void finish(std::int64_t b, std::int64_t head, std::int64_t first, const Block& block) const {
    const std::int64_t count = std::min<std::int64_t>(kRows, rows(b) - first);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t at = q_index(b, head, first + r);
      const float scale = 1 / block.sum[r];
      for (std::int64_t d = 0; d < D_; ++d) write(o_[at * D_ + d], block.o[d * kRows + r] * scale);
      if (lse_ != nullptr) lse_[at] = block.max[r] + std::log(block.sum[r]);
    }
  }

  const fa_params* p_;
  const std::int64_t *P_, *cu_;
  const std::int32_t* parent_;
  const T* q_;
  const void *const *kc_, *const *vc_;
  T* o_;
  float* lse_;
  std::int64_t D_, group_, stride_, per_task_ = 1;
};

}  // namespace
