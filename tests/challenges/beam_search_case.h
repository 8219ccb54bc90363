// Shared by the tests of beam search: a case with its model, and a step that is asked by hand.
#pragma once

#include <cstring>
#include <vector>

#include "../../challenges/beam_search/harness/language_model.h"
#include "../../challenges/beam_search/harness/trusted.h"
#include "challenges/challenge_fixture.h"

namespace assay::beam_search {

inline const testing::ChallengeUnderTest& subject() {
  static const testing::ChallengeUnderTest loaded("beam_search");
  return loaded;
}

class Case : public testing::Filled {
 public:
  Case(const CaseSpec& spec, std::uint64_t seed) : Filled(subject(), spec, seed) {}
  explicit Case(const nlohmann::json& params, std::uint64_t seed = 1)
      : Case(spec_with(params), seed) {}

  const BeamReference& reference() const { return reference_as<BeamReference>(); }
  Shape shape() const { return shape_of(spec()); }
  LanguageModel model() const {
    return model_of(spec(), shape(), *buffer(kModelSeed).as<std::uint64_t>());
  }

  // Answers one step.
  std::int32_t ask(const std::vector<std::int64_t>& parent, const std::vector<std::int32_t>& item,
                   const std::vector<std::int32_t>& token) {
    std::vector<std::byte> request(sizeof(StepHeader) + parent.size() * 16);
    const StepHeader header{static_cast<std::int64_t>(parent.size())};
    std::memcpy(request.data(), &header, sizeof header);
    std::byte* at = request.data() + sizeof header;
    std::memcpy(at, parent.data(), parent.size() * 8);
    std::memcpy(at + parent.size() * 8, item.data(), parent.size() * 4);
    std::memcpy(at + parent.size() * 12, token.data(), parent.size() * 4);
    answer.resize(parent.size() * (8 + 4 * static_cast<std::size_t>(shape().V)));
    return server()->serve(kStep, request, answer);
  }
  std::int64_t state(std::size_t i) const {
    std::int64_t id;
    std::memcpy(&id, answer.data() + 8 * i, 8);
    return id;
  }

  std::vector<std::byte> answer;  // of the last step

 private:
  static CaseSpec spec_with(const nlohmann::json& params) {
    CaseSpec spec;
    spec.name = "witness";
    spec.params = params;
    return spec;
  }
};

// All options at once.
inline const nlohmann::json kTogether{{"K", 6},
                                      {"V", 7},
                                      {"keep_finished", 1},
                                      {"min_new", 2},
                                      {"options",
                                       {{"rows", "f16"},
                                        {"no_repeat_ngram", 2},
                                        {"bad", {{5}, {1, 2}, {4, 3}}},
                                        {"groups", 2},
                                        {"diversity", 0.5},
                                        {"patience", 1.5}}}};

}  // namespace assay::beam_search
