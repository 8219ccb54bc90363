// What a case asks for, and the buffers that follow from it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "assay/error.h"
#include "assay/poison.h"
#include "assay/size.h"
#include "assay/tolerance.h"
#include "attention.h"

namespace assay::attention {
namespace {

using nlohmann::json;

assay_stride strides(const std::string& layout, std::int64_t far, std::int64_t H, std::int64_t N,
                     std::int64_t D) {
  if (layout == "bhnd") return {H * N * D, N * D, D};
  if (layout == "bshd") return {N * H * D, D, H * D};
  if (layout == "padded") {
    const std::int64_t n = D + 5, h = N * n + 7;
    return {H * h + 11, h, n};
  }
  if (layout == "far_rows") return {N * far, D, far};
  if (layout == "far_heads") return {H * far, far, D};
  if (layout == "far_items") return {far, N * D, D};
  throw Error(fmt::format("attention: unknown layout '{}'", layout));
}

std::int32_t dtype_named(const std::string& name) {
  if (name == "f32") return ASSAY_F32;
  if (name == "bf16") return ASSAY_BF16;
  if (name == "f16") return ASSAY_F16;
  throw Error(fmt::format("attention: unknown dtype '{}'", name));
}

}  // namespace

Problem problem_of(const CaseSpec& spec) {
  const json& j = spec.params;
  Problem out;
  fa_params& p = out.p;
  p.size = sizeof(fa_params);
  p.dtype = dtype_named(j.value("dtype", "f32"));
  out.q_len = j.value("q_len", std::vector<std::int64_t>{});
  out.k_len = j.value("k_len", out.q_len);
  if (out.q_len.size() != out.k_len.size()) {
    throw Error(fmt::format("attention: case '{}': q_len and k_len need the same number of lengths",
                            spec.name));
  }
  p.B = out.packed() ? static_cast<std::int64_t>(out.q_len.size()) : j.value("B", std::int64_t{1});
  p.Hq = j.value("Hq", std::int64_t{1});
  p.Hkv = j.value("Hkv", p.Hq);
  p.Nq = out.packed() ? std::ranges::max(out.q_len) : j.at("Nq").get<std::int64_t>();
  p.Nk = out.packed() ? std::ranges::max(out.k_len) : j.value("Nk", p.Nq);
  p.D = j.value("D", std::int64_t{64});
  p.Dv = j.value("Dv", p.D);
  const std::string layout = j.value("layout", "bhnd");
  const std::int64_t far = j.value("far", (std::int64_t{1} << 31) + 8);
  out.sparse = layout.starts_with("far_");
  const std::int64_t queries = out.flat().p.Nq, keys = out.flat().p.Nk;
  p.sq = strides(layout, far, p.Hq, queries, p.D);
  p.sk = strides(layout, far, p.Hkv, keys, p.D);
  p.sv = strides(layout, far, p.Hkv, keys, p.Dv);
  p.so = strides(layout, far, p.Hq, queries, p.Dv);
  if (j.contains("strides")) {
    const auto given = [&](const char* name) {
      const json& s = j.at("strides").at(name);
      return assay_stride{s.at(0), s.at(1), s.at(2)};
    };
    p.sq = given("q");
    p.sk = given("k");
    p.sv = given("v");
    p.so = given("o");
  }
  if (out.packed()) p.sq.b = p.sk.b = p.sv.b = p.so.b = 0;
  p.scale = j.value("scale", 1.0f / std::sqrt(static_cast<float>(std::max<std::int64_t>(p.D, 1))));
  p.causal = j.value("causal", true) ? 1 : 0;
  p.window = j.value("window", std::int64_t{-1});
  out.softcap = j.value("softcap", 0.0f);
  out.alibi = j.value("alibi", false);
  out.sink = j.value("sink", false);
  out.kv_len = j.value("kv_len", std::vector<std::int64_t>{});
  if (!out.kv_len.empty() && static_cast<std::int64_t>(out.kv_len.size()) != p.B) {
    throw Error(fmt::format("attention: case '{}': kv_len needs B lengths", spec.name));
  }
  out.bias_poison = j.value("bias_poison", false);
  out.fp8 = j.value("fp8", false);
  if (j.contains("bias")) {
    const auto size = [&](std::size_t at, std::int64_t full) {
      return j.at("bias").at(at) == 0 ? full : std::int64_t{1};
    };
    out.bias = true;
    out.bias_shape = {sizeof(fa_bias), size(0, p.B), size(1, p.Hq), size(2, p.Nq), size(3, p.Nk)};
  }
  out.data = j.value("data", json::object());
  return out;
}

Problem Problem::flat() const {
  Problem out = *this;
  if (!packed()) return out;
  out.p.B = 1;
  out.p.Nq = first_query(p.B);
  out.p.Nk = first_key(p.B);
  out.q_len.clear();
  out.k_len.clear();
  return out;
}

std::int64_t Problem::first_query(std::int64_t b) const {
  return packed() ? std::accumulate(q_len.begin(), q_len.begin() + b, std::int64_t{0}) : 0;
}

std::int64_t Problem::first_key(std::int64_t b) const {
  return packed() ? std::accumulate(k_len.begin(), k_len.begin() + b, std::int64_t{0}) : 0;
}

std::int64_t Problem::lse_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
  return packed() ? h * first_query(p.B) + first_query(b) + i : (b * p.Hq + h) * p.Nq + i;
}

fa_params told_params(const CaseSpec& spec, const Problem& problem) {
  fa_params p = problem.p;
  const json wrong = spec.params.value("override", json::object());
  p.B = wrong.value("B", p.B);
  p.Hq = wrong.value("Hq", p.Hq);
  p.Hkv = wrong.value("Hkv", p.Hkv);
  p.Nq = wrong.value("Nq", p.Nq);
  p.Nk = wrong.value("Nk", p.Nk);
  p.D = wrong.value("D", p.D);
  p.Dv = wrong.value("Dv", p.Dv);
  return p;
}

std::int64_t span_of(const assay_stride& s, std::int64_t B, std::int64_t H, std::int64_t N,
                     std::int64_t D) {
  if (B == 0 || H == 0 || N == 0 || D == 0) return 0;
  return (B - 1) * s.b + (H - 1) * s.h + (N - 1) * s.n + D;
}

std::vector<Piece> pieces_of(const Problem& problem, const assay_stride& s, std::int64_t H,
                             std::int64_t N, std::int64_t D) {
  if (!problem.sparse || D == 0) return {};
  std::vector<std::int64_t> rows;
  const std::int64_t B = problem.flat().p.B;
  for (std::int64_t row = 0; row < B * H * N; ++row)
    rows.push_back(row / (H * N) * s.b + row / N % H * s.h + row % N * s.n);
  std::ranges::sort(rows);
  std::vector<Piece> pieces;
  for (const std::int64_t first : rows) {
    const bool joins = !pieces.empty() && pieces.back().first + pieces.back().count == first;
    if (!joins) pieces.push_back({first, 0});
    pieces.back().count += D;
  }
  return pieces;
}

Dtype dtype_of(const Problem& problem) {
  if (problem.p.dtype == ASSAY_F32) return Dtype::f32;
  return problem.p.dtype == ASSAY_BF16 ? Dtype::bf16 : Dtype::f16;
}

Range visible(const Problem& problem, std::int64_t i, std::int64_t Nq, std::int64_t L) {
  const std::int64_t diagonal = i + L - Nq;
  Range r{0, L};
  if (problem.p.causal != 0) r.hi = std::clamp<std::int64_t>(diagonal + 1, 0, L);
  // Any window may be asked for, up to the largest number.
  const std::int64_t window = std::min(problem.p.window, Nq + L);
  if (window > 0) r.lo = std::clamp<std::int64_t>(diagonal - window + 1, 0, L);
  return r;
}

double visible_pairs(const Problem& problem) {
  std::int64_t pairs = 0;
  for (std::int64_t b = 0; b < problem.p.B; ++b) {
    const std::int64_t Nq = problem.queries_of(b), L = problem.keys_of(b);
    for (std::int64_t i = 0; i < Nq; ++i) {
      const Range r = visible(problem, i, Nq, L);
      pairs += std::max<std::int64_t>(r.hi - r.lo, 0);
    }
  }
  return static_cast<double>(pairs * problem.p.Hq);
}

void check_gaps(const Problem& problem, const assay_stride& s, std::int64_t H, std::int64_t N,
                std::int64_t D, const BufferView& output, const char* name, CheckResult& result) {
  if (problem.sparse) return;
  const std::int64_t size = problem.p.dtype == ASSAY_F32 ? 4 : 2;
  const fa_params p = problem.flat().p;
  const auto elements = static_cast<std::int64_t>(output.bytes) / size;
  if (elements == p.B * H * N * D) return;
  std::vector<char> written(to_size(elements), 0);
  for (std::int64_t row = 0; row < p.B * H * N; ++row) {
    const std::int64_t b = row / (H * N), h = row / N % H, n = row % N;
    std::fill_n(written.begin() + b * s.b + h * s.h + n * s.n, D, char{1});
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    if (written[to_size(i)] != 0) continue;
    if (is_unwritten(output.as<std::byte>() + i * size, to_size(size))) continue;
    return fail(result,
                fmt::format("{}: element {} lies between rows and was overwritten", name, i));
  }
}

std::string shape_text(const Problem& problem) {
  const fa_params& p = problem.p;
  std::string text = fmt::format("B={} H={}", p.B, p.Hq);
  if (p.Hkv != p.Hq) text += fmt::format("/{}", p.Hkv);
  const char* most = problem.packed() ? "<=" : "=";
  text += p.Nq == p.Nk ? fmt::format(" N{}{}", most, p.Nq)
                       : fmt::format(" Nq{}{} Nk{}{}", most, p.Nq, most, p.Nk);
  text += p.D == p.Dv ? fmt::format(" D={}", p.D) : fmt::format(" D={} Dv={}", p.D, p.Dv);
  if (p.causal != 0) text += " causal";
  if (p.window > 0) text += fmt::format(" window={}", p.window);
  if (problem.fp8) text += " e4m3";
  if (p.dtype != ASSAY_F32) text += p.dtype == ASSAY_BF16 ? " bf16" : " f16";
  return text;
}

}  // namespace assay::attention
