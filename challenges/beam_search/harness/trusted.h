// Shared by the trusted parts of this challenge: the terms of spec.json and the reference.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../worker/call.h"
#include "assay/challenge.h"
#include "language_model.h"

namespace assay::beam_search {

// A case's params in spec.json.
struct Shape {
  std::int32_t B = 0, K = 1, V = 1, max_new = 0, eos = -1, kind = BS_LOG_PROBS;
  std::int32_t rank_mode = 0, keep_finished = 0, penalty = 0, min_new = 0;
  double alpha = 0;
  bool exact_sums = true;  // every sum of log-probabilities is exact in double
  bool strict = false;     // superfluous rows or calls fail the case
  bool early = false;      // fewer calls than the plain search are required
  std::vector<std::int64_t> prompt_start{0};
  // Only for beam_search_with_options.
  bool with_options = false;
  Dtype row_dtype = Dtype::f32;
  std::int32_t no_repeat_ngram = 0, groups = 1;
  std::vector<std::vector<std::int32_t>> bad;
  double diversity = 0, patience = 0;
};

Shape shape_of(const CaseSpec&);

// The model for the seed that is stored in the input.
LanguageModel model_of(const CaseSpec&, const Shape&, std::uint64_t seed);

// The params of a case that makes a recorded call, and whether rounding decides nothing in it.
std::optional<nlohmann::json> recorded_params(const RecordedCall&);
bool adopt_inputs(const CaseSpec&, const Shape&, BufferViews);

void generate_inputs(const CaseSpec&, const Shape&, const Seeds&, BufferViews);

// A beam of an answer.
struct Answer {
  std::vector<std::int32_t> tokens;
  double acc = 0, score = 0;
  bool finished = false;
};

// Scores of log-probabilities further apart than this, relative to 1 + |score|, are told apart by
// every fp32 implementation.
inline constexpr double kClearGap = 1e-6;

struct BeamReference final : Reference {
  std::vector<std::vector<Answer>> items;
  std::int64_t calls = 0, rows = 0;  // of the plain search
  std::int64_t early_calls = 0;      // when items are given up as soon as they are decided
  double largest_logit = 0;
  bool clear = true;  // no decision was so close that rounding may change it
};

// The search by its definition, item by item.
std::unique_ptr<BeamReference> search(const Shape&, const LanguageModel&);

CheckResult check_outputs(const CaseSpec&, const Shape&, const BeamReference&, BufferViews,
                          const ModelServer*);

}  // namespace assay::beam_search
