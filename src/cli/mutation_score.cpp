#include "cli/mutation_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "assay/error.h"
#include "cells/mutants.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "mutate/known.h"
#include "mutate/mutation.h"
#include "mutate/score.h"
#include "numerics/jobs.h"
#include "records/lookup.h"
#include "report/mutation_scores.h"
#include "spec/spec.h"
#include "store/mutation_record.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::cli {
namespace {

using mutate::Fate;

// A challenge, the answer to mutate, and the mutants drawn.
struct Target {
  const ChallengeSpec* spec = nullptr;
  cells::MutatedAnswer answer{};
  std::vector<mutate::KnownMutant> known{};
  std::vector<mutate::Mutation> drawn{};
  std::size_t all = 0;
  std::vector<std::string> stale{};  // entries of the list that match no mutant
  std::unique_ptr<cells::MutantBench> bench{};
  std::vector<mutate::Result> results{};
  std::size_t tried = 0;

  mutate::Tally tally() const {
    mutate::Tally sum;
    for (const mutate::Result& r : results) sum.add(r);
    return sum;
  }
};

struct Job {
  Target* target;
  std::size_t mutant;
};

Target plan_target(const Context& context, const MutationOptions& options,
                   const ChallengeSpec& spec, std::uint64_t seed) {
  Target t{&spec, cells::answer_to_mutate(spec, options.of, context.submissions())};
  t.known = mutate::load_known_mutants(spec.directory);
  const std::string scope = t.answer.scope(spec);
  t.drawn = mutate::mutations_of(t.answer.sources, scope);
  t.all = t.drawn.size();
  for (const mutate::KnownMutant* k : mutate::unmatched(t.known, options.of, t.drawn))
    t.stale.push_back(k->becomes);
  if (!options.id.empty()) {
    std::erase_if(t.drawn, [&](const mutate::Mutation& m) { return m.id != options.id; });
  } else {
    t.drawn = mutate::in_drawing_order(std::move(t.drawn), seed, scope);
    t.drawn.resize(std::min(t.drawn.size(), options.count));
  }
  t.results.resize(t.drawn.size());
  return t;
}

std::deque<Target> plan_targets(const Context& context, const MutationOptions& options,
                                const std::vector<ChallengeSpec>& specs, std::uint64_t seed) {
  std::deque<Target> targets;
  for (const ChallengeSpec& spec : specs) {
    Target t = plan_target(context, options, spec, seed);
    if (!t.drawn.empty() || options.id.empty()) targets.push_back(std::move(t));
  }
  if (targets.empty()) {
    throw Error(fmt::format(
        "no mutant of {} has the id '{}': it may be of another answer (--of) or challenge, or its "
        "line was edited since",
        options.of, options.id));
  }
  return targets;
}

std::string place(const Target& t, const mutate::Mutation& m) {
  return fmt::format("{} {}:{}", t.spec->name, m.file_name, m.line);
}

std::string fate_text(const mutate::Result& r) {
  if (r.fate == Fate::killed) return fmt::format("killed by {} ({})", r.case_name, code(r.verdict));
  if (r.fate == Fate::listed)
    return fmt::format("survived, listed as {}: {}", to_string(r.known->excuse), r.known->reason);
  if (r.fate == Fate::same_code) return "compiled to the same code";
  if (r.fate == Fate::does_not_compile) return "does not compile";
  return "SURVIVED";
}

void print_mutant(const Target& t, const mutate::Result& r) {
  const mutate::Mutation& m = r.mutation;
  fmt::print("{} {} ({}): {}\n  - {}\n  + {}\n", m.id, place(t, m), to_string(m.edit.op),
             fate_text(r), printable(m.before), printable(m.after));
}

void print_table(const std::deque<Target>& targets) {
  TextTable table({"challenge", "possible", "tried", "not compiled", "same code", "killed",
                   "listed", "survived", "score"});
  const auto add = [&](const std::string& name, std::size_t all, const mutate::Tally& s) {
    const auto number = [](std::size_t n) { return fmt::format("{}", n); };
    const std::string score = report::percent(s);
    table.add({name, number(all), number(s.total()), number(s.does_not_compile),
               number(s.same_code), number(s.killed), number(s.listed), number(s.survived),
               score.empty() ? "-" : score});
  };
  mutate::Tally sum;
  std::size_t all = 0;
  for (const Target& t : targets) {
    add(t.spec->name, t.all, t.tally());
    sum.add(t.tally());
    all += t.all;
  }
  if (targets.size() > 1) add("total", all, sum);
  fmt::print("{}", table.str());
}

void print_report(const std::deque<Target>& targets, bool one) {
  for (const Target& t : targets) {
    for (const mutate::Result& r : t.results) {
      if (one || r.fate == Fate::survived) print_mutant(t, r);
      if (one && !r.detail.empty()) fmt::print("{}\n", printable(r.detail));
      if (r.fate == Fate::killed && r.known) {
        fmt::print("{} {}: listed as {}, yet killed by {}: is the reason true?\n", r.mutation.id,
                   place(t, r.mutation), to_string(r.known->excuse), r.case_name);
      }
    }
    for (const std::string& entry : t.stale) {
      fmt::print("{}: mutants.json lists '{}', which is no mutant of {} now: remove or mend it\n",
                 t.spec->name, entry, t.answer.of);
    }
  }
  if (!one) print_table(targets);
}

nlohmann::json to_json(const mutate::Tally& s) {
  nlohmann::json j{{"tried", s.total()},       {"does_not_compile", s.does_not_compile},
                   {"same_code", s.same_code}, {"killed", s.killed},
                   {"listed", s.listed},       {"survived", s.survived},
                   {"score", nlohmann::json()}};
  if (const auto score = s.score()) j["score"] = *score;
  return j;
}

nlohmann::json to_json(const mutate::Result& r) {
  const mutate::Mutation& m = r.mutation;
  nlohmann::json j{{"id", m.id},
                   {"file", m.file_name},
                   {"line", m.line},
                   {"nth", m.nth},
                   {"before", m.before},
                   {"after", m.after},
                   {"operator", to_string(m.edit.op)},
                   {"fate", to_string(r.fate)}};
  if (r.fate == Fate::killed) j.update({{"case", r.case_name}, {"verdict", code(r.verdict)}});
  if (r.known) j.update({{"excuse", to_string(r.known->excuse)}, {"reason", r.known->reason}});
  return j;
}

void print_json(const std::deque<Target>& targets, std::uint64_t seed) {
  mutate::Tally sum;
  nlohmann::json challenges = nlohmann::json::array();
  for (const Target& t : targets) {
    nlohmann::json j = to_json(t.tally());
    j.update({{"challenge", t.spec->name}, {"of", t.answer.of}, {"possible", t.all}});
    j["stale"] = t.stale;
    j["mutants"] = nlohmann::json::array();
    for (const mutate::Result& r : t.results) j["mutants"].push_back(to_json(r));
    challenges.push_back(std::move(j));
    sum.add(t.tally());
  }
  const nlohmann::json document{
      {"schema", 1}, {"seed", seed}, {"total", to_json(sum)}, {"challenges", challenges}};
  fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Records the scores of targets whose mutants were all tried.
void keep_scores(const std::filesystem::path& results, const std::deque<Target>& targets,
                 std::uint64_t seed) {
  std::vector<mutate::ChallengeScore> scores;
  for (const Target& t : targets) {
    if (t.tried != t.drawn.size()) continue;
    std::set<std::string> measuring;
    for (const mutate::Result& r : t.results) {
      if (r.by_measuring) measuring.insert(r.case_name);
    }
    scores.push_back(
        {t.spec->name, t.answer.of, judging_hashes(*t.spec, measuring), seed, t.all, t.tally()});
  }
  if (scores.empty()) return;
  store::add_to_mutation_record(results, scores);
  tell(fmt::format("wrote {}: `assay report` tells of it\n",
                   store::mutation_record_path(results).string()));
}

// kDone if every survivor is excused and the lists match the answers.
int status_of(const std::deque<Target>& targets) {
  const bool good = std::ranges::all_of(
      targets, [](const Target& t) { return t.stale.empty() && t.tally().survived == 0; });
  return good ? kDone : kCheckFailed;
}

}  // namespace

int score_mutants(const Context& context, const MutationOptions& options,
                  const HarnessOptions& harness_options, const std::vector<std::string>& names,
                  std::uint64_t seed, std::size_t jobs) {
  const std::vector<ChallengeSpec> specs = load_specs(context, names);
  std::deque<Target> targets = plan_targets(context, options, specs, seed);
  Harness harness = set_up(context, harness_options);
  const cases::World world = cases::real_world(*harness.builder);
  const cells::RunOptions run_options{harness.tier.tier, seed, {}};
  std::vector<Job> work;
  for (Target& t : targets) {
    for (std::size_t i = 0; i < t.drawn.size(); ++i) work.push_back({&t, i});
  }
  const std::filesystem::path results =
      options.results.empty() ? context.results() : std::filesystem::path(options.results);
  std::mutex counting;
  try {
    Progress progress(work.size());
    for (Target& t : targets) {
      const auto activity = progress.begin(fmt::format("running {} unchanged", t.spec->name));
      t.bench = std::make_unique<cells::MutantBench>(world, run_options, *t.spec, t.answer);
    }
    for_each_job(work.size(), jobs, [&](std::size_t i) {
      Target& t = *work[i].target;
      const mutate::Mutation& m = t.drawn[work[i].mutant];
      const auto activity = progress.begin(fmt::format("mutant {} of {}", m.id, place(t, m)));
      mutate::Result& result = t.results[work[i].mutant];
      result = t.bench->run(m, t.known);
      {
        const std::lock_guard lock(counting);
        ++t.tried;
      }
      progress.finished(fmt::format("{} {}: {}", m.id, place(t, m), fate_text(result)));
    });
  } catch (const Stopped&) {
    std::size_t finished = 0;
    for (const Target& t : targets) finished += t.tried;
    tell(fmt::format("stopped by {} after {} of {} mutants; what was compiled is kept\n",
                     stop_signal_name(), finished, work.size()));
    if (options.record) keep_scores(results, targets, seed);
    throw;
  }
  if (options.record) keep_scores(results, targets, seed);
  if (options.json)
    print_json(targets, seed);
  else
    print_report(targets, !options.id.empty());
  return status_of(targets);
}

}  // namespace assay::cli
