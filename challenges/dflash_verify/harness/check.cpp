// Checks masks, nodes and tokens exactly; attention within the rounding that the conditioning of
// its scores allows; sampling by what the uniforms decide, and by its distribution if the case asks
// for that.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "assay/size.h"
#include "assay/tolerance.h"
#include "language_model.h"
#include "shared/log_sum_exp.h"
#include "shared/score_rounding.h"
#include "trusted.h"

namespace assay::dflash_verify {
namespace {

template <class T>
void equal(CheckResult& result, const char* name, const BufferView& got,
           const std::vector<T>& expected) {
  if (got.bytes == 0) return;
  check_equal<T>(result, name, got.span<T>(), std::span<const T>(expected));
}

void check_full_mask(const Shape& s, const DflashReference& r, BufferViews buffers,
                     CheckResult& result) {
  const std::int64_t n = s.nodes(), side = s.rows.back(), P = side - n;
  const std::uint8_t* M = buffers[full_mask::kM].as<std::uint8_t>();
  for (std::int64_t i = 0; i < side; ++i) {
    for (std::int64_t j = 0; j < side; ++j) {
      const int expected = i < P   ? (j <= i ? 1 : 0)
                           : j < P ? 1
                                   : r.sees[to_size((i - P) * n + j - P)];
      if (M[i * side + j] == expected) continue;
      return fail(result, fmt::format("M[{},{}]: got {}, expected {} (the prefix has {} rows)", i,
                                      j, M[i * side + j], expected, P));
    }
  }
}

// --- attention

double widened(const Shape& s, const BufferView& o, std::size_t at) {
  if (s.dtype == ASSAY_F32) return static_cast<double>(o.as<float>()[at]);
  return static_cast<double>(bf16_to_float(o.as<std::uint16_t>()[at]));
}

// One query head of one node: its row of o and its lse.
void check_head(const Shape& s, const DflashReference& r, BufferViews buffers, std::size_t row,
                RowJudge& o_judge, RowJudge& lse_judge) {
  const auto D = to_size(s.D);
  const double c = attention_roundings(static_cast<double>(r.keys[row / to_size(s.Hq)]), s.D,
                                       r.conditioning[row]);
  const bool f32 = s.dtype == ASSAY_F32;
  std::vector<double> got(D);
  for (std::size_t d = 0; d < D; ++d) got[d] = widened(s, buffers[attention::kO], row * D + d);
  RowJudge judge("o", {f32 ? 4.0 : 2.0, c * kEps32 + (f32 ? 0 : 2 * kEpsBf16)});
  const auto part = [&](const std::vector<double>& all) {
    return std::span<const double>(all).subspan(row * D, D);
  };
  judge.row(static_cast<std::int64_t>(row), got, part(r.o), part(r.plain_o), part(r.scale_o));
  o_judge.merge(judge);
  if (buffers[attention::kLse].bytes == 0) return;
  const double lse = static_cast<double>(buffers[attention::kLse].as<float>()[row]);
  judge_log_sum_exp("lse", static_cast<std::int64_t>(row), lse, r.lse[row], r.plain_lse[row],
                    c * kEps32, lse_judge);
}

void check_attention(const Shape& s, const DflashReference& r, BufferViews buffers,
                     CheckResult& result) {
  RowJudge o("o", {}), lse("lse", {});
  for (std::size_t row = 0; row < r.lse.size(); ++row) check_head(s, r, buffers, row, o, lse);
  o.add_to(result);
  lse.add_to(result);
}

// --- accept

void check_item(const Shape& s, const DflashReference& r, BufferViews buffers, std::size_t b,
                CheckResult& result) {
  using namespace accept;
  const std::int32_t n_acc = buffers[kNAcc].as<std::int32_t>()[b];
  const std::int32_t bonus = buffers[kBonus].as<std::int32_t>()[b];
  if (n_acc != r.n_acc[b]) {
    return fail(result, fmt::format("n_acc[{}]: got {}, expected {}", b, n_acc, r.n_acc[b]));
  }
  if (bonus != r.bonus[b]) {
    return fail(result, fmt::format("bonus[{}]: got {}, expected {}", b, bonus, r.bonus[b]));
  }
  const std::int32_t* acc = buffers[kAccNode].as<std::int32_t>();
  for (std::int64_t i = s.cu[b]; i < s.cu[b + 1]; ++i) {
    const std::int32_t expected = r.acc_node[to_size(i)];
    if (acc[i] == expected) continue;
    return fail(result, fmt::format("acc_node of item {} at {}: got {}, expected {}", b,
                                    i - s.cu[b], acc[i], expected));
  }
}

// The token that an item emits first, or -1 if its outputs name none.
std::int32_t first_token(const Shape& s, BufferViews buffers, std::size_t b) {
  using namespace accept;
  if (buffers[kNAcc].as<std::int32_t>()[b] <= 0) return buffers[kBonus].as<std::int32_t>()[b];
  if (s.items[b].n == 0) return -1;
  const std::int32_t node = buffers[kAccNode].as<std::int32_t>()[s.cu[b]];
  if (node < 0 || node >= s.items[b].n) return -1;
  return buffers[kToken].as<std::int32_t>()[s.cu[b] + node];
}

// All items share the target's distribution, which that of their first tokens must match.
void check_distribution(const Shape& s, BufferViews buffers, CheckResult& result) {
  const auto V = to_size(s.V);
  const float* logits = buffers[accept::kRootLogits].as<float>();
  std::vector<double> p(V), seen(V, 0);
  double sum = 0, distance = 0;
  for (std::size_t j = 0; j < V; ++j) {
    sum += p[j] = std::exp(static_cast<double>(logits[j]) / static_cast<double>(s.temperature));
  }
  for (std::size_t b = 0; b < s.items.size(); ++b) {
    const std::int32_t token = first_token(s, buffers, b);
    if (token < 0 || token >= s.V) {
      return fail(result, fmt::format("item {} emits {}, which is no token", b, token));
    }
    seen[to_size(token)] += 1;
  }
  for (std::size_t j = 0; j < V; ++j) {
    distance += std::abs(seen[j] / static_cast<double>(s.B()) - p[j] / sum) / 2;
  }
  result.metrics.push_back({"total_variation", distance});
  // Chance alone gives 0.4 times this root on average, at most.
  const double allowed = 1.118 * std::sqrt(static_cast<double>(s.V) / static_cast<double>(s.B()));
  if (!(distance < allowed)) {
    fail(result,
         fmt::format("the emitted tokens are {:.4f} from the target's distribution in total "
                     "variation, {:.4f} is allowed",
                     distance, allowed));
  }
}

void check_accept(const CaseSpec& spec, const Shape& s, const DflashReference& r,
                  BufferViews buffers, CheckResult& result) {
  for (std::size_t b = 0; b < s.items.size() && result.pass; ++b) {
    // If rounding may decide, either decision is right; the distribution still counts the item.
    if (r.unclear[b] == 0) check_item(s, r, buffers, b, result);
  }
  if (spec.params.value("shared", false)) check_distribution(s, buffers, result);
}

// --- compact and generate

void check_compact(const Shape& s, const DflashReference& r, BufferViews buffers,
                   CheckResult& result) {
  using namespace compact;
  const auto* rows = buffers[kRows].as<std::int64_t>();
  const auto* n_acc = buffers[kNAcc].as<std::int32_t>();
  const auto width = to_size(s.row_bytes);
  const std::byte* expected = r.kept.data();
  for (std::size_t b = 0; b < s.items.size(); ++b) {
    for (std::size_t c = 0; c < to_size(s.caches); ++c) {
      const std::int64_t first = rows[b * to_size(s.caches) + c];
      for (std::int64_t i = 0; i < s.items[b].P + n_acc[b]; ++i, expected += width) {
        const std::byte* got = buffers[kKv].as<std::byte>() + (first + i) * s.row_bytes;
        if (width == 0 || std::memcmp(got, expected, width) == 0) continue;
        return fail(result, fmt::format("row {} of cache {} of item {} (prefix {}, {} accepted) is "
                                        "not what it should be",
                                        i, c, b, s.items[b].P, n_acc[b]));
      }
    }
  }
}

void check_generate(const DflashReference& r, BufferViews buffers, const ModelServer& server,
                    CheckResult& result) {
  const auto expected = static_cast<std::int64_t>(r.text.size());
  const std::int64_t got = *buffers[generate::kNOut].as<std::int64_t>();
  std::vector<std::int32_t> text = r.text;
  text.resize(buffers[generate::kOut].span<std::int32_t>().size(), -1);
  equal(result, "out", buffers[generate::kOut], text);
  if (got != expected) fail(result, fmt::format("n_out: got {}, expected {}", got, expected));
  if (server.verify_calls() != r.verify_calls) {
    fail(result, fmt::format("the text is right, but took {} forward passes where {} are enough",
                             server.verify_calls(), r.verify_calls));
  }
  if (r.rows > 0) {
    result.metrics.push_back({"rows_over_fewest", static_cast<double>(server.verify_rows()) /
                                                      static_cast<double>(r.rows)});
  }
}

}  // namespace

CheckResult check_outputs(const CaseSpec& spec, const Shape& s, const DflashReference& r,
                          BufferViews buffers, const CallbackServer* server) {
  CheckResult result;
  switch (s.entry) {
    case kMask:
      equal(result, "bits", buffers[mask::kBits], r.bits);
      equal(result, "depth", buffers[mask::kDepth], r.depth);
      equal(result, "pos", buffers[mask::kPos], r.pos);
      break;
    case kFullMask: check_full_mask(s, r, buffers, result); break;
    case kAttention: check_attention(s, r, buffers, result); break;
    case kAccept: check_accept(spec, s, r, buffers, result); break;
    case kCompact: check_compact(s, r, buffers, result); break;
    case kGenerate:
      check_generate(r, buffers, static_cast<const ModelServer&>(*server), result);
      break;
  }
  return result;
}

}  // namespace assay::dflash_verify
