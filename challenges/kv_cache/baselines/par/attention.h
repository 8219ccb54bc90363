// Attention of one task: keys and values page by page with an online softmax.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "task.h"
#include "vectors.h"

namespace {

constexpr std::int64_t kBlock = 2 * kLanes;  // rows of a block where lanes are rows

// A thread's buffers and its way through a task.
class Attention {
 public:
  static std::int64_t floats(const kvc_config& c) {
    const std::int64_t D = padded(c.D), Dv = padded(c.Dv);
    return kTaskRows * (D + Dv + 2) + 2 * kPage * std::max<std::int64_t>(kBlock, kLanes) +
           kPage * (D + Dv);
  }

  Attention(const Job& job, float* room)
      : job_(job), c_(job.c()), D_(padded(c_.D)), Dv_(padded(c_.Dv)) {
    q_ = room;
    o_ = q_ + kTaskRows * D_;
    max_ = o_ + kTaskRows * Dv_;
    sum_ = max_ + kTaskRows;
    scores_ = sum_ + kTaskRows;
    keys_ = scores_ + 2 * kPage * std::max<std::int64_t>(kBlock, kLanes);
    values_ = keys_ + kPage * D_;
  }

  void run(const Task& t) {
    if (t.rows < kLanes) {
      few_rows(t);
    } else {
      many_rows(t);
    }
  }

 private:
  static std::int64_t tile_index(const Task& t, std::int64_t i) {
    return i < t.sinks ? i : i + t.skipped;
  }

  // A tile's keys and values as rows of D_ and Dv_ floats, in place where the page has them so.
  struct Tile {
    std::int64_t first, count;  // keys
    const float *k, *v;
    const char* next;  // what to fetch ahead, or NULL
  };

  bool in_place() const {
    return c_.quant == 0 && c_.dtype == ASSAY_F32 && D_ == c_.D && Dv_ == c_.Dv;
  }

  Tile tile(const Task& t, std::int64_t i) {
    const std::vector<Page*>& pages = job_.history(t.entry).pages;
    const std::int64_t at = tile_index(t, i);
    Page* page = pages[static_cast<std::size_t>(at)];
    Tile tile{at * kPage, std::min(kPage, t.length - at * kPage), keys_, values_, nullptr};
    if (in_place()) {
      const auto* elements = reinterpret_cast<const float*>(data_of(page));
      tile.k = elements + job_.cache->key_at(t.head);
      tile.v = elements + job_.cache->value_at(t.head);
      if (i + 1 < t.end) {
        Page* next = pages[static_cast<std::size_t>(tile_index(t, i + 1))];
        tile.next = reinterpret_cast<const char*>(data_of(next)) + job_.cache->key_at(t.head) * 4;
      }
    } else {
      job_.cache->load_keys(page, t.head, tile.count, keys_, D_);
      job_.cache->load_values(page, t.head, tile.count, values_, Dv_);
    }
    return tile;
  }

  bool all_visible(const Task& t, const Tile& tile) const {
    if (tile.first + kPage - 1 > job_.lowest(t, 0)) return false;
    if (c_.window < 0 || tile.first + kPage <= c_.sinks) return true;
    return tile.first > job_.highest(t, t.rows - 1) - c_.window;
  }

  // --- lanes are elements of a head ---

  void few_rows(const Task& t) {
    std::fill(q_, q_ + t.rows * D_, 0.0f);
    for (std::int64_t r = 0; r < t.rows; ++r) job_.load_query(t, r, q_ + r * D_);
    std::fill(o_, o_ + t.rows * Dv_, 0.0f);
    std::fill(max_, max_ + t.rows, -kInf);
    std::fill(sum_, sum_ + t.rows, 0.0f);
    for (std::int64_t i = t.begin; i < t.end; ++i) {
      const Tile now = tile(t, i);
      const bool all = all_visible(t, now);
      std::int64_t r = 0;
      for (; r + 4 <= t.rows; r += 4) row_group<4>(t, now, all, r);
      for (; r + 2 <= t.rows; r += 2) row_group<2>(t, now, all, r);
      for (; r < t.rows; ++r) row_group<1>(t, now, all, r);
    }
    for (std::int64_t r = 0; r < t.rows; ++r) job_.deliver(t, r, max_[r], sum_[r], o_ + r * Dv_, 1);
  }

  template <int kRows>
  void row_group(const Task& t, const Tile& now, bool all, std::int64_t r) {
    constexpr int kKeys = kLanes / kRows;
    for (std::int64_t j = 0; j < kPage; j += kKeys) {
      if (j < now.count) dots<kRows>(now, r, j);
    }
    float corrections[kRows];
    for (int i = 0; i < kRows; ++i)
      corrections[i] = softmax(t, now, all, r + i, scores_ + i * kPage);
    std::int64_t d = 0;
    for (; d + 4 * kLanes <= Dv_; d += 4 * kLanes) add_values<kRows, 4>(now, corrections, r, d);
    for (; d < Dv_; d += kLanes) add_values<kRows, 1>(now, corrections, r, d);
  }

  // Scores of kRows rows from r on and kLanes / kRows keys from j on; rows behind the last key of
  // the tile hold anything, and so do their scores.
  template <int kRows>
  void dots(const Tile& now, std::int64_t r, std::int64_t j) {
    constexpr int kKeys = kLanes / kRows;
    Vec sums[kLanes] = {};
    const char* ahead = r == 0 ? now.next : nullptr;  // the first rows fetch for all
    for (std::int64_t d = 0; d < D_; d += kLanes) {
      Vec q[kRows];
      for (int i = 0; i < kRows; ++i) q[i] = load(q_ + (r + i) * D_ + d);
#pragma GCC unroll 16
      for (int key = 0; key < kKeys; ++key) {
        if (ahead != nullptr) __builtin_prefetch(ahead + ((j + key) * D_ + d) * 4, 0, 2);
        const Vec k = load(now.k + (j + key) * D_ + d);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) sums[i * kKeys + key] += q[i] * k;
      }
    }
    alignas(64) float out[kLanes];
    store(out, transposed_sums(sums));
    for (int i = 0; i < kRows; ++i) {
      std::memcpy(scores_ + i * kPage + j, out + i * kKeys, kKeys * sizeof(float));
    }
  }

  // Scores become weights; returns by how much what was summed up before shrinks.
  float softmax(const Task& t, const Tile& now, bool all, std::int64_t row, float* scores) {
    if (!all) {
      const std::int64_t position = job_.position(t, row);
      for (std::int64_t j = 0; j < kPage; ++j) {
        if (j >= now.count || !job_.sees(t, row, now.first + j, position)) scores[j] = -kInf;
      }
    }
    Vec most = load(scores);
    for (std::int64_t j = kLanes; j < kPage; j += kLanes) most = larger(most, load(scores + j));
    const float before = max_[row], max = std::max(before, largest_lane(most));
    const float base = max == -kInf ? 0 : max;
    Vec sum{};
    for (std::int64_t j = 0; j < kPage; j += kLanes) {
      const Vec weight = exp_nonpositive(load(scores + j) - base);
      store(scores + j, weight);
      sum += weight;
    }
    const float correction = max == before ? 1 : exp_nonpositive(splat(before - base))[0];
    max_[row] = max;
    sum_[row] = sum_[row] * correction + sum_of_lanes(sum);
    return correction;
  }

  template <int kRows, int kVecs>
  void add_values(const Tile& now, const float* corrections, std::int64_t r, std::int64_t d) {
    const char* ahead = r == 0 && now.next != nullptr ? now.next + kPage * D_ * 4 : nullptr;
    Vec sums[kRows][kVecs];
    for (int i = 0; i < kRows; ++i) {
      for (int n = 0; n < kVecs; ++n) {
        sums[i][n] = load(o_ + (r + i) * Dv_ + d + n * kLanes) * corrections[i];
      }
    }
    for (std::int64_t j = 0; j < now.count; ++j) {
      Vec v[kVecs];
      for (int n = 0; ahead != nullptr && n < kVecs; ++n) {
        __builtin_prefetch(ahead + (j * Dv_ + d + n * kLanes) * 4, 0, 2);
      }
      for (int n = 0; n < kVecs; ++n) v[n] = load(now.v + j * Dv_ + d + n * kLanes);
      for (int i = 0; i < kRows; ++i) {
        const Vec weight = splat(scores_[i * kPage + j]);
        for (int n = 0; n < kVecs; ++n) sums[i][n] += weight * v[n];
      }
    }
    for (int i = 0; i < kRows; ++i) {
      for (int n = 0; n < kVecs; ++n) store(o_ + (r + i) * Dv_ + d + n * kLanes, sums[i][n]);
    }
  }

  // --- lanes are rows ---

  // Block b of the rows has its queries at q_ + b * kBlock * D_ as [D, kBlock], its sums of values
  // likewise.
  void many_rows(const Task& t) {
    const std::int64_t blocks = (t.rows + kBlock - 1) / kBlock;
    std::fill(q_, q_ + blocks * kBlock * D_, 0.0f);
    for (std::int64_t r = 0; r < t.rows; ++r) {
      job_.load_query(t, r, keys_);
      float* to = q_ + r / kBlock * kBlock * D_ + r % kBlock;
      for (std::int64_t d = 0; d < c_.D; ++d) to[d * kBlock] = keys_[d];
    }
    std::fill(o_, o_ + blocks * kBlock * Dv_, 0.0f);
    std::fill(max_, max_ + blocks * kBlock, -kInf);
    std::fill(sum_, sum_ + blocks * kBlock, 0.0f);
    for (std::int64_t i = t.begin; i < t.end; ++i) {
      const Tile now = tile(t, i);
      for (std::int64_t b = 0; b < blocks; ++b) block(t, now, b);
    }
    for (std::int64_t r = 0; r < t.rows; ++r) {
      job_.deliver(t, r, max_[r], sum_[r], o_ + r / kBlock * kBlock * Dv_ + r % kBlock, kBlock);
    }
  }

  void block(const Task& t, const Tile& now, std::int64_t b) {
    const std::int64_t first = b * kBlock, last = std::min(first + kBlock, t.rows) - 1;
    const std::int64_t low = job_.lowest(t, first), high = job_.highest(t, last);
    if (now.first > high) return;
    if (c_.window > 0 && now.first + now.count - 1 <= low - c_.window && now.first >= c_.sinks)
      return;
    for (std::int64_t j = 0; j < now.count; j += 8) {
      if (j + 8 <= now.count) {
        scores_of<8>(now, b, j);
      } else {
        for (std::int64_t k = j; k < now.count; ++k) scores_of<1>(now, b, k);
      }
    }
    const bool masked =
        now.first + now.count - 1 > low ||
        (c_.window > 0 && now.first <= high - c_.window && now.first + now.count > c_.sinks);
    if (masked) mask(t, now, b);
    Vec corrections[2];
    softmax_block(now, b, corrections);
    for (std::int64_t d = 0; d < Dv_; d += 8) values_of(now, b, d, corrections);
  }

  template <int kKeys>
  void scores_of(const Tile& now, std::int64_t b, std::int64_t j) {
    Vec sums[kKeys][2] = {};
    const float* q = q_ + b * kBlock * D_;
    const float* k = now.k + j * D_;
    for (std::int64_t d = 0; d < c_.D; ++d) {
      const Vec q0 = load(q + d * kBlock), q1 = load(q + d * kBlock + kLanes);
#pragma GCC unroll 8
      for (int key = 0; key < kKeys; ++key) {
        const Vec x = splat(k[key * D_ + d]);
        sums[key][0] += x * q0;
        sums[key][1] += x * q1;
      }
    }
    for (int key = 0; key < kKeys; ++key) {
      store(scores_ + (j + key) * kBlock, sums[key][0]);
      store(scores_ + (j + key) * kBlock + kLanes, sums[key][1]);
    }
  }

  void mask(const Task& t, const Tile& now, std::int64_t b) {
    for (std::int64_t r = 0; r < kBlock; ++r) {
      const std::int64_t row = std::min(b * kBlock + r, t.rows - 1),
                         position = job_.position(t, row);
      for (std::int64_t j = 0; j < now.count; ++j) {
        if (!job_.sees(t, row, now.first + j, position)) scores_[j * kBlock + r] = -kInf;
      }
    }
  }

  void softmax_block(const Tile& now, std::int64_t b, Vec* corrections) {
    for (int half = 0; half < 2; ++half) {
      float* scores = scores_ + half * kLanes;
      const std::int64_t at = b * kBlock + half * kLanes;
      const Vec before = load(max_ + at);
      Vec max = before;
      for (std::int64_t j = 0; j < now.count; ++j) max = larger(max, load(scores + j * kBlock));
      const Vec base = max == -kInf ? Vec{} : max;
      Vec sum{};
      for (std::int64_t j = 0; j < now.count; ++j) {
        const Vec weight = exp_nonpositive(load(scores + j * kBlock) - base);
        store(scores + j * kBlock, weight);
        sum += weight;
      }
      corrections[half] = exp_nonpositive(before - base);
      store(max_ + at, max);
      store(sum_ + at, load(sum_ + at) * corrections[half] + sum);
    }
  }

  void values_of(const Tile& now, std::int64_t b, std::int64_t d, const Vec* corrections) {
    float* o = o_ + (b * Dv_ + d) * kBlock;
    Vec sums[8][2];
    for (int i = 0; i < 8; ++i) {
      sums[i][0] = load(o + i * kBlock) * corrections[0];
      sums[i][1] = load(o + i * kBlock + kLanes) * corrections[1];
    }
    for (std::int64_t j = 0; j < now.count; ++j) {
      const Vec w0 = load(scores_ + j * kBlock), w1 = load(scores_ + j * kBlock + kLanes);
      const float* v = now.v + j * Dv_ + d;
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        const Vec x = splat(v[i]);
        sums[i][0] += x * w0;
        sums[i][1] += x * w1;
      }
    }
    for (int i = 0; i < 8; ++i) {
      store(o + i * kBlock, sums[i][0]);
      store(o + i * kBlock + kLanes, sums[i][1]);
    }
  }

  const Job& job_;
  const kvc_config& c_;
  std::int64_t D_, Dv_;
  float *q_, *o_, *max_, *sum_, *scores_, *keys_, *values_;
};

}  // namespace
