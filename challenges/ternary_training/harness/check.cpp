// Checks blocks and bytes exactly, sums by the common rule, and trained models by their loss on
// held-out documents.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "assay/size.h"
#include "assay/tolerance.h"
#include "real_text.h"
#include "trusted.h"

namespace assay::ternary_training {
namespace {

void check_blocks(std::span<const std::uint8_t> got, std::span<const std::uint8_t> expected,
                  CheckResult& result) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == expected[i]) continue;
    const std::size_t byte = i % kBlockBytes;
    return fail(result,
                fmt::format("block {}: byte {} ({}) is {:#04x}, expected {:#04x}", i / kBlockBytes,
                            byte, byte < 2 ? "scale" : "codes", got[i], expected[i]));
  }
}

void check_dense(std::span<const std::uint8_t> got, std::span<const std::uint8_t> expected,
                 CheckResult& result) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == expected[i]) continue;
    const std::size_t byte = i % kDenseBytes;
    return fail(result,
                fmt::format("dense block {}: byte {} ({}) is {}, expected {}", i / kDenseBytes,
                            byte, byte < 26 ? "codes" : "scale", got[i], expected[i]));
  }
}

void check_weights(std::span<const float> got, std::span<const float> expected,
                   CheckResult& result) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected[i])) continue;
    return fail(result, fmt::format("weight {}: got {}, expected {}", i, got[i], expected[i]));
  }
}

void check_rows(const char* name, ToleranceRule rule, std::span<const float> got,
                const std::vector<Row>& rows, CheckResult& result) {
  if (rows.empty() || rows.front().expected.empty()) return;
  RowJudge judge(name, rule);
  for (const Row& row : rows) {
    const auto n = row.expected.size();
    const auto from = got.subspan(to_size(row.index) * n, n);
    judge.row(row.index, std::vector<double>(from.begin(), from.end()), row.expected, row.plain,
              row.scale);
  }
  judge.add_to(result);
}

void check_logits(const Shape& s, double c, const TernReference& r, BufferViews buffers,
                  CheckResult& result) {
  const auto got = buffers[logits::kLogits].span<float>();
  const auto V = to_size(s.call.config.V);
  RowJudge judge("logits", {4.0, c * kEps32});
  for (std::size_t at = 0; at < r.logits.size(); at += V) {
    const std::span<const double> expected(r.logits.data() + at, V),
        plain(r.logits32.data() + at, V);
    double most = r.usual_logit;
    for (const double v : expected) most = std::max(most, std::abs(v));
    const auto from = got.subspan(at, V);
    judge.row(static_cast<std::int64_t>(at / V), std::vector<double>(from.begin(), from.end()),
              expected, plain, std::vector<double>(V, most));
  }
  judge.add_to(result);
}

std::vector<float> floats_of(const BufferView& bf16) {
  std::vector<float> out;
  for (const std::uint16_t bits : bf16.span<std::uint16_t>()) out.push_back(bf16_to_float(bits));
  return out;
}

// Each token must be the best one after the preceding tokens in the output, including those that
// the submission generated. So a token that is equally good up to fp32 rounding does not make the
// rest of the document wrong.
void check_generation(const CaseSpec& spec, const Shape& s, BufferViews buffers,
                      CheckResult& result) {
  using namespace generation;
  const tt_config& c = s.call.config;
  std::string why_not;
  const auto model = decode_blob(c, buffers[kBlob].span<std::uint8_t>(), why_not);
  if (model == nullptr) return fail(result, why_not);
  const auto V = to_size(c.V), T = to_size(c.T);
  std::vector<double> logits(T * V);
  double worst = 0;
  for (std::size_t doc = 0; doc < to_size(s.call.n_docs); ++doc) {
    std::vector<std::uint16_t> tokens;
    std::vector<bool> generated;
    for (const int part : {kTokens, kGenerated, kMoreTokens, kMoreGenerated}) {
      const auto all = buffers[to_size(part)].span<std::uint16_t>();
      const std::size_t n = all.size() / to_size(s.call.n_docs);
      for (const std::uint16_t token : all.subspan(doc * n, n)) {
        if (token >= V)
          return fail(result,
                      fmt::format("document {}, position {}: token {}", doc, tokens.size(), token));
        tokens.push_back(token);
        generated.push_back(part == kGenerated || part == kMoreGenerated);
      }
    }
    const std::size_t length = tokens.size();
    tokens.resize(T);
    model->logits(tokens.data(), logits.data());
    for (std::size_t t = 1; t < length; ++t) {
      if (!generated[t]) continue;
      const std::span<const double> row(logits.data() + (t - 1) * V, V);
      const auto best = std::max_element(row.begin(), row.end());
      // Twice the allowed error of a logit.
      const double bound =
          2 * spec.params.value("C", 2000.0) * kEps32 *
          std::max(std::abs(*best), std::abs(*std::min_element(row.begin(), row.end())));
      const double gap = *best - row[tokens[t]];
      worst = std::max(worst, gap / bound);
      if (gap <= bound) continue;
      fail(result, fmt::format("document {}, position {}: token {} has logit {:.6f}, {} has {:.6f}",
                               doc, t, tokens[t], row[tokens[t]], best - row.begin(), *best));
    }
  }
  result.error = worst;
  result.bound = 1;
}

void check_counts(std::span<const std::int64_t> got, std::span<const std::int64_t> expected,
                  CheckResult& result) {
  constexpr const char* kNames[] = {"negative weights", "zero weights",     "positive weights",
                                    "rows of zeros",    "columns of zeros", "changed weights",
                                    "reversed weights"};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == expected[i]) continue;
    return fail(result, fmt::format("matrix {}: {} {}, expected {}", i / kCountsPerMatrix, got[i],
                                    kNames[i % kCountsPerMatrix], expected[i]));
  }
}

struct Loss {
  std::array<double, kKinds> kind{};  // mean nats per token
  double mean = 0;
};

Loss loss_of(const TernReference& r, const std::vector<double>& cost,
             std::span<const std::uint8_t> kind, std::size_t T) {
  Loss loss;
  double count = 0;
  for (std::size_t i = 0; i < cost.size(); ++i) {
    if (i % T != 0) loss.kind[kind[i]] += cost[i];
  }
  for (std::size_t k = 0; k < kKinds; ++k) {
    loss.mean += loss.kind[k];
    count += r.count[k];
    loss.kind[k] /= std::max(r.count[k], 1.0);
  }
  loss.mean /= std::max(count, 1.0);
  return loss;
}

double mean_of(const TernReference& r, const std::array<double, kKinds>& kind) {
  double sum = 0, count = 0;
  for (std::size_t k = 0; k < kKinds; ++k) {
    sum += kind[k] * r.count[k];
    count += r.count[k];
  }
  return sum / std::max(count, 1.0);
}

// How far the loss has come from the bigram's to the floor; at most 1.
double closure(double bigram, double floor, double loss) {
  return std::min((bigram - loss) / (bigram - floor), 1.0);
}

void add_metrics(const TernReference& r, const Loss& loss, CheckResult& result) {
  for (std::size_t k = 0; k < kKinds; ++k) {
    if (r.count[k] == 0) continue;
    const std::string name = kKindNames[k];
    result.metrics.push_back(
        {"closure_" + name, std::max(closure(r.bigram[k], r.floor[k], loss.kind[k]), 0.0)});
    result.metrics.push_back({"nats_" + name, loss.kind[k]});
    result.metrics.push_back({"floor_" + name, r.floor[k]});
    result.metrics.push_back({"bigram_" + name, r.bigram[k]});
  }
  result.metrics.push_back({"perplexity", std::exp(loss.mean)});
  result.metrics.push_back({"floor_perplexity", std::exp(mean_of(r, r.floor))});
  result.metrics.push_back({"bigram_perplexity", std::exp(mean_of(r, r.bigram))});
}

// Tests with another language of the same kind: a model that is equally good at it has not learned
// from the documents.
void check_foreign(const CaseSpec& spec, const Shape& s, const Model& model, BufferViews buffers,
                   double own, CheckResult& result) {
  const auto docs = buffers[train::kForeign].span<std::uint16_t>();
  if (docs.empty()) return;
  double sum = 0;
  for (const double c : token_costs(model, s.call.config, docs)) sum += c;
  const auto tokens = static_cast<double>(docs.size()) * (1 - 1.0 / s.call.config.T);
  const double margin = spec.params.at("foreign_margin"), foreign = sum / tokens;
  result.metrics.push_back({"foreign_minus_own_nats", foreign - own});
  if (!(foreign - own >= margin)) {
    fail(result,
         fmt::format("{:.3f} nats a token on held-out documents and {:.3f} on another language: "
                     "{} apart at least if it had learned this one",
                     own, foreign, margin));
  }
}

void require_loss(const TernReference& r, double loss, double most, CheckResult& result) {
  result.error = loss;
  result.bound = most;
  if (loss <= most) return;
  fail(result,
       fmt::format("held-out loss {:.3f} nats a token, at most {:.3f} is asked (least possible "
                   "{:.3f}, bigram {:.3f})",
                   loss, most, mean_of(r, r.floor), mean_of(r, r.bigram)));
}

// Kind by kind: counting neighbours reaches about 0 of each, however good it is otherwise.
void require_closures(const CaseSpec& spec, const TernReference& r, const Loss& loss,
                      CheckResult& result) {
  const auto least = spec.params.find("least_closure");
  if (least == spec.params.end()) return;
  for (std::size_t k = 0; k < kKinds; ++k) {
    const auto asked = least->find(kKindNames[k]);
    if (asked == least->end()) continue;
    const double got = closure(r.bigram[k], r.floor[k], loss.kind[k]);
    if (got >= asked->get<double>()) continue;
    fail(result, fmt::format("{}: {:.3f} of the way from a pair-counting model's loss to the least "
                             "possible, at least {} is asked",
                             kKindNames[k], got, asked->get<double>()));
  }
}

// A model of real text has no requirement; its bits per byte are reported next to those of xz.
void check_text(const Shape& s, const std::vector<double>& cost, BufferViews buffers,
                CheckResult& result) {
  const double bytes = static_cast<double>(cost.size()) *
                       (1 - 1.0 / s.call.config.T);  // the first byte of a document is given
  const double bits = std::accumulate(cost.begin(), cost.end(), 0.0) / bytes / std::numbers::ln2;
  if (!std::isfinite(bits)) return fail(result, "the model's loss is not finite");
  result.metrics.push_back({"bits_per_byte", bits});
  result.metrics.push_back(
      {"xz_bits_per_byte",
       static_cast<double>(buffers[train::kCost].as<float>()[0]) / std::numbers::ln2});
}

void check_train(const CaseSpec& spec, const Shape& s, const TernReference& r, BufferViews buffers,
                 CheckResult& result) {
  std::string why_not;
  const auto model =
      decode_blob(s.call.config, buffers[train::kBlob].span<std::uint8_t>(), why_not);
  if (model == nullptr) return fail(result, why_not);
  const auto held_out = buffers[train::kHeldOut].span<std::uint16_t>();
  if (held_out.empty()) return;
  const auto cost = token_costs(*model, s.call.config, held_out);
  if (!text_file(spec).empty()) return check_text(s, cost, buffers, result);
  const Loss loss =
      loss_of(r, cost, buffers[train::kKind].span<std::uint8_t>(), to_size(s.call.config.T));
  if (!std::isfinite(loss.mean)) return fail(result, "the model's loss is not finite");
  add_metrics(r, loss, result);
  const double mean_closure =
      (mean_of(r, r.bigram) - loss.mean) / (mean_of(r, r.bigram) - mean_of(r, r.floor));
  result.metrics.push_back({"closure", mean_closure});
  const auto require_at_most = [&](const char* name, double base) {
    const auto over = spec.params.find(name);
    if (over != spec.params.end()) require_loss(r, loss.mean, base + over->get<double>(), result);
  };
  require_at_most("most_nats", 0);
  require_at_most("most_over_floor", mean_of(r, r.floor));
  require_at_most("most_over_bigram", mean_of(r, r.bigram));
  require_closures(spec, r, loss, result);
  check_foreign(spec, s, *model, buffers, loss.mean, result);
}

// The first byte in which two blobs differ, or their size.
std::size_t first_difference(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return to_size(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

// The interrupted training must end in the same state as the other one, and both must give a model.
// So must two that end earlier; and at least one step is taken after that, because no more than half
// of the tokens were allowed.
void check_train_part(const CaseSpec& spec, const Shape& s, const TernReference& r,
                      BufferViews buffers, CheckResult& result) {
  check_train(spec, s, r, buffers, result);
  const auto whole = buffers[train_part::kWhole].span<std::uint8_t>(),
             blob = buffers[train::kBlob].span<std::uint8_t>();
  if (const std::size_t at = first_difference(whole, blob); at < whole.size()) {
    return fail(result, fmt::format("byte {} of the blob is {} after an interruption, {} without",
                                    at, blob[at], whole[at]));
  }
  if (s.call.interrupted_again_at == 0) return;
  const auto later = buffers[train_part::kLater].span<std::uint8_t>(),
             resumed = buffers[train_part::kLaterResumed].span<std::uint8_t>();
  if (const std::size_t at = first_difference(later, resumed); at < later.size()) {
    return fail(result, fmt::format("byte {} of the blob after {} tokens is {} after an "
                                    "interruption, {} without",
                                    at, s.call.interrupted_again_at, resumed[at], later[at]));
  }
  if (first_difference(later, whole) == whole.size()) {
    fail(result, fmt::format("the blob after {} tokens is that after {}: `until` is ignored",
                             s.call.interrupted_again_at, s.call.budget.max_tokens));
  }
}

}  // namespace

CheckResult check_outputs(const CaseSpec& spec, const TernReference& r, BufferViews buffers) {
  const Shape s = shape_of(spec);
  CheckResult result;
  switch (s.entry) {
    case kQuantize:
      check_blocks(buffers[quantize::kBlocks].span<std::uint8_t>(), r.bytes, result);
      break;
    case kDequantize:
      check_weights(buffers[dequantize::kW].span<float>(), r.weights, result);
      break;
    case kPackDense: check_dense(buffers[dense::kTo].span<std::uint8_t>(), r.bytes, result); break;
    case kUnpackDense:
      check_blocks(buffers[dense::kTo].span<std::uint8_t>(), r.bytes, result);
      break;
    case kLinearBf16:
      // One rounding: the errors of the sum are far smaller.
      check_rows("y", {2.0, 0x1p-9}, floats_of(buffers[linear::kY]), r.y, result);
      check_rows("dx", {2.0, 0x1p-9}, floats_of(buffers[linear::kDx]), r.dx, result);
      check_rows("dw_latent", {4.0, spec.params.value("C", 32.0) * kEps32},
                 buffers[linear::kDw].span<float>(), r.dw, result);
      break;
    case kDistill:
      check_rows("loss", {4.0, 64 * kEps32}, buffers[distill::kLoss].span<float>(), r.loss, result);
      check_rows("gradient", {4.0, 64 * kEps32}, buffers[distill::kGradient].span<float>(),
                 r.gradient, result);
      break;
    case kGenerate: check_generation(spec, s, buffers, result); break;
    case kTrainPart: check_train_part(spec, s, r, buffers, result); break;
    case kStatistics:
      check_counts(buffers[statistics::kCounts].span<std::int64_t>(), r.counts, result);
      break;
    case kLinear: {
      const ToleranceRule c{4.0, spec.params.value("C", 32.0) * kEps32};
      const auto y = buffers[linear::kY].span<float>(), dx = buffers[linear::kDx].span<float>(),
                 dw = buffers[linear::kDw].span<float>();
      check_rows("y", c, y, r.y, result);
      check_rows("dx", c, dx, r.dx, result);
      check_rows("dw_latent", c, dw, r.dw, result);
      r.all_y.check("y", c, y, result);
      r.all_dx.check("dx", c, dx, result);
      r.all_dw.check("dw_latent", c, dw, result);
      break;
    }
    case kBlobBytes: {
      const std::int64_t got = *buffers[blob_bytes::kBytes].as<std::int64_t>();
      const std::int64_t expected = blob_size(s.call.config);
      if (got != expected)
        fail(result, fmt::format("tt_blob_bytes is {}, expected {}", got, expected));
      break;
    }
    case kTrain: check_train(spec, s, r, buffers, result); break;
    case kLogits: check_logits(s, spec.params.value("C", 2000.0), r, buffers, result); break;
  }
  return result;
}

}  // namespace assay::ternary_training
