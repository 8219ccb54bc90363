#include "spec/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "assay/abi.h"
#include "assay/error.h"
#include "spec/case_json.h"
#include "spec/json_schema.h"
#include "spec/public_cases.h"
#include "spec/tests_in_cuda.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/text.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<CaseGroup, const char*>, 6> kGroups{{
    {CaseGroup::core, "core"},
    {CaseGroup::edge, "edge"},
    {CaseGroup::trap, "trap"},
    {CaseGroup::completeness, "completeness"},
    {CaseGroup::resource, "resource"},
    {CaseGroup::timed, "timed"},
}};

// Of the contents: spacing does not change it.
std::string short_hash(const json& j) { return sha256_hex(j.dump()).substr(0, 12); }

// What the case is on the CPU.
std::string case_hash(json j) {
  j.erase("sim");
  return short_hash(j);
}

std::int32_t status_code(const std::string& name) {
  static const std::map<std::string, std::int32_t> codes{
      {"OK", ASSAY_OK},         {"EINVAL", ASSAY_EINVAL}, {"ENOTSUP", ASSAY_ENOTSUP},
      {"ENOMEM", ASSAY_ENOMEM}, {"ESTATE", ASSAY_ESTATE}, {"ECAP", ASSAY_ECAP}};
  return codes.at(name);
}

}  // namespace

CaseSpec case_from_json(const json& j) {
  CaseSpec c;
  c.name = j.at("name");
  c.group = case_group(j.at("group"));
  c.weight = j.value("weight", 1.0);
  c.capability = j.value("capability", "");
  c.catches = j.value("catches", "");
  c.params = j.at("params");
  c.expect_status = status_code(j.value("expect_status", "OK"));
  c.deterministic = j.value("deterministic", false);
  c.aligned = j.value("aligned", false);
  c.measures_memory = j.value("measures_memory", false);
  c.hash = case_hash(j);
  c.time_limit_s = j.value("time_limit_s", 5.0);
  if (const auto refused = j.find("failing_allocation"); refused != j.end()) {
    c.failing_allocation = refused->is_string() ? kEachAllocation : refused->get<std::uint32_t>();
  }
  c.uncaught_reason = j.value("uncaught_reason", "");
  c.exclusive = j.value("exclusive", false);
  if (const auto pace = j.find("pace"); pace != j.end()) {
    c.pace = {pace->at("of"), pace->at("times")};
  }
  c.external = j.value("external", "");
  c.repetitions = j.value("repetitions", c.group == CaseGroup::timed ? 11 : 1);
  c.naive_repetitions = j.value("naive_repetitions", 3);
  c.quick = j.value("quick", false);
  // Cases that take long, depend on timing or need a file run on the simulator only if the spec
  // says so.
  const bool usual = c.group != CaseGroup::timed && !c.exclusive && c.external.empty();
  const json sim = j.value("sim", json(usual));
  c.on_simulator = sim.is_object() || sim.get<bool>();
  if (sim.is_object()) {
    c.simulator_params = sim.value("params", json::object());
    c.instruction_limit = sim.value("instructions", kInstructionLimit);
  }
  return c;
}

namespace {

ResourceRule parse_resource(const json& j) {
  const json& cases = j.at("case");
  ResourceRule rule{.name = j.at("name"),
                    .case_names = cases.is_array() ? cases.get<std::vector<std::string>>()
                                                   : std::vector<std::string>{cases},
                    .metric = j.at("metric"),
                    .full = j.at("full"),
                    .zero = j.at("zero"),
                    .weight = j.value("weight", 1.0),
                    .unit = j.value("unit", ""),
                    .why = j.value("why", "")};
  if (const auto sim = j.find("sim"); sim != j.end())
    rule.on_simulator = {.full = sim->at("full"), .zero = sim->at("zero"), .why = sim->at("why")};
  return rule;
}

RandomSpace parse_random(const json& j) {
  RandomSpace space;
  space.cases = j.value("cases", space.cases);
  space.weight = j.value("weight", space.weight);
  space.time_limit_s = j.value("time_limit_s", space.time_limit_s);
  space.instruction_limit = j.value("instructions", space.instruction_limit);
  space.base = j.value("base", json::object());
  for (const json& axis : j.at("axes")) {
    space.axes.push_back({.name = axis.at("name"),
                          .choices = axis.at("choices"),
                          .usual = axis.value("usual", 0.0),
                          .rare = axis.value("fuzz", json::array()),
                          .simulated = axis.value("sim", json::array())});
  }
  return space;
}

// The drawn cases before anything is drawn: half of them are edge cases, half traps. In every
// second one pointers are aligned, because answers have paths of their own for that.
std::vector<CaseSpec> placeholders(const RandomSpace& space, bool on_simulator) {
  std::vector<CaseSpec> cases;
  for (int i = 1; i <= space.cases; ++i) {
    CaseSpec c;
    c.name = fmt::format("random_{}", i);
    c.group = i <= (space.cases + 1) / 2 ? CaseGroup::edge : CaseGroup::trap;
    c.weight = space.weight;
    if (c.group == CaseGroup::trap) {
      c.catches = "what nobody listed: the case is drawn anew in every run";
      c.uncaught_reason = "it is another one in every run";
    }
    c.params = json::object();
    c.time_limit_s = space.time_limit_s;
    c.instruction_limit = space.instruction_limit;
    c.on_simulator = on_simulator;
    c.repetitions = 1;
    c.drawn = true;
    c.aligned = i % 2 == 0;
    cases.push_back(std::move(c));
  }
  return cases;
}

ChallengeSpec spec_from(const json& j) {
  ChallengeSpec s;
  s.name = j.at("name");
  s.title = j.at("title");
  s.difficulty = j.at("difficulty");
  s.summary = j.at("summary");
  s.required_symbols = j.at("symbols").at("required");
  s.optional_symbols = j.at("symbols").at("optional");
  const json& limits = j.at("limits");
  s.limits.memory_bytes = limits.at("memory_mib").get<std::int64_t>() << 20;
  s.limits.heap_bytes = limits.value("heap_mib", std::int64_t{0}) << 20;
  s.limits.threads = limits.at("threads");
  s.limits.load_time_s = limits.value("load_time_s", 10.0);
  s.limits.build_time_s = limits.value("build_time_s", 60.0);
  const json& w = j.at("weights");
  s.weights = {.correctness = w.at("correctness"),
               .accuracy = w.at("accuracy"),
               .performance = w.at("performance"),
               .resources = w.at("resources"),
               .completeness = w.at("completeness"),
               .tests = w.at("tests")};
  for (const char* group : {"core", "edge", "trap"}) {
    s.correctness_shares[case_group(group)] = j.at("correctness_shares").at(group);
  }
  s.accuracy_full = j.at("accuracy").at("full");
  s.accuracy_zero = j.at("accuracy").at("zero");
  for (const json& c : j.at("cases")) s.cases.push_back(case_from_json(c));
  if (const auto random = j.find("random"); random != j.end()) {
    s.random = parse_random(*random);
    for (CaseSpec& c : placeholders(*s.random, random->value("sim", true)))
      s.cases.push_back(std::move(c));
  }
  for (const json& r : j.at("resources")) s.resources.push_back(parse_resource(r));
  for (const json& c : j.at("capabilities")) {
    s.capabilities.push_back(
        {.name = c.at("name"), .summary = c.at("summary"), .weight = c.value("weight", 1.0)});
  }
  return s;
}

// The rules that a schema cannot state: fields that must agree with one another.
class Consistency {
 public:
  Consistency(const ChallengeSpec& spec, const std::string& file) : spec_(spec), file_(file) {}

  void check() {
    check_weights();
    for (const Capability& c : spec_.capabilities) capabilities_.insert(c.name);
    for (std::size_t i = 0; i < spec_.cases.size(); ++i) {
      check_name(spec_.cases[i], fmt::format("/cases/{}", i));
      check_case(spec_.cases[i], fmt::format("/cases/{}", i));
    }
    check_axes();
    check_resources();
  }

 private:
  [[noreturn]] void reject(const std::string& pointer, const std::string& cause) const {
    throw Error(fmt::format("{}: at {}: {}", file_, pointer, cause));
  }

  void check_weights() const {
    const Weights& w = spec_.weights;
    const double sum =
        w.correctness + w.accuracy + w.performance + w.resources + w.completeness + w.tests;
    if (std::abs(sum - 100) > 1e-9)
      reject("/weights", fmt::format("weights sum to {}, not 100", sum));
    double shares = 0;
    for (const auto& [group, share] : spec_.correctness_shares) shares += share;
    if (std::abs(shares - 1) > 1e-9)
      reject("/correctness_shares", fmt::format("shares sum to {}, not 1", shares));
  }

  void check_name(const CaseSpec& c, const std::string& at) {
    if (!names_.insert(c.name).second)
      reject(at + "/name", fmt::format("case '{}' exists already", c.name));
    if (c.name.starts_with(kPublicPrefix))
      reject(at + "/name", fmt::format("'{}' begins like the name of a public case", c.name));
    if (c.external.empty()) countable_.insert(c.name);
  }

  void check_case(const CaseSpec& c, const std::string& at) const {
    if (c.group == CaseGroup::completeness && !capabilities_.contains(c.capability))
      reject(at + "/capability", fmt::format("'{}' is not in /capabilities", c.capability));
    if (!c.external.empty() && c.group != CaseGroup::resource)
      reject(at + "/external", "only cases of the group 'resource' may need a file of the user's");
    if (c.exclusive && c.group == CaseGroup::timed)
      reject(at + "/exclusive", "timed cases run alone anyway");
    if (!c.pace.of.empty()) check_pace(c, at);
    if (c.repetitions > 1 && c.group != CaseGroup::timed)
      reject(at + "/repetitions", "only timed cases are repeated");
    if (c.failing_allocation > 0 && (c.expect_status != ASSAY_OK || !in_correctness(c.group))) {
      reject(at + "/failing_allocation",
             "only core, edge and trap cases that expect OK may meet a failing allocation");
    }
    if (c.group == CaseGroup::trap && c.catches.empty())
      reject(at, "a trap case needs 'catches': the mistake that fails here");
  }

  void check_pace(const CaseSpec& c, const std::string& at) const {
    const auto sets_it = [&](const CaseSpec& other) {
      return other.name == c.pace.of && other.group == CaseGroup::timed;
    };
    if (std::ranges::none_of(spec_.cases, sets_it))
      reject(at + "/pace/of", fmt::format("'{}' is not a timed case", c.pace.of));
    if (!c.exclusive || !c.params.contains("seconds"))
      reject(at + "/pace", "only exclusive cases with params.seconds have a pace");
  }

  void check_axes() const {
    if (!spec_.random) return;
    std::set<std::string> axes;
    for (const Axis& axis : spec_.random->axes) {
      if (!axes.insert(axis.name).second)
        reject("/random/axes", fmt::format("axis '{}' exists already", axis.name));
      for (const auto* choices : {&axis.choices, &axis.rare, &axis.simulated}) {
        if (std::ranges::any_of(*choices, is_empty_range))
          reject("/random/axes", fmt::format("axis '{}' has an empty range", axis.name));
      }
    }
  }

  static bool is_empty_range(const json& choice) {
    return choice.is_object() && choice.contains("from") && choice.at("from") > choice.at("to");
  }

  void check_resources() const {
    for (std::size_t i = 0; i < spec_.resources.size(); ++i) {
      const ResourceRule& rule = spec_.resources[i];
      // A failed case counts as `zero`, which must not be worth anything.
      if (rule.full == rule.zero ||
          (rule.on_simulator && rule.on_simulator->full == rule.on_simulator->zero))
        reject(fmt::format("/resources/{}", i), "'full' and 'zero' are the same");
      for (const std::string& name : spec_.resources[i].case_names) {
        if (countable_.contains(name)) continue;
        reject(fmt::format("/resources/{}/case", i), fmt::format("'{}' is not in /cases", name));
      }
    }
  }

  const ChallengeSpec& spec_;
  const std::string& file_;
  std::set<std::string> capabilities_, names_;
  std::set<std::string> countable_;  // cases that a rule may count
};

std::string rules_hash(const json& document) {
  json rules;
  for (const char* part : {"name", "symbols", "limits", "random"}) {
    if (const auto found = document.find(part); found != document.end()) rules[part] = *found;
  }
  return short_hash(rules);
}

}  // namespace

const char* to_string(CaseGroup group) {
  for (const auto& [g, name] : kGroups) {
    if (g == group) return name;
  }
  return "?";
}

CaseGroup case_group(const std::string& name) {
  for (const auto& [g, n] : kGroups) {
    if (name == n) return g;
  }
  throw Error(fmt::format("unknown case group '{}'", name));
}

bool tells_right_from_wrong(const CaseSpec& c) {
  return (in_correctness(c.group) || c.group == CaseGroup::completeness) && !c.exclusive &&
         c.external.empty();
}

std::vector<std::string> judging_hashes(const ChallengeSpec& spec,
                                        const std::set<std::string>& measuring) {
  std::vector<std::string> hashes{spec.rules_hash};
  for (const CaseSpec& c : spec.cases) {
    const bool judges = tells_right_from_wrong(c) || measuring.contains(c.name);
    if (judges && !c.drawn) hashes.push_back(c.hash);
  }
  std::ranges::sort(hashes);
  return hashes;
}

bool still_judges(const ChallengeSpec& spec, const std::vector<std::string>& hashes) {
  std::set<std::string> all;
  for (const CaseSpec& c : spec.cases) all.insert(c.name);
  return std::ranges::includes(judging_hashes(spec, all), hashes);
}

ChallengeSpec parse_spec(const std::string& text, const std::string& file) {
  const json document = parse_json(text, file);
  validate_json(document, kSpecSchema, file);
  ChallengeSpec spec = spec_from(document);
  Consistency(spec, file).check();
  spec.hash = sha256_hex(text);
  spec.rules_hash = rules_hash(document);
  return spec;
}

ChallengeSpec load_spec(const std::filesystem::path& directory) {
  const std::string file = (directory / "spec.json").string();
  ChallengeSpec spec = parse_spec(read_file(file), file);
  if (spec.name != directory.filename()) {
    throw Error(fmt::format("{}: at /name: '{}' differs from the folder's name '{}'", file,
                            spec.name, directory.filename().string()));
  }
  spec.directory = std::filesystem::absolute(directory).lexically_normal();
  return spec;
}

const ChallengeSpec& spec_named(std::span<const ChallengeSpec> specs, std::string_view name) {
  const auto found = std::ranges::find(specs, name, &ChallengeSpec::name);
  if (found != specs.end()) return *found;
  std::vector<std::string> known;
  for (const ChallengeSpec& spec : specs) known.push_back(spec.name);
  throw Error(unknown_name("challenge", name, known));
}

const CaseSpec* find_case(const ChallengeSpec& spec, std::string_view name) {
  const auto found = std::ranges::find(spec.cases, name, &CaseSpec::name);
  return found == spec.cases.end() ? nullptr : &*found;
}

ChallengeSpec spec_for(Device device, const ChallengeSpec& whole) {
  ChallengeSpec spec = whole;
  if (device == Device::cpu) return spec;
  std::erase_if(spec.cases, [](const CaseSpec& c) { return !c.on_simulator; });
  for (CaseSpec& c : spec.cases) {
    const bool at_full_size = device == Device::cuda && c.group == CaseGroup::timed;
    if (!at_full_size) c.params.merge_patch(c.simulator_params);
  }
  if (spec.random) {
    for (Axis& axis : spec.random->axes) {
      if (axis.simulated.empty()) continue;
      axis.choices = axis.simulated;
      axis.rare.clear();
    }
  }
  const auto is_left = [&](const std::string& name) { return find_case(spec, name) != nullptr; };
  for (ResourceRule& rule : spec.resources) {
    if (rule.on_simulator) {
      rule.full = rule.on_simulator->full;
      rule.zero = rule.on_simulator->zero;
      rule.why = rule.on_simulator->why;
    }
    std::erase_if(rule.case_names, [&](const std::string& name) { return !is_left(name); });
  }
  std::erase_if(spec.resources, [](const ResourceRule& rule) { return rule.case_names.empty(); });
  // Dimensions with nothing left there pass their points on to the others.
  const auto has = [&](CaseGroup group) {
    return std::ranges::find(spec.cases, group, &CaseSpec::group) != spec.cases.end();
  };
  Weights& w = spec.weights;
  if (!has_tests_in_cuda(spec)) w.tests = 0;
  if (spec.resources.empty()) w.resources = 0;
  if (!has(CaseGroup::completeness)) w.completeness = 0;
  if (!has(CaseGroup::timed)) w.performance = 0;
  const double left =
      w.correctness + w.accuracy + w.performance + w.resources + w.completeness + w.tests;
  for (double* weight :
       {&w.correctness, &w.accuracy, &w.performance, &w.resources, &w.completeness, &w.tests}) {
    *weight *= 100 / left;
  }
  return spec;
}

CaseSpec paced(const CaseSpec& whole, double par_seconds) {
  CaseSpec c = whole;
  const double most = whole.params.at("seconds"),
               seconds = std::min(most, whole.pace.times * par_seconds);
  c.params["seconds"] = seconds;
  c.time_limit_s *= seconds / most;
  return c;
}

void provide_files(ChallengeSpec& spec, const ExternalFiles& files) {
  std::erase_if(spec.cases, [&](CaseSpec& c) {
    if (c.external.empty()) return false;
    const auto file = files.find(c.external);
    if (file == files.end()) return true;
    c.params["file"] = file->second;
    return false;
  });
}

}  // namespace assay
