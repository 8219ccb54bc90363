#include "check/grade_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "cases/correctness.h"
#include "check/report_json.h"
#include "grade/reason.h"
#include "measure/statistics.h"
#include "records/json_text.h"
#include "records/lookup.h"
#include "report/figures.h"
#include "report/terminal.h"
#include "spec/spec.h"
#include "util/text.h"

namespace assay::check {
namespace {

using Json = nlohmann::ordered_json;

constexpr CaseGroup kCounted[] = {CaseGroup::core, CaseGroup::edge, CaseGroup::trap,
                                  CaseGroup::completeness, CaseGroup::timed};

Json stage_json(const StageRecord& record) {
  Json j{{"name", to_string(record.stage)},
         {"status", to_string(record.status)},
         {"seconds", record.seconds}};
  if (!record.why.empty()) j["why"] = safe(record.why, 1);
  return j;
}

// For each group: the number of the spec's cases that passed, that were run, that a grade of this
// kind runs, and in total; and the share passed, by weight over all cases, null if none was run.
Json passed_json(const ChallengeSpec& spec, const CellResult& cell, bool quick) {
  const cases::CaseFilter filter{.quick = quick};
  Json all = Json::object();
  for (const CaseGroup group : kCounted) {
    int passed = 0, run = 0, asked = 0, of = 0;
    double weight = 0, earned = 0;
    for (const CaseSpec& c : spec.cases) {
      if (c.group != group) continue;
      ++of;
      asked += filter.takes(c) ? 1 : 0;
      weight += c.weight;
      const CaseResult* r = find_case(cell, c.name);
      if (r == nullptr || !was_run(r->verdict)) continue;
      ++run;
      if (r->verdict != Verdict::ok) continue;
      ++passed;
      earned += c.weight;
    }
    all[to_string(group)] = {
        {"passed", passed},
        {"run", run},
        {"asked", asked},
        {"of", of},
        {"share", run == 0 || weight <= 0 ? Json(nullptr) : Json(earned / weight)}};
  }
  return all;
}

// The logarithm of the geometric mean over the timed shapes; null if none has a speed.
Json log_speed(const Score& score, double ShapeSpeed::*ratio) {
  std::vector<double> ratios;
  for (const ShapeSpeed& s : score.speeds) ratios.push_back(s.*ratio);
  if (ratios.empty()) return nullptr;
  const double value = std::log(geometric_mean(ratios));
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json failures_json(const CellResult& cell) {
  Json failed = Json::array();
  for (const CaseResult& r : cell.cases) {
    if (r.verdict == Verdict::ok || !was_run(r.verdict)) continue;
    Json j{{"name", r.name}, {"group", to_string(r.group)}, {"verdict", code(r.verdict)}};
    if (!r.detail.empty()) j["detail"] = safe(r.detail, 3);
    if (r.error && std::isfinite(*r.error)) j["error"] = *r.error;
    if (r.bound && std::isfinite(*r.bound)) j["bound"] = *r.bound;
    failed.push_back(std::move(j));
  }
  return failed;
}

Json findings_json(const CellResult& cell) {
  Json findings = Json::array();
  for (const CaseResult& r : cell.cases) {
    if (r.verdict == Verdict::device_error)
      findings.push_back({{"case", r.name}, {"text", safe(r.detail, 3)}});
  }
  return findings;
}

Json dimensions_json(const Score& score) {
  Json all = Json::object();
  for (const Dimension& d : score.dimensions) {
    all[d.name] = {{"points", d.points ? Json(*d.points) : Json(nullptr)},
                   {"max", d.max},
                   {"why", safe(d.why, 1)}};
  }
  return all;
}

Json notes_json(const Score& score) {
  Json notes = Json::array();
  for (const Note& n : score.flags) notes.push_back({{"kind", code(n.kind)}, {"text", n.text}});
  return notes;
}

const char* stopped_at(const StagedGrade& grade) {
  for (const StageRecord& record : grade.stages) {
    if (record.status == StageRecord::Status::failed) return to_string(record.stage);
  }
  return nullptr;
}

BoardEntry entry_of(const StagedGrade& grade, const GradeFacts& facts) {
  BoardEntry entry;
  entry.cell = grade.cell;
  entry.score = grade.score;
  entry.assay_version = facts.assay_version;
  entry.assay_commit = facts.assay_commit;
  entry.machine = facts.machine;
  return entry;
}

}  // namespace

std::string grade_text(const StagedGrade& grade, const GradeFacts& facts) {
  std::string text = fmt::format("{} ({})\n\n", printable(facts.path, 1, 256), facts.known_by);
  TextTable table({"stage", "seconds", "result", "why"});
  for (const StageRecord& record : grade.stages) {
    const bool ran = record.status != StageRecord::Status::not_run;
    table.add({to_string(record.stage), ran ? fmt::format("{:.1f}", record.seconds) : "-",
               ran ? to_string(record.status) : "not run", report::one_line(record.why)});
  }
  return text + report::indented(table.str(), 2) + "\n" +
         explain(entry_of(grade, facts), spec_for(grade.cell.key.device, facts.spec));
}

std::string grade_json(const StagedGrade& grade, const GradeFacts& facts) {
  const CellResult& cell = grade.cell;
  const Score& score = grade.score;
  const ChallengeSpec spec = spec_for(cell.key.device, facts.spec);
  const bool whole = score.total.has_value();
  const char* failed = stopped_at(grade);
  Json j{
      {"schema", 1},
      {"challenge", facts.spec.name},
      {"known_by", facts.known_by},
      {"language", cell.key.device == Device::cpu ? "cpp" : "cuda"},
      {"device", to_string(cell.key.device)},
      {"verdict", code(score.verdict)},
      {"reason", safe(main_reason(cell, score), 1)},
      {"total", whole ? Json(*score.total) : Json(nullptr)},
      {"interval", whole ? Json::array({score.interval.low, score.interval.high}) : Json(nullptr)},
      {"letter", score.letter},
      {"capped", score.capped}};
  Json stages = Json::array();
  for (const StageRecord& record : grade.stages) stages.push_back(stage_json(record));
  j["stages"] = stages;
  j["failed_stage"] = failed == nullptr ? Json(nullptr) : Json(failed);
  j["compiled"] = cell.build.verdict == Verdict::ok;
  j["build_log"] = safe(cell.build.log, 40);
  j["built_before"] = cell.build.cached;
  j["passed"] = passed_json(spec, cell, facts.quick);
  j["failed_cases"] = failures_json(cell);
  j["findings"] = findings_json(cell);
  j["dimensions"] = dimensions_json(score);
  j["log_speed_over_naive"] = log_speed(score, &ShapeSpeed::ratio_to_naive);
  j["log_speed_over_par"] = log_speed(score, &ShapeSpeed::ratio_to_par);
  j["modelled_on"] = score.modelled_on.empty() ? Json(nullptr) : Json(score.modelled_on);
  j["notes"] = notes_json(score);
  j["harness_faults"] = faults_json(cell);
  j["seed"] = std::to_string(cell.seed);
  j["source_hash"] = cell.build.source_hash;
  j["spec_hash"] = cell.spec_hash;
  j["isolation"] = cell.isolation;
  j["target"] = cell.target;
  j["finished_at"] = cell.finished_at;
  j["assay_version"] = facts.assay_version;
  j["assay_commit"] = facts.assay_commit;
  const Machine& machine = facts.machine;
  j["machine"] = {{"cpu", machine.cpu},
                  {"cores", machine.cores},
                  {"compiler", machine.compiler},
                  {"os", machine.os},
                  {"kernel", machine.kernel}};
  if (machine.gpu) j["machine"]["gpu"] = machine.gpu->name;
  return json_text(j);
}

}  // namespace assay::check
