// Shared by the tests of the cache: a case of spec.json or a script made in a test, drawn from a
// seed.
#pragma once

#include <string>

#include "challenges/challenge_fixture.h"
#include "trusted.h"

namespace assay::kv_cache {

inline const testing::ChallengeUnderTest& subject() {
  static const testing::ChallengeUnderTest loaded("kv_cache");
  return loaded;
}

inline CaseSpec scripted(const nlohmann::json& config, const std::string& script) {
  CaseSpec c;
  c.name = "made_here";
  c.params = {{"config", config}, {"script", script}};
  return c;
}

class Drawn : public testing::Filled {
 public:
  explicit Drawn(const CaseSpec& given, std::uint64_t seed = 1) : Filled(subject(), given, seed) {}

  const KvReference& reference() const { return reference_as<KvReference>(); }
  const Params& params() const { return *reinterpret_cast<const Params*>(plan().params.data()); }
};

}  // namespace assay::kv_cache
