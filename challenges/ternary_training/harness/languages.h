// Languages whose entropy is known exactly: what training is to learn.
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

// What a held-out token is; every kind is scored by itself.
enum Kind : std::uint8_t { kWord, kCopy, kBracket, kMarker, kKinds };
inline constexpr std::array<const char*, kKinds> kKindNames{"words", "copy", "brackets", "markers"};

// A document's tokens and, if wanted, what each costs a predictor who knows the language (nats).
struct Document {
  std::span<std::uint16_t> tokens;
  float* cost = nullptr;
  std::uint8_t* kind = nullptr;
};

// The languages of spec.json's "corpus": every probability is a function of the visible prefix.
class Language {
 public:
  virtual ~Language() = default;
  virtual void write(Random&, const Document&) const = 0;
  // The probabilities of what is drawn next, by what it depends on: rows that add up to 1.
  // Languages of one corpus differ in nothing else.
  virtual std::vector<std::vector<double>> transitions() const = 0;
};
std::unique_ptr<Language> make_language(const nlohmann::json& corpus, const tt_config&,
                                        std::uint64_t seed);
// Nats a draw that a perfect model of `own` loses on `other`, which is of the same corpus.
double nats_lost(const Language& own, const Language& other);
// Of several languages that `seed` draws the one on which a model of `own` loses most.
std::unique_ptr<Language> foreign_language(const nlohmann::json& corpus, const tt_config&,
                                           const Language& own, std::uint64_t seed);

}  // namespace assay::ternary_training
