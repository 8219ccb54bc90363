#include "spec/public_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "assay/error.h"
#include "spec/case_json.h"
#include "spec/json_schema.h"
#include "spec/spec.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay {
namespace {

using nlohmann::json;

// Public cases are small, so a case that hangs is noticed quickly.
constexpr double kTimeLimit = 2;

CaseSpec public_case(const json& j) {
  CaseSpec c = case_from_json(j);
  if (!j.contains("time_limit_s")) c.time_limit_s = kTimeLimit;
  c.quick = true;  // keeps a check short with few repetitions
  if (!j.contains("sim")) c.on_simulator = true;
  return c;
}

CaseSpec public_draw(const ChallengeSpec& spec, int number) {
  CaseSpec c;
  c.name = fmt::format("{}draw_{}", kPublicPrefix, number);
  c.group = CaseGroup::edge;
  c.params = json::object();
  c.time_limit_s = std::min(kTimeLimit, spec.random->time_limit_s);
  c.instruction_limit = spec.random->instruction_limit;
  c.on_simulator = std::ranges::any_of(
      spec.cases, [](const CaseSpec& graded) { return graded.drawn && graded.on_simulator; });
  c.repetitions = 1;
  c.quick = true;
  c.drawn = true;
  c.aligned = number % 2 == 0;
  return c;
}

// The params that a case has on any device.
std::vector<json> all_params(const CaseSpec& c) {
  std::vector<json> params{c.params};
  if (!c.on_simulator) return params;
  params.push_back(c.params);
  params.back().merge_patch(c.simulator_params);
  return params;
}

// The name of a graded case with the same params, or "".
std::string graded_alike(const ChallengeSpec& spec, const CaseSpec& c) {
  const std::vector<json> params = all_params(c);
  for (const CaseSpec& graded : spec.cases) {
    if (graded.drawn) continue;
    const std::vector<json> theirs = all_params(graded);
    if (std::ranges::find_first_of(params, theirs) != params.end()) return graded.name;
  }
  return "";
}

}  // namespace

PublicCases parse_public_cases(const ChallengeSpec& spec, const std::string& text,
                               const std::string& file) {
  const json document = parse_json(text, file);
  validate_json(document, kPublicSchema, file);
  const auto reject = [&](const std::string& pointer, const std::string& cause) {
    throw Error(fmt::format("{}: at {}: {}", file, pointer, cause));
  };
  PublicCases result;
  result.seed = document.at("seed");
  result.hash = sha256_hex(text);
  std::set<std::string> capabilities, covered;
  for (const Capability& c : spec.capabilities) capabilities.insert(c.name);
  for (std::size_t i = 0; i < document.at("cases").size(); ++i) {
    const json& j = document.at("cases")[i];
    const std::string at = fmt::format("/cases/{}", i);
    CaseSpec c = public_case(j);
    if (!result.about.emplace(c.name, j.at("about")).second || find_case(spec, c.name) != nullptr)
      reject(at + "/name", fmt::format("case '{}' exists already", c.name));
    if (const std::string graded = graded_alike(spec, c); !graded.empty()) {
      reject(at + "/params",
             fmt::format("these are the params of '{}', which is graded: what is graded is not "
                         "handed out",
                         graded));
    }
    if (c.group == CaseGroup::completeness) {
      if (!capabilities.contains(c.capability))
        reject(at + "/capability",
               fmt::format("'{}' is not in /capabilities of spec.json", c.capability));
      covered.insert(c.capability);
    }
    result.cases.push_back(std::move(c));
  }
  for (const std::string& capability : capabilities) {
    if (!covered.contains(capability))
      reject("/cases", fmt::format("no case shows whether the capability '{}' works", capability));
  }
  if (std::ranges::count(result.cases, CaseGroup::timed, &CaseSpec::group) != 1)
    reject("/cases", "one case must be timed, and only one");
  const int draws = document.at("draws");
  if (draws > 0 && !spec.random)
    reject("/draws", "spec.json has no space (\"random\") to draw from");
  for (int i = 1; i <= draws; ++i) {
    CaseSpec c = public_draw(spec, i);
    if (!result.about.emplace(c.name, "drawn from all legal inputs").second)
      reject("/draws", fmt::format("case '{}' exists already", c.name));
    result.cases.push_back(std::move(c));
  }
  return result;
}

PublicCases load_public_cases(const ChallengeSpec& spec) {
  const std::string file = (std::filesystem::path(spec.directory) / "public.json").string();
  return parse_public_cases(spec, read_file(file), file);
}

ChallengeSpec public_spec(const ChallengeSpec& whole, const PublicCases& published) {
  ChallengeSpec spec = whole;
  spec.cases = published.cases;
  spec.resources.clear();
  spec.hash = sha256_hex(whole.hash + " " + published.hash);
  return spec;
}

}  // namespace assay
