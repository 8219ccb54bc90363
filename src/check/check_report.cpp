#include "check/check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "check/report_json.h"
#include "grade/gpu.h"
#include "records/lookup.h"
#include "records/simulated_work.h"
#include "report/figures.h"
#include "report/terminal.h"
#include "spec/spec.h"
#include "util/text.h"

namespace assay::check {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWrongShown = 8;

const char* language_name(Language language) { return language == Language::cpp ? "C++" : "CUDA"; }

std::size_t count_wrong(const CellResult& cell) {
  return static_cast<std::size_t>(std::ranges::count_if(cell.cases, &is_wrong));
}

// Optional features that a submission does not support, by capability.
std::vector<std::string> left_out(const CellResult& cell, const ChallengeSpec& spec) {
  std::set<std::string> names;
  for (const CaseResult& r : cell.cases) {
    const CaseSpec* c = find_case(spec, r.name);
    if (c == nullptr || r.verdict == Verdict::ok || is_wrong(r)) continue;
    names.insert(c->capability.empty() ? c->name : c->capability);
  }
  return {names.begin(), names.end()};
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// --- memory and speed ----------------------------------------------------------------------------

// Metrics of memory cases named in the challenge's resource rules, and scratch.
std::vector<std::pair<const CaseResult*, const Metric*>> memory_of(const CellResult& cell,
                                                                   const ChallengeSpec& challenge) {
  std::vector<std::pair<const CaseResult*, const Metric*>> found;
  for (const CaseResult& r : cell.cases) {
    if (r.group != CaseGroup::resource || r.verdict != Verdict::ok) continue;
    for (const Metric& m : r.metrics) {
      const bool ruled = std::ranges::any_of(
          challenge.resources, [&](const ResourceRule& rule) { return rule.metric == m.name; });
      if (ruled || m.name == "scratch_bytes") found.emplace_back(&r, &m);
    }
  }
  return found;
}

// With few rounds, the fastest is the best estimate: every disturbance makes a round slower.
std::optional<double> fastest(const CaseResult& r, std::optional<double> TimingSample::*which) {
  std::optional<double> seconds;
  for (const TimingSample& s : r.samples) {
    if (s.*which) seconds = std::min(seconds.value_or(HUGE_VAL), *(s.*which));
  }
  return seconds;
}

// Seconds of the submission and its references, measured or modelled.
struct Speed {
  const CaseResult* result = nullptr;
  std::optional<double> answer, naive, par, floor;

  std::optional<double> over(const std::optional<double>& other) const {
    return answer && other && *answer > 0 ? std::optional(*other / *answer) : std::nullopt;
  }
  const char* bound = "";  // if modelled: the slowest part
};

std::optional<Speed> speed_of(const PublicCheck& check) {
  if (check.speeds.empty()) return std::nullopt;
  Speed speed;
  speed.result = find_case(check.cell, check.speeds.front().case_name);
  if (speed.result == nullptr) return std::nullopt;
  const CaseResult& r = *speed.result;
  if (check.modelled_on.empty()) {
    speed.answer = fastest(r, &TimingSample::submission);
    speed.naive = fastest(r, &TimingSample::naive);
    speed.par = fastest(r, &TimingSample::par);
    return speed;
  }
  const auto names = gpu_names();
  const auto name = std::ranges::find_if(
      names, [&](const std::string& n) { return gpu_named(n).name == check.modelled_on; });
  if (name == names.end()) return std::nullopt;
  const Gpu& on = gpu_named(*name);
  const auto modelled = [&](const char* prefix) -> std::optional<double> {
    const auto work = simulated_work(r.metrics, prefix);
    return work ? std::optional(modelled_time(*work, on).total()) : std::nullopt;
  };
  const auto work = simulated_work(r.metrics);
  if (!work) return std::nullopt;
  speed.answer = modelled("");
  speed.bound = modelled_time(*work, on).bound();
  speed.naive = modelled(kNaivePrefix);
  speed.par = modelled(kParPrefix);
  if (const auto least = least_work(r.metrics)) speed.floor = floor_time(*least, on);
  return speed;
}

std::string counted(const CaseResult& r) {
  const auto work = simulated_work(r.metrics);
  if (!work) return "";
  const sim::Counters& c = work->counters;
  const auto least = least_work(r.metrics);
  std::string text = fmt::format("  counted   {:.3g} MB moved", bytes_moved(work->counters) * 1e-6);
  if (least && least->bytes > 0)
    text += fmt::format(" ({:.2f} times the least)", bytes_moved(work->counters) / least->bytes);
  return text + fmt::format(
                    ", {} warp instructions, {:.0f} % of lanes at work, {} replays by bank "
                    "conflicts,\n            {:.3g} MB of local memory, {} launches\n",
                    c.instructions, 100 * c.divergence_efficiency(), c.shared_replays,
                    static_cast<double>(c.local_load_bytes + c.local_store_bytes) * 1e-6,
                    c.launches);
}

std::string speed_text(const PublicCheck& check) {
  const auto speed = speed_of(check);
  if (!speed || !speed->answer) {
    return check.not_timed.empty() ? ""
                                   : fmt::format("  speed     not timed: {}\n", check.not_timed);
  }
  std::string text =
      fmt::format("  speed     {} ({}): {}", speed->result->name,
                  report::one_line(speed->result->shape), report::duration(*speed->answer));
  if (speed->par) text += ", par " + report::duration(*speed->par);
  if (speed->naive) text += ", naive " + report::duration(*speed->naive);
  if (speed->floor) text += ", floor " + report::duration(*speed->floor);
  text += "\n            ";
  if (const auto ratio = speed->over(speed->par))
    text += fmt::format("{:.2f} times par's speed, ", *ratio);
  if (const auto ratio = speed->over(speed->naive))
    text += fmt::format("{:.2f} times naive's; ", *ratio);
  if (check.modelled_on.empty()) {
    return text + fmt::format("indicative: the best of {} rounds of a small shape\n",
                              speed->result->samples.size());
  }
  return text +
         fmt::format("modelled on {}, bound by {}; indicative: a small shape\n", check.modelled_on,
                     speed->bound) +
         counted(*speed->result);
}

// --- text ----------------------------------------------------------------------------------------

std::string build_text(const PublicCheck& check, const Subject& about) {
  const BuildRecord& build = check.cell.build;
  if (build.verdict == Verdict::ok) {
    return build.cached ? "  compiled  before: nothing changed since\n"
                        : fmt::format("  compiled  in {:.1f} s\n", check.build_seconds);
  }
  std::string text;
  if (!build.command.empty()) text += "  " + report::one_line(build.command) + "\n";
  if (!build.log.empty()) text += report::indented(printable(build.log, 40), 2);
  if (about.alone && build.log.find("No such file or directory") != std::string::npos)
    text += "  hint      a file is taken alone: name its folder, if that holds what it includes\n";
  return text;
}

std::string headline(const PublicCheck& check, const Subject& about) {
  const std::string who = fmt::format("{} in {} ({}): ", about.spec.name,
                                      language_name(about.answer.language), about.known_by);
  const CellResult& cell = check.cell;
  if (cell.build.verdict != Verdict::ok)
    return who + fmt::format("it does not build: {}\n", report::verdict(cell.build.verdict));
  const std::size_t wrong = count_wrong(cell), lacking = left_out(cell, about.spec).size();
  if (wrong > 0)
    return who + fmt::format("{} of {} public cases are wrong\n", wrong, cell.cases.size());
  return who + fmt::format("{} public cases are right\n",
                           lacking == 0
                               ? fmt::format("all {}", cell.cases.size())
                               : fmt::format("all that it supports of {}", cell.cases.size()));
}

std::string described(const CaseResult& r, const Subject& about) {
  std::string text = describe_failure(r, about.spec);
  const auto words = about.published.about.find(r.name);
  if (words == about.published.about.end()) return text;
  return text.insert(text.find('\n') + 1, fmt::format("    about     {}\n", words->second));
}

std::string wrong_cases(const CellResult& cell, const Subject& about) {
  std::string text;
  std::vector<std::string> more;
  std::size_t told = 0;
  bool told_loading = false;
  for (const CaseResult& r : cell.cases) {
    if (!is_wrong(r)) continue;
    // A load error is the same in every case: report it once.
    if ((r.verdict == Verdict::load_error && told_loading) || told == kWrongShown) {
      more.push_back(r.name);
      continue;
    }
    told_loading = told_loading || r.verdict == Verdict::load_error;
    ++told;
    text += described(r, about);
  }
  return more.empty() ? text : text + fmt::format("  also wrong: {}\n", list(more));
}

std::string memory_text(const CellResult& cell, const Subject& about) {
  std::string text;
  for (const auto& [result, metric] : memory_of(cell, about.challenge)) {
    text += fmt::format("  memory    {} ({}): {} = {:.6g}\n", result->name,
                        report::one_line(result->shape), metric->name, metric->value);
  }
  return text;
}

std::string remarks(const CellResult& cell, const Subject& about) {
  std::string text;
  if (!about.prompt_is_current.value_or(true))
    text += "  task      it has changed since this folder was made: deploy it anew\n";
  if (const auto names = left_out(cell, about.spec); !names.empty()) {
    text += fmt::format("  left out  {}: optional, each costs its points\n", list(names));
  }
  if (!about.answer.ignored.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : about.answer.ignored)
      names.push_back(report::one_line(name, 60));
    if (names.size() > 4)
      names = {names[0], names[1], names[2], fmt::format("{} more", names.size() - 3)};
    text += fmt::format("  ignored   {}: no part of the answer\n", list(names));
  }
  return text;
}

constexpr const char* kLastLine =
    "Public cases only: a grading has other shapes, other inputs and other seeds.\n";

// Cuts at the end of a line.
std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  constexpr std::string_view kCut = "... (cut)\n";
  const std::size_t room = most - std::min(most, kCut.size());
  const std::size_t end = room == 0 ? std::string::npos : text.rfind('\n', room - 1);
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text + std::string(kCut);
}

// --- JSON ----------------------------------------------------------------------------------------

Json figure(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

Json figure(const std::optional<double>& x) { return x ? figure(*x) : Json(nullptr); }

Json case_json_of(const CaseResult& r, const ChallengeSpec& spec) {
  Json j{{"name", r.name},
         {"group", to_string(r.group)},
         {"wrong", is_wrong(r)},
         {"verdict", code(r.verdict)},
         {"shape", safe(r.shape, 1)}};
  const CaseSpec* c = find_case(spec, r.name);
  if (c != nullptr && !c->capability.empty()) j["capability"] = c->capability;
  if (!r.detail.empty()) j["detail"] = safe(r.detail, 3);
  if (r.error) j["error"] = figure(*r.error);
  if (r.bound) j["bound"] = figure(*r.bound);
  return j;
}

Json counters_json(const PublicCheck& check) {
  const auto speed = speed_of(check);
  const auto work = speed ? simulated_work(speed->result->metrics) : std::nullopt;
  if (!work) return nullptr;
  const sim::Counters& c = work->counters;
  return {{"bytes_moved", bytes_moved(work->counters)},
          {"instructions", c.instructions},
          {"lane_efficiency", figure(c.divergence_efficiency())},
          {"bank_conflict_replays", c.shared_replays},
          {"spilled_bytes", c.local_load_bytes + c.local_store_bytes},
          {"launches", c.launches}};
}

std::string faults_text(const CellResult& cell) {
  std::string text;
  for (const std::string& fault : cell.faults)
    text += fmt::format("note: tried again after a fault of the harness: {}\n", safe(fault, 1));
  return text;
}

}  // namespace

std::string check_text(const PublicCheck& check, const Subject& about, std::size_t most_bytes) {
  std::string text = headline(check, about);
  if (check.cell.build.verdict != Verdict::ok) {
    text += build_text(check, about);
  } else {
    text += wrong_cases(check.cell, about) + build_text(check, about) + remarks(check.cell, about) +
            memory_text(check.cell, about) + speed_text(check) + faults_text(check.cell);
  }
  return shortened(std::move(text), most_bytes - std::string_view(kLastLine).size()) + kLastLine;
}

std::string check_json(const PublicCheck& check, const Subject& about) {
  const CellResult& cell = check.cell;
  const bool cuda = about.answer.language == Language::cuda;
  Json j{{"schema", 1},
         {"challenge", about.spec.name},
         {"known_by", about.known_by},
         {"language", cuda ? "cuda" : "cpp"},
         {"device", to_string(about.answer.device())},
         {"passed", passed(check)},
         {"verdict", code(worst(check))},
         {"compiled", cell.build.verdict == Verdict::ok},
         {"build_log", safe(cell.build.log, 40)},
         {"cases", cell.cases.size()},
         {"wrong", count_wrong(cell)},
         {"left_out", left_out(cell, about.spec)}};
  Json cases = Json::array(), findings = Json::array(), memory = Json::object();
  for (const CaseResult& r : cell.cases) {
    cases.push_back(case_json_of(r, about.spec));
    if (r.verdict == Verdict::device_error)
      findings.push_back({{"case", r.name}, {"text", safe(r.detail, 3)}});
  }
  for (const auto& [result, metric] : memory_of(cell, about.challenge))
    memory[metric->name] = figure(metric->value);
  j["results"] = cases;
  j["findings"] = findings;
  j["memory"] = memory;
  const auto speed = speed_of(check);
  const std::optional<double> none;
  j["speed"] = {
      {"indicative", true},
      {"modelled_on", check.modelled_on.empty() ? Json(nullptr) : Json(check.modelled_on)},
      {"seconds", figure(speed ? speed->answer : none)},
      {"par_seconds", figure(speed ? speed->par : none)},
      {"naive_seconds", figure(speed ? speed->naive : none)},
      {"floor_seconds", figure(speed ? speed->floor : none)},
      {"over_par", figure(speed ? speed->over(speed->par) : none)},
      {"over_naive", figure(speed ? speed->over(speed->naive) : none)},
      {"not_timed", check.not_timed}};
  j["counters"] = counters_json(check);
  j["harness_faults"] = faults_json(cell);
  j["build_seconds"] = figure(check.build_seconds);
  j["built_before"] = cell.build.cached;
  j["case_seconds"] = figure(check.case_seconds);
  j["speed_seconds"] = figure(check.speed_seconds);
  j["seed"] = std::to_string(about.published.seed);
  j["source_hash"] = cell.build.source_hash;
  const std::string& prompt = about.answer.record.prompt_sha256;
  j["prompt_sha256"] = prompt.empty() ? Json(nullptr) : Json(prompt);
  j["prompt_is_current"] = about.prompt_is_current ? Json(*about.prompt_is_current) : Json(nullptr);
  j["isolation"] = cell.isolation;
  j["assay_version"] = about.assay_version;
  j["feedback"] = check_text(check, about);
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::check
