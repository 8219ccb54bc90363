// Checks tokens, lengths and flags exactly, sums within the rounding of double, and what the model
// was asked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "assay/size.h"
#include "assay/tolerance.h"
#include "trusted.h"

namespace assay::beam_search {
namespace {

class Checker {
 public:
  Checker(const Shape& s, const BeamReference& r, BufferViews buffers, CheckResult& result)
      : s_(s), r_(r), buffers_(buffers), result_(result) {}

  void item(std::size_t b) {
    const std::vector<Answer>& expected = r_.items[b];
    const std::int32_t n = buffers_[kNOut].span<std::int32_t>()[b];
    if (n != static_cast<std::int32_t>(expected.size())) {
      return fail(result_, fmt::format("n_out[{}]: got {}, expected {}", b, n, expected.size()));
    }
    for (std::size_t k = 0; k < to_size(s_.K) && result_.pass; ++k) {
      tokens(b, k, k < expected.size() ? &expected[k] : nullptr);
      if (k < expected.size()) numbers(b, k, expected[k]);
    }
  }

  // Items that are copies of each other must agree bitwise.
  void copies(std::size_t a, std::size_t b) {
    const auto K = to_size(s_.K);
    for (const int handle : {kAcc, kScore}) {
      const auto all = buffers_[to_size(handle)].span<double>();
      if (std::memcmp(&all[a * K], &all[b * K], r_.items[a].size() * sizeof(double)) != 0) {
        fail(result_, fmt::format("items {} and {} have the same model but other sums", a, b));
      }
    }
  }

 private:
  void tokens(std::size_t b, std::size_t k, const Answer* expected) {
    const auto T = to_size(s_.max_new), K = to_size(s_.K);
    const std::span<const std::int32_t> got =
        buffers_[kSeq].span<std::int32_t>().subspan((b * K + k) * T, T);
    for (std::size_t t = 0; t < T; ++t) {
      const bool inside = expected != nullptr && t < expected->tokens.size();
      const std::int32_t want = inside ? expected->tokens[t] : -1;
      if (got[t] == want) continue;
      return fail(result_, fmt::format("seq of item {}, beam {} at {}: got {}, expected {}", b, k,
                                       t, got[t], want));
    }
  }

  void numbers(std::size_t b, std::size_t k, const Answer& expected) {
    const std::size_t at = b * to_size(s_.K) + k;
    const std::int32_t len = buffers_[kLen].span<std::int32_t>()[at];
    const std::int32_t finished = buffers_[kFinished].span<std::int32_t>()[at];
    if (len != static_cast<std::int32_t>(expected.tokens.size())) {
      return fail(result_, fmt::format("len of item {}, beam {}: got {}, expected {}", b, k, len,
                                       expected.tokens.size()));
    }
    if (finished != (expected.finished ? 1 : 0)) {
      return fail(result_, fmt::format("finished of item {}, beam {}: got {}", b, k, finished));
    }
    number("acc", b, k, buffers_[kAcc].span<double>()[at], expected.acc, expected);
    number("score", b, k, buffers_[kScore].span<double>()[at], expected.score, expected);
  }

  void number(const char* name, std::size_t b, std::size_t k, double got, double want,
              const Answer& beam) {
    // Log-probabilities are not positive, so |acc| is the sum of their magnitudes. A negative alpha
    // magnifies the score, and its error with it.
    const double magnified = std::max(1.0, beam.acc == 0 ? 1.0 : beam.score / beam.acc);
    const double bound =
        magnified * (s_.kind == BS_LOGITS ? static_cast<double>(beam.tokens.size()) * 0x1p-20 *
                                                (1 + r_.largest_logit)
                                          : 1e-9 * (1 - beam.acc));
    const double error = std::abs(got - want);
    if (!(error <= bound)) {
      return fail(result_, fmt::format("{} of item {}, beam {}: got {:.17g}, expected {:.17g}",
                                       name, b, k, got, want));
    }
    if (result_.bound && error / bound <= *result_.error / *result_.bound) return;
    result_.error = error;
    result_.bound = bound;
  }

  const Shape& s_;
  const BeamReference& r_;
  BufferViews buffers_;
  CheckResult& result_;
};

void check_work(const Shape& s, const BeamReference& r, const ModelServer& server,
                CheckResult& result) {
  const std::int64_t calls = server.calls(), rows = server.rows();
  if (s.strict && (calls > r.calls || rows > r.rows)) {
    fail(result,
         fmt::format(
             "the answer is right, but took {} calls and {} rows of the model where {} and {} "
             "are enough",
             calls, rows, r.calls, r.rows));
  }
  // Unless it may stop early, a search that asks for fewer rows than it needs cannot be honest.
  if (s.keep_finished == 0 && (calls < r.calls || rows < r.rows)) {
    fail(result, fmt::format("only {} calls and {} rows of the model where {} and {} are needed",
                             calls, rows, r.calls, r.rows));
  }
  if (s.early && calls > r.early_calls) {
    fail(result, fmt::format("{} calls of the model; the answer was settled after {}", calls,
                             r.early_calls));
  }
  if (r.rows == 0) return;
  result.metrics.push_back(
      {"rows_over_fewest", static_cast<double>(rows) / static_cast<double>(r.rows)});
  result.metrics.push_back(
      {"calls_over_fewest", static_cast<double>(calls) / static_cast<double>(r.calls)});
}

}  // namespace

CheckResult check_outputs(const CaseSpec& spec, const Shape& s, const BeamReference& r,
                          BufferViews buffers, const ModelServer* server) {
  CheckResult result;
  Checker checker(s, r, buffers, result);
  for (std::size_t b = 0; b < r.items.size() && result.pass; ++b) checker.item(b);
  const auto copies = spec.params.value("copies", std::vector<std::vector<std::size_t>>{});
  for (const auto& pair : copies) {
    if (result.pass) checker.copies(pair.at(0), pair.at(1));
  }
  check_work(s, r, *server, result);
  return result;
}

}  // namespace assay::beam_search
