// Languages with exactly known entropy, for training to learn.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "../worker/call.h"
#include "assay/random.h"

namespace assay::ternary_training {

// The kind of a held-out token; each kind is scored separately.
enum Kind : std::uint8_t { kWord, kCopy, kBracket, kMarker, kKinds };
inline constexpr std::array<const char*, kKinds> kKindNames{"words", "copy", "brackets", "markers"};

// A document's tokens and, if wanted, the cost of each (nats) to a predictor that knows the
// language.
struct Document {
  std::span<std::uint16_t> tokens;
  float* cost = nullptr;
  std::uint8_t* kind = nullptr;
};

// The languages of spec.json's "corpus": every probability depends only on the visible prefix.
class Language {
 public:
  virtual ~Language() = default;
  virtual void write(Random&, const Document&) const = 0;
  // The probabilities of the next draw, by what it depends on; each row sums to 1. Languages of one
  // corpus differ in nothing else.
  virtual std::vector<std::vector<double>> transitions() const = 0;
};
std::unique_ptr<Language> make_language(const nlohmann::json& corpus, const tt_config&,
                                        std::uint64_t seed);
// Nats per draw that a perfect model of `own` loses on `other`, a language of the same corpus.
double nats_lost(const Language& own, const Language& other);
// Of several languages drawn from `seed`, the one on which a model of `own` loses most.
std::unique_ptr<Language> foreign_language(const nlohmann::json& corpus, const tt_config&,
                                           const Language& own, std::uint64_t seed);

}  // namespace assay::ternary_training
