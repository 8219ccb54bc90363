// Turns recorded calls into cases. Any number may have any value until it is checked.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "assay/size.h"
#include "attention.h"

namespace assay::attention {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostRows = 1 << 20;

const char* dtype_name(std::int32_t dtype) {
  switch (dtype) {
    case ASSAY_F32: return "f32";
    case ASSAY_BF16: return "bf16";
    case ASSAY_F16: return "f16";
    default: return nullptr;
  }
}

// Whether rows of D elements with these strides do not overlap and fit into a case.
bool apart(const assay_stride& s, std::int64_t B, std::int64_t H, std::int64_t N, std::int64_t D) {
  constexpr std::int64_t kMostSpan = 1 << 26;
  struct Axis {
    std::int64_t stride, count;
  };
  std::array<Axis, 3> axes{Axis{s.b, B}, {s.h, H}, {s.n, N}};
  if (std::ranges::any_of(axes, [](const Axis& a) { return a.count == 0; }) || D == 0) return true;
  std::ranges::sort(axes, {}, &Axis::stride);
  std::int64_t extent = D;  // of what lies within one step of the axis
  for (const Axis& a : axes) {
    if (a.count == 1) continue;
    if (a.stride < extent || a.stride > kMostSpan) return false;
    extent += (a.count - 1) * a.stride;
    if (extent > kMostSpan) return false;
  }
  return true;
}

// Strides of axes with more than one element; the others may have any value and become 0.
json stride_json(const assay_stride& s, std::int64_t B, std::int64_t H, std::int64_t N) {
  return json::array({B > 1 ? s.b : 0, H > 1 ? s.h : 0, N > 1 ? s.n : 0});
}

template <class T>
std::optional<std::vector<T>> values(const RecordedCall& call, std::int32_t handle,
                                     std::int64_t count) {
  const RecordedCall::Array* const array = call.find(handle);
  if (array == nullptr || array->null) return std::nullopt;
  std::vector<T> found(to_size(count));
  if (array->bytes.size() != found.size() * sizeof(T)) return std::nullopt;
  if (!found.empty()) std::memcpy(found.data(), array->bytes.data(), array->bytes.size());
  return found;
}

// Lengths of sequences that begin at these offsets; absent unless they ascend from 0 to the total.
std::optional<std::vector<std::int64_t>> lengths(const std::optional<std::vector<std::int64_t>>& at,
                                                 std::int64_t total, std::int64_t longest) {
  if (!at || at->size() < 2 || at->front() != 0 || at->back() != total) return std::nullopt;
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i + 1 < at->size(); ++i) {
    const std::int64_t begin = (*at)[i], end = (*at)[i + 1];
    if (end < begin || begin < 0 || end > total || end - begin > longest) return std::nullopt;
    found.push_back(end - begin);
  }
  return found;
}

}  // namespace

std::optional<json> recorded_problem(const RecordedCall& call, const RecordedForm& form) {
  constexpr double kMostProducts = 1 << 29;
  const fa_params& p = form.p;
  const char* const dtype = dtype_name(p.dtype);
  const auto row_count = [](std::int64_t n) { return n >= 0 && n <= kMostRows; };
  if (dtype == nullptr || p.size != sizeof(fa_params) || !std::isfinite(p.scale))
    return std::nullopt;
  for (const std::int64_t n : {p.B, p.Hq, p.Hkv, p.Nq, p.Nk, p.D, p.Dv}) {
    if (!row_count(n)) return std::nullopt;
  }
  if (p.B < 1 || p.Hkv < 1 || p.Hq < 1 || p.Hq % p.Hkv != 0 || p.D < 1 || p.Dv < 1)
    return std::nullopt;
  const bool packed = form.cu_q >= 0;
  const std::int64_t B = packed ? 1 : p.B, queries = packed ? form.total_q : p.Nq,
                     keys = packed ? form.total_k : p.Nk;
  if (!row_count(queries) || !row_count(keys)) return std::nullopt;
  const double products = static_cast<double>(B * p.Hq) * static_cast<double>(queries) *
                          static_cast<double>(keys + 1) * static_cast<double>(p.D + p.Dv);
  if (!(products <= kMostProducts)) return std::nullopt;
  if (!apart(p.sq, B, p.Hq, queries, p.D) || !apart(p.sk, B, p.Hkv, keys, p.D) ||
      !apart(p.sv, B, p.Hkv, keys, p.Dv) || !apart(p.so, B, p.Hq, queries, p.Dv))
    return std::nullopt;
  json found{{"dtype", dtype},
             {"Hq", p.Hq},
             {"Hkv", p.Hkv},
             {"D", p.D},
             {"Dv", p.Dv},
             {"scale", p.scale},
             {"causal", p.causal != 0},
             {"window", p.window},
             {"strides",
              {{"q", stride_json(p.sq, B, p.Hq, queries)},
               {"k", stride_json(p.sk, B, p.Hkv, keys)},
               {"v", stride_json(p.sv, B, p.Hkv, keys)},
               {"o", stride_json(p.so, B, p.Hq, queries)}}}};
  if (packed) {
    const auto q = lengths(values<std::int64_t>(call, form.cu_q, p.B + 1), queries, p.Nq);
    const auto k = lengths(values<std::int64_t>(call, form.cu_k, p.B + 1), keys, p.Nk);
    if (!q || !k) return std::nullopt;
    found["q_len"] = *q;
    found["k_len"] = *k;
  } else {
    found["B"] = p.B;
    found["Nq"] = p.Nq;
    found["Nk"] = p.Nk;
  }
  const auto given = [&](std::int32_t handle) {
    const RecordedCall::Array* const array = call.find(handle);
    return array != nullptr && !array->null;
  };
  if (form.extra) {
    if (!(form.softcap >= 0) || !std::isfinite(form.softcap)) return std::nullopt;
    found["softcap"] = form.softcap;
    found["alibi"] = given(form.alibi);
    found["sink"] = given(form.sink);
    if (given(form.kv_len)) {
      const auto each = values<std::int64_t>(call, form.kv_len, p.B);
      if (!each || std::ranges::any_of(*each, [&](auto n) { return n < 0 || n > p.Nk; }))
        return std::nullopt;
      found["kv_len"] = *each;
    }
  }
  if (form.bias) {
    const fa_bias& b = *form.bias;
    const auto fits = [](std::int64_t n, std::int64_t full) { return n == 1 || n == full; };
    if (b.size != sizeof(fa_bias) || !fits(b.B, p.B) || !fits(b.Hq, p.Hq) || !fits(b.Nq, p.Nq) ||
        !fits(b.Nk, p.Nk))
      return std::nullopt;
    found["bias"] = {b.B == p.B ? 0 : 1, b.Hq == p.Hq ? 0 : 1, b.Nq == p.Nq ? 0 : 1,
                     b.Nk == p.Nk ? 0 : 1};
  }
  return found;
}

bool finite_rows(const Problem& problem, const assay_stride& s, std::int64_t H, std::int64_t N,
                 std::int64_t D, const BufferView& view) {
  const fa_params p = problem.flat().p;
  if (view.bytes == 0) return true;
  for (std::int64_t row = 0; row < p.B * H * N; ++row) {
    const std::int64_t at = row / (H * N) * s.b + row / N % H * s.h + row % N * s.n;
    for (std::int64_t d = 0; d < D; ++d) {
      if (!std::isfinite(widen(p.dtype, view.data, at + d))) return false;
    }
  }
  return true;
}

bool finite_values(const BufferView& view) {
  return std::ranges::all_of(view.span<float>(), [](float x) { return std::isfinite(x); });
}

}  // namespace assay::attention
