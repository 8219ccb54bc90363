// Makes the inputs of attention cases from their seed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "assay/error.h"
#include "assay/random.h"
#include "assay/size.h"
#include "attention.h"
#include "score_levels.h"

namespace assay::attention {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float* row(const assay_stride& s, float* data, std::int64_t b, std::int64_t h, std::int64_t n) {
  return data + b * s.b + h * s.h + n * s.n;
}

// q, k and v in fp32 before rounding, and the directions that structured kinds need.
class Inputs {
 public:
  Inputs(const Problem& problem, std::uint64_t seed, const BufferView& q, const BufferView& k,
         const BufferView& v)
      : problem_(problem),
        p_(problem.p),
        seed_(seed),
        q_(p_.dtype, q),
        k_(p_.dtype, k),
        v_(p_.dtype, v) {}

  void make() {
    fill_normal(q_.values(), substream(seed_, 1), 0, problem_.data.value("q_sigma", 1.0f));
    fill_normal(k_.values(), substream(seed_, 2), 0, problem_.data.value("k_sigma", 1.0f));
    fill_normal(v_.values(), substream(seed_, 3), 0, problem_.data.value("v_sigma", 1.0f));
    structure(problem_.data.value("kind", "normal"));
    spoil("nan_q", q_, p_.sq, p_.Hq, p_.D, kNan);
    spoil("nan_k", k_, p_.sk, p_.Hkv, p_.D, kNan);
    spoil("nan_v", v_, p_.sv, p_.Hkv, p_.Dv, kNan);
    spoil("huge_k", k_, p_.sk, p_.Hkv, p_.D, 1e30f);
    spoil("nan_v_end", v_, p_.sv, p_.Hkv, p_.Dv, kNan, p_.Dv - 1);
    q_.store();
    k_.store();
    v_.store();
  }

 private:
  // A buffer as floats: the buffer itself, or a copy that is later rounded into it.
  class Floats {
   public:
    Floats(std::int32_t dtype, const BufferView& view) : dtype_(dtype), view_(view) {
      if (dtype != ASSAY_F32) copy_.resize(view.bytes / 2);
    }
    std::span<float> values() {
      return dtype_ == ASSAY_F32 ? view_.span<float>() : std::span<float>(copy_);
    }
    void store() {
      for (std::size_t i = 0; i < copy_.size(); ++i) {
        view_.as<std::uint16_t>()[i] =
            dtype_ == ASSAY_BF16 ? float_to_bf16(copy_[i]) : float_to_f16(copy_[i]);
      }
    }

   private:
    std::int32_t dtype_;
    BufferView view_;
    std::vector<float> copy_;
  };

  template <class Body>
  void each_row(Floats& array, const assay_stride& stride, std::int64_t H, std::int64_t N,
                Body body) {
    for (std::int64_t b = 0; b < p_.B; ++b) {
      for (std::int64_t h = 0; h < H; ++h) {
        for (std::int64_t n = 0; n < N; ++n) body(row(stride, array.values().data(), b, h, n), n);
      }
    }
  }

  // Every query becomes a common vector plus a little noise, every key `height(j)` times that
  // vector plus noise, so that scale q.k is about height(j).
  template <class Height>
  void aligned(Height height, float noise) {
    Random random(substream(seed_, 4));
    std::vector<float> u(to_size(p_.D));
    draw_direction(random, u);
    each_row(q_, p_.sq, p_.Hq, p_.Nq, [&](float* q, std::int64_t) {
      for (std::size_t d = 0; d < u.size(); ++d) q[d] = 8 * u[d] + noise * q[d];
    });
    each_row(k_, p_.sk, p_.Hkv, p_.Nk, [&](float* k, std::int64_t j) {
      const float a = height(j) / (8 * p_.scale);
      for (std::size_t d = 0; d < u.size(); ++d) k[d] = a * u[d] + noise * k[d];
    });
  }

  void levels() {
    ScoreLevels levels(substream(seed_, 5), p_.B * p_.Hkv, p_.D, p_.scale);
    for (std::int64_t head = 0; head < p_.B * p_.Hkv; ++head) {
      const std::int64_t b = head / p_.Hkv, h = head % p_.Hkv, group = p_.Hq / p_.Hkv;
      for (std::int64_t j = 0; j < p_.Nk; ++j)
        levels.key(head, row(p_.sk, k_.values().data(), b, h, j));
      for (std::int64_t i = 0; i < group * p_.Nq; ++i) {
        levels.query(head, row(p_.sq, q_.values().data(), b, h * group + i / p_.Nq, i % p_.Nq));
      }
    }
  }

  void structure(const std::string& kind) {
    const nlohmann::json& data = problem_.data;
    const auto N = static_cast<float>(std::max<std::int64_t>(p_.Nk, 1));
    if (kind == "rising" || kind == "falling") {
      const float span = data.value("span", 30.0f) * (kind == "rising" ? 1.0f : -1.0f);
      aligned([&](std::int64_t j) { return span * (static_cast<float>(j) / N - 0.5f); }, 0.1f);
    } else if (kind == "low") {
      aligned(
          [&](std::int64_t j) {
            return -1500.0f - 20.0f * static_cast<float>((j * 7) % p_.Nk) / N;
          },
          0.0f);
    } else if (kind == "one_hot") {
      const std::int64_t key = data.at("key");
      const float score = data.at("score");
      aligned([&](std::int64_t j) { return j == key ? score : 0.0f; }, 0.1f);
    } else if (kind == "drawn") {
      levels();
    } else if (kind == "zero_q") {
      std::ranges::fill(q_.values(), 0.0f);
    } else if (kind == "constant_k") {
      constant(k_, p_.sk, p_.D);
    } else if (kind == "constant_v") {
      constant(v_, p_.sv, p_.Dv);
    } else if (kind == "alternating_v") {
      each_row(v_, p_.sv, p_.Hkv, p_.Nk, [&](float* v, std::int64_t j) {
        for (std::int64_t d = 0; d < p_.Dv; ++d) v[d] += j % 2 == 0 ? 1e4f : -1e4f;
      });
    } else if (kind != "normal") {
      throw Error(fmt::format("attention: unknown data kind '{}'", kind));
    }
  }

  void constant(Floats& array, const assay_stride& stride, std::int64_t D) {
    for (std::int64_t b = 0; b < p_.B; ++b) {
      for (std::int64_t h = 0; h < p_.Hkv; ++h) {
        const float* first = row(stride, array.values().data(), b, h, 0);
        for (std::int64_t j = 1; j < p_.Nk; ++j)
          std::copy_n(first, D, row(stride, array.values().data(), b, h, j));
      }
    }
  }

  void spoil(const char* list, Floats& array, const assay_stride& stride, std::int64_t H,
             std::int64_t D, float value, std::int64_t from = 0) {
    for (const std::int64_t n : problem_.data.value(list, std::vector<std::int64_t>{})) {
      for (std::int64_t b = 0; b < p_.B; ++b) {
        for (std::int64_t h = 0; h < H; ++h)
          std::fill_n(row(stride, array.values().data(), b, h, n) + from, D - from, value);
      }
    }
  }

  const Problem& problem_;
  const fa_params& p_;
  std::uint64_t seed_;
  Floats q_, k_, v_;
};

// The same problem stored densely, head after head.
Problem compact(const Problem& problem) {
  Problem dense = problem;
  fa_params& p = dense.p;
  const fa_params flat = problem.flat().p;
  const auto stride = [&](std::int64_t H, std::int64_t N, std::int64_t D) {
    return assay_stride{problem.packed() ? 0 : H * N * D, N * D, D};
  };
  p.sq = stride(p.Hq, flat.Nq, p.D);
  p.sk = stride(p.Hkv, flat.Nk, p.D);
  p.sv = stride(p.Hkv, flat.Nk, p.Dv);
  p.so = stride(p.Hq, flat.Nq, p.Dv);
  dense.sparse = false;
  return dense;
}

// An array of a sparse problem, built densely first.
class Gathered {
 public:
  Gathered(const Problem& problem, const assay_stride& to, std::int64_t H, std::int64_t N,
           std::int64_t D, const BufferView& view)
      : to_(to),
        H_(H),
        N_(N),
        D_(D),
        rows_(problem.flat().p.B * H * N),
        size_(problem.fp8                    ? 1
              : problem.p.dtype == ASSAY_F32 ? 4
                                             : 2),
        view_(view),
        bytes_(view.bytes == 0 ? 0 : to_size(rows_ * D * size_)) {}

  BufferView dense() { return {bytes_.empty() ? nullptr : bytes_.data(), bytes_.size()}; }

  void scatter() const {
    for (std::int64_t row = 0; !bytes_.empty() && row < rows_; ++row) {
      const std::int64_t at = row / (H_ * N_) * to_.b + row / N_ % H_ * to_.h + row % N_ * to_.n;
      std::copy_n(bytes_.data() + row * D_ * size_, D_ * size_, view_.as<std::byte>() + at * size_);
    }
  }

 private:
  assay_stride to_;
  std::int64_t H_, N_, D_, rows_, size_;
  BufferView view_;
  std::vector<std::byte> bytes_;
};

}  // namespace

void fill_qkv(const Problem& problem, std::uint64_t seed, const BufferView& q, const BufferView& k,
              const BufferView& v, const BufferView& scales) {
  if (problem.sparse) {
    const fa_params& p = problem.p;
    const fa_params flat_p = problem.flat().p;
    Gathered queries(problem, p.sq, p.Hq, flat_p.Nq, p.D, q);
    Gathered keys(problem, p.sk, p.Hkv, flat_p.Nk, p.D, k);
    Gathered values(problem, p.sv, p.Hkv, flat_p.Nk, p.Dv, v);
    fill_qkv(compact(problem), seed, queries.dense(), keys.dense(), values.dense(), scales);
    for (const Gathered* array : {&queries, &keys, &values}) array->scatter();
    return;
  }
  Problem flat = problem.flat();
  if (!problem.fp8) return Inputs(flat, seed, q, k, v).make();
  flat.p.dtype = ASSAY_F32;
  const BufferView stored[] = {q, k, v};
  std::vector<float> values[3];
  BufferView views[3];
  for (int t = 0; t < 3; ++t) {
    values[t].resize(stored[t].bytes);
    views[t] = {values[t].data(), values[t].size() * sizeof(float)};
  }
  Inputs(flat, seed, views[0], views[1], views[2]).make();
  Random random(substream(seed, 7));
  for (int t = 0; t < 3; ++t) {
    // The largest values fill the format's range. The scale has 8 significant bits, so scaled
    // values are exact in fp32.
    const float scale = std::ldexp(static_cast<float>(128 + random.below(128)), -14 - t);
    scales.as<float>()[t] = scale;
    std::ranges::transform(values[t], stored[t].as<std::uint8_t>(),
                           [&](float x) { return float_to_e4m3(x / scale); });
  }
}

void fill_array(const Problem& problem, std::uint64_t seed, const BufferView& view, float sigma) {
  if (problem.sparse) {
    const fa_params& p = problem.p;
    Gathered array(problem, p.so, p.Hq, problem.flat().p.Nq, p.Dv, view);
    fill_array(compact(problem), seed, array.dense(), sigma);
    return array.scatter();
  }
  if (problem.p.dtype == ASSAY_F32) return fill_normal(view.span<float>(), seed, 0, sigma);
  if (problem.p.dtype == ASSAY_BF16) {
    return fill_normal_bf16(view.span<std::uint16_t>(), seed, 0, sigma);
  }
  std::vector<float> values(view.bytes / 2);
  fill_normal(values, seed, 0, sigma);
  std::ranges::transform(values, view.as<std::uint16_t>(), float_to_f16);
}

void fill_extras(const Problem& problem, std::uint64_t seed, const BufferView& alibi,
                 const BufferView& sink, const BufferView& kv_len) {
  Random random(substream(seed, 9));
  for (float& slope : alibi.span<float>()) slope = static_cast<float>(random.uniform(0.01, 0.5));
  for (float& s : sink.span<float>()) s = static_cast<float>(random.uniform(-1, 3));
  std::copy_n(problem.kv_len.begin(), kv_len.span<std::int64_t>().size(),
              kv_len.as<std::int64_t>());
}

void fill_lengths(const Problem& problem, const BufferView& cu_q, const BufferView& cu_k) {
  if (!problem.packed()) return;
  for (std::int64_t b = 0; b <= problem.p.B; ++b) {
    cu_q.as<std::int64_t>()[b] = problem.first_query(b);
    cu_k.as<std::int64_t>()[b] = problem.first_key(b);
  }
}

void fill_bias(const Problem& problem, std::uint64_t seed, const BufferView& bias) {
  fill_normal(bias.span<float>(), substream(seed, 6), 0, 2);
  if (!problem.bias_poison) return;
  const fa_params& p = problem.p;
  for (std::int64_t row = 0; row < p.B * p.Hq * p.Nq; ++row) {
    const std::int64_t b = row / (p.Hq * p.Nq), h = row / p.Nq % p.Hq, i = row % p.Nq;
    const Range r = visible(problem, i, p.Nq, problem.keys_of(b));
    for (std::int64_t j = 0; j < p.Nk; ++j) {
      if (j >= r.lo && j < r.hi) continue;
      bias.as<float>()[problem.bias_row(b, h, i) * problem.bias_shape.Nk + problem.bias_column(j)] =
          kNan;
    }
  }
}

}  // namespace assay::attention
