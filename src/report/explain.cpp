#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "grade/board_row.h"
#include "grade/partial.h"
#include "measure/statistics.h"
#include "records/floor.h"
#include "records/lookup.h"
#include "records/simulated_work.h"
#include "report/code_facts.h"
#include "report/figures.h"
#include "report/modelled.h"
#include "report/terminal.h"
#include "spec/spec.h"
#include "util/shell.h"
#include "util/text.h"

namespace assay {
namespace {

using namespace report;  // only names of this folder

// Text that begins in that column and stays right of it.
std::string hanging(const std::string& text, std::size_t column) {
  return wrapped(text, kTerminalColumns - column, std::string(column, ' '));
}

std::string head_line(const char* name, const std::string& text) {
  return text.empty() ? "" : fmt::format("  {:<9} {}", name, hanging(text, 12));
}

std::string field(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("    {:<9} {}", name, hanging(value, 14));
}

// --- head --------------------------------------------------------------------

std::string heading(const BoardRow& e, const ChallengeSpec& spec) {
  const CellKey& key = e.key;
  std::string text = key.model.empty() ? fmt::format("an answer to {}", spec.title)
                                       : fmt::format("{} on {}", one_line(key.model), spec.title);
  if (!key.attempt.empty()) text += fmt::format(", attempt {}", one_line(key.attempt));
  text += fmt::format(" ({})\n", to_string(key.device));
  return text + "  verdict   " + verdict(e.score.verdict) + "\n";
}

std::string score_lines(const BoardRow& e, const ChallengeSpec& spec, const std::string& currency) {
  const Score& s = e.score;
  std::string text = "  score     " + (s.letter.empty() ? "" : s.letter + " ") + total(s);
  if (s.capped) text += ", at most 59 because a core case failed";
  text += '\n';
  if (const DeviceGap gap = device_gap(spec, e.key.device); gap.partial && s.total) {
    std::string missing;
    for (const std::string& m : gap.missing) missing += (missing.empty() ? "" : ", ") + m;
    text += head_line("note", "partial, enters no average: not graded on this device: " + missing);
  }
  for (const Note& flag : s.flags) text += head_line("note", one_line(flag.text));
  return text + head_line("note", currency) + head_line("reason", one_line(e.reason)) +
         head_line("model", model_facts(e.about)) + head_line("attempt", attempt_facts(e.attempt));
}

std::string dimension_table(const Score& s) {
  TextTable table({"dimension", "points", "of", "why"});
  for (const Dimension& d : s.dimensions) {
    table.add({one_line(d.name), d.points ? with_interval(*d.points, d.interval) : kNotRun,
               tenths(d.max), one_line(d.why)});
  }
  return s.dimensions.empty() ? ""
                              : fmt::format("\n{}", indented(table.str(kTerminalColumns - 2), 2));
}

// --- build -------------------------------------------------------------------

std::string build_failure(const BuildRecord& b) {
  if (b.verdict == Verdict::ok || b.verdict == Verdict::no_answer) return "";
  std::string text = fmt::format("\nbuild: {}\n", description(b.verdict));
  if (!b.command.empty()) text += "  " + one_line(b.command) + "\n";
  return text + (b.log.empty() ? "" : indented(printable(b.log, 40), 2));
}

// Faults that passed on a retry, or that came before the one that ended the cell.
std::string passing_faults(const CellResult& cell) {
  std::string text;
  for (const std::string& fault : cell.faults) text += "  " + one_line(fault) + "\n";
  return text.empty() ? "" : "\ntried again after faults of the harness:\n" + text;
}

// --- failed cases ------------------------------------------------------------

bool has_failed(const CaseResult& r) {
  return is_failure(r) || r.verdict == Verdict::harness_error;
}

std::string error_text(const CaseResult& r) {
  if (!r.error || !r.bound) return "";
  std::string text = fmt::format("{:.3g}, allowed {:.3g}", *r.error, *r.bound);
  const double excess = *r.error / *r.bound;
  if (excess > 1 && std::isfinite(excess)) text += fmt::format(" ({:.3g} times)", excess);
  return text;
}

// A submission that does not load fails every case in the same way, so report it once.
std::string failed_cases(const CellResult& cell, const ChallengeSpec& spec) {
  std::string text;
  std::size_t failures = 0, unloadable = 0, run = 0;
  for (const CaseResult& r : cell.cases) {
    if (was_run(r.verdict)) ++run;
    if (!has_failed(r)) continue;
    ++failures;
    if (r.verdict == Verdict::load_error && ++unloadable > 1) continue;
    text += describe_failure(r, spec, cell.key.model.empty() ? "" : replay_command(cell, r.name));
  }
  if (failures == 0) return "";
  if (unloadable > 1) text += fmt::format("  and {} more that do not load\n", unloadable - 1);
  return fmt::format("\nfailed cases ({} of {}):\n", failures, run) + text;
}

// Options that the answer leaves out.
std::string left_out_cases(const CellResult& cell) {
  std::string names;
  std::size_t count = 0, run = 0;
  for (const CaseResult& r : cell.cases) {
    if (was_run(r.verdict)) ++run;
    if (has_failed(r) || r.verdict == Verdict::ok || !was_run(r.verdict)) continue;
    names += (count++ == 0 ? "" : ", ") + one_line(r.name);
  }
  if (count == 0) return "";
  return fmt::format("\nnot supported ({} of {}):\n  {}", count, run, hanging(names, 2));
}

std::string skipped_cases(const CellResult& cell) {
  std::size_t count = 0;
  std::string why;
  for (const CaseResult& r : cell.cases) {
    if (was_run(r.verdict)) continue;
    ++count;
    if (why.empty()) why = r.detail;
  }
  if (count == 0) return "";
  const bool lacking = std::ranges::any_of(
      cell.cases, [](const CaseResult& r) { return r.verdict == Verdict::needs_gpu; });
  const bool graded = lacking && (std::ranges::any_of(cell.cases, &is_failure) ||
                                  std::ranges::any_of(cell.cases, &ran_kernels));
  return fmt::format(
      "\nnot run: {} of {} cases{}{}\n{}", count, cell.cases.size(), why.empty() ? "" : ": ",
      one_line(why),
      graded ? "  what needs a GPU counts as failed, because other cases could be run\n" : "");
}

std::string misjudgement(const Mutant& m) {
  const char* kind = m.correct ? "correct" : "wrong";
  if (m.verdict == TestVerdict::inconsistent) return m.reason;
  std::string text = m.verdict == TestVerdict::not_built
                         ? fmt::format("do not compile with a {} implementation", kind)
                         : fmt::format("{} a {} implementation", code(m.verdict), kind);
  return m.reason.empty() ? text : fmt::format("{} ({})", text, m.reason);
}

std::string failed_tests(const CellResult& cell) {
  std::string text;
  for (const Mutant& m : cell.mutants) {
    if (m.judged_rightly() || m.verdict == TestVerdict::not_run) continue;
    text += fmt::format("  {}: {}\n", one_line(m.subject), one_line(misjudgement(m)));
  }
  return text.empty() ? "" : "\nits own tests misjudge:\n" + text;
}

// Implementations that assay holds to be right but that are not.
std::string house_faults(const CellResult& cell) {
  std::string text;
  for (const Mutant& m : cell.mutants) {
    if (m.verdict == TestVerdict::house_fault) text += "  " + one_line(m.reason) + "\n";
  }
  return text.empty() ? ""
                      : "\nFAULT OF THE HOUSE, found by its own tests; please report it:\n" + text;
}

// --- timing ------------------------------------------------------------------

std::string median_of(const CaseResult& r, std::optional<double> TimingSample::*which) {
  std::vector<double> seconds;
  for (const TimingSample& s : r.samples) {
    if (s.*which) seconds.push_back(*(s.*which));
  }
  return seconds.empty() ? "-" : duration(median(seconds));
}

std::string floor_of(const CaseResult& r) {
  const auto seconds = floor_seconds(r.metrics);
  return seconds ? duration(*seconds) : "-";
}

// What makes up the floor of each case.
std::string floor_text(const CellResult& cell) {
  std::string text;
  for (const CaseResult& r : cell.cases) {
    if (!floor_seconds(r.metrics)) continue;
    const auto least = *least_work(r.metrics);
    text +=
        fmt::format("  {}: {:.3g} MB at {:.3g} GB/s, {:.3g} GFLOP at {:.3g} GFLOP/s\n",
                    one_line(r.name), least.bytes / 1e6, *find_metric(r.metrics, kRoofBytes) / 1e9,
                    least.flops / 1e9, *find_metric(r.metrics, kRoofFlops) / 1e9);
  }
  return text.empty() ? "" : "\nfloor, the longer of the two:\n" + text;
}

// A real GPU's clocks over all timed cases, as far as they were reported.
std::string clocks_text(const CellResult& cell) {
  const auto over = [&](const char* name, auto better) {
    std::optional<double> found;
    for (const CaseResult& r : cell.cases) {
      const double* value = find_metric(r.metrics, name);
      if (value != nullptr) found = found ? better(*found, *value) : *value;
    }
    return found;
  };
  const auto least = [](double a, double b) { return std::min(a, b); };
  const auto most = [](double a, double b) { return std::max(a, b); };
  const auto range = [](double low, double high, const char* unit) {
    return low == high ? fmt::format("{:.0f} {}", low, unit)
                       : fmt::format("{:.0f} to {:.0f} {}", low, high, unit);
  };
  std::string text;
  const auto clock = over(kGpuClockLow, least), heat = over(kGpuTemperatureLow, least);
  if (clock) text += ", " + range(*clock, over(kGpuClockHigh, most).value_or(*clock), "MHz");
  if (heat)
    text += ", " + range(*heat, over(kGpuTemperatureHigh, most).value_or(*heat), "degrees C");
  if (const auto share = over(kThrottledShare, most))
    text += fmt::format(", held down in {:.0f} % of the repetitions at most", 100 * *share);
  return text.empty() ? "" : "\nclocks of the GPU: " + text.substr(2) + "\n";
}

std::string timing_table(const BoardEntry& e) {
  TextTable table(
      {"timed case", "naive", "par", "this", "floor", "speed, par = 1 (95 %)", "share", "runs"});
  bool any = false;
  for (const ShapeSpeed& s : e.score.speeds) {
    const CaseResult* r = find_case(e.cell, s.case_name);
    if (r == nullptr) continue;
    any = true;
    table.add({one_line(r->shape.empty() ? r->name : r->name + ": " + r->shape),
               median_of(*r, &TimingSample::naive), median_of(*r, &TimingSample::par),
               median_of(*r, &TimingSample::submission), floor_of(*r),
               fmt::format("{:.2f} ({:.2f} to {:.2f})", s.ratio_to_par, s.ratio_interval.low,
                           s.ratio_interval.high),
               fmt::format("{:.0f} %", 100 * s.points), std::to_string(r->samples.size())});
  }
  return any ? "\ntimings (medians):\n" + indented(table.str(), 2) + floor_text(e.cell) +
                   clocks_text(e.cell)
             : "";
}

// --- code --------------------------------------------------------------------

std::string code_section(const CellResult& cell) {
  if (cell.build.verdict == Verdict::no_answer) return "";
  std::string text = fmt::format("\n{}:\n", kCodeHeading);
  for (const CodeFact& fact : code_facts(cell.code))
    text += fmt::format("  {:<10} {}\n", fact.name, fact.text);
  return text;
}

std::string target_text(const std::string& target) {
  return target == kNativeTarget ? "" : ", for " + one_line(target);
}

std::string gpu_text(const Machine& m) {
  return m.gpu ? fmt::format(", {}, CUDA {}", one_line(m.gpu->name), one_line(m.gpu->driver)) : "";
}

std::string provenance(const BoardRow& e) {
  return fmt::format(
      "\nmeasured {} by assay {}{}, seed {}, isolation {}\non {}, {} cores, {}{}{}\n",
      one_line(e.finished_at), one_line(e.assay_version),
      e.assay_commit.empty() ? "" : " (" + one_line(e.assay_commit) + ")", e.seed,
      one_line(e.isolation), one_line(e.machine.cpu), e.machine.cores, one_line(e.machine.compiler),
      gpu_text(e.machine), target_text(e.target));
}

}  // namespace

std::string describe_failure(const CaseResult& r, const ChallengeSpec& spec,
                             const std::string& replay) {
  const CaseSpec* c = find_case(spec, r.name);
  return fmt::format("  {} ({}): {}\n", one_line(r.name), to_string(r.group), verdict(r.verdict)) +
         field("shape", one_line(r.shape)) +
         field("seed", replay.empty() ? "" : std::to_string(r.seed)) +
         field("catches", c == nullptr ? "" : c->catches) + field("detail", one_line(r.detail)) +
         field("error", error_text(r)) +
         (replay.empty() ? "" : fmt::format("    {:<9} {}\n", "replay", replay));  // to be pasted
}

std::string rerun_command(const CellKey& key, const std::string& target) {
  std::string text = fmt::format("assay rerun {} {}", quoted(key.model), quoted(key.challenge));
  if (!key.attempt.empty()) text += " --attempt " + quoted(key.attempt);
  text += fmt::format(" --device {}", to_string(key.device));
  return target == kNativeTarget ? text : text + " --march " + quoted(target);
}

std::string replay_command(const CellResult& cell, const std::string& case_name) {
  const std::string text = rerun_command(cell.key, cell.target);
  return one_line(text + fmt::format(" --case {} --seed {}", quoted(case_name), cell.seed));
}

std::string measuring_command(const CellKey& key) {
  return one_line(fmt::format("assay run --model {} --challenge {} --device {}", quoted(key.model),
                              quoted(key.challenge), to_string(key.device)));
}

std::string explain(const BoardEntry& e, const ChallengeSpec& spec, const std::string& currency) {
  const BoardRow row = board_row(e, {});
  return heading(row, spec) + score_lines(row, spec, currency) + dimension_table(e.score) +
         build_failure(e.cell.build) + passing_faults(e.cell) + failed_cases(e.cell, spec) +
         left_out_cases(e.cell) + skipped_cases(e.cell) + failed_tests(e.cell) +
         house_faults(e.cell) +
         (e.score.modelled_on.empty() ? timing_table(e) : modelled_tables(e)) +
         code_section(e.cell) + provenance(row);
}

std::string explain(const BoardRow& row, const ChallengeSpec& spec, const std::string& currency) {
  return heading(row, spec) + score_lines(row, spec, currency) + dimension_table(row.score) +
         provenance(row);
}

}  // namespace assay
