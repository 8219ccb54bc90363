// assay grade: grades one answer at any path, fully or in stages.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "assay/error.h"
#include "assay/parallel.h"
#include "cells/preparation.h"
#include "check/grade_report.h"
#include "check/stages.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "cli/outside_answer.h"
#include "cli/progress.h"
#include "cli/real_gpu.h"
#include "util/files.h"
#include "version.h"

namespace assay::cli {
namespace {

struct GradeCommand {
  HarnessOptions harness;
  OutsideOptions outside;
  std::string gpu = kDefaultGpu;
  bool gpu_given = false;
  GpuChoice gpus;
  std::vector<std::string> stages;
  std::optional<std::uint64_t> seed;
  bool json = false, quick = false;
};

const Submission& only_answer(const OutsideAnswer& outside) {
  if (outside.answers.size() == 1) return outside.answers.front();
  throw Error(
      "there are two answers, submission.cpp and submission.cu: say which with --device cpu or "
      "--device sim");
}

std::vector<check::Stage> stages_from(const std::vector<std::string>& names) {
  std::vector<check::Stage> stages;
  for (const std::string& name : names) stages.push_back(*check::stage_from(name));
  if (names.empty()) stages.assign(check::kStages.begin(), check::kStages.end());
  return stages;
}

std::vector<std::string> stage_names() {
  std::vector<std::string> names;
  for (const check::Stage stage : check::kStages) names.emplace_back(to_string(stage));
  return names;
}

int grade_answer(const Context& context, const GradeCommand& c) {
  const OutsideAnswer outside = find_outside_answer(context, c.outside);
  const Submission& answer = only_answer(outside);
  Harness harness = set_up(context, c.harness, Trial::later);
  if (answer.language == Language::cuda && !harness.builder->cuda_toolkit())
    throw Error(fmt::format("{}; it is looked for in PATH, CUDA_HOME and ASSAY_NVCC", kNoToolkit));
  harness.gpu = c.gpu;
  Place place = place_on(answer.device(), harness, c.gpus, c.gpu_given ? c.gpu : "");
  const cases::CaseFilter filter{.quick = c.quick};
  cells::CellRunner runner(std::move(place.world), {.tier = harness.tier.tier,
                                                    .seed = c.seed.value_or(random_seed()),
                                                    .filter = filter,
                                                    .simulator_threads = simulator_threads(1),
                                                    .gpu = place.gpu});
  check::RunnerStages steps(runner, outside.spec, answer, filter,
                            static_cast<std::size_t>(available_cores()));
  const std::vector<check::Stage> stages = stages_from(c.stages);
  const bool timed = std::ranges::find(stages, check::Stage::time) != stages.end();
  check::StagedGrade grade;
  {
    Progress progress(0);
    std::optional<cells::Preparation> baselines;  // built in the background for timing
    grade = check::grade_in_stages(
        steps, outside.spec, stages, !c.stages.empty(), harness.gpu, [&](check::Stage stage) {
          if (timed && stage == check::Stage::core)
            baselines.emplace(runner.baseline_builds(outside.spec, answer.language));
          if (stage == check::Stage::time && baselines) baselines->wait();
          return progress.begin(fmt::format("stage {}", to_string(stage)));
        });
    if (baselines) std::ranges::move(baselines->finish(), std::back_inserter(grade.cell.faults));
    if (grade.cell.build.verdict != Verdict::ok && answer.rejected.empty())
      harness.builder->check();
  }
  const check::GradeFacts facts{outside.spec, c.outside.path,  outside.known_by, kVersion,
                                kCommit,      harness.machine, c.quick};
  fmt::print("{}", c.json ? grade_json(grade, facts) : grade_text(grade, facts));
  if (grade.score.verdict != Verdict::harness_error) return kDone;
  tell(fmt::format("assay: not graded: {}\n", grade.cell.build.log));
  return kUsageOrHarnessError;
}

}  // namespace

void add_grade(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("grade", "Grade one answer that lies anywhere");
  command->footer(R"(
The grade that `assay run` gives, of one answer, without submissions/ and without a board:
nothing is stored, and PATH is left alone. With --stages it runs those in their order and
stops after the first that fails:

  build     it compiles
  core      every core case is right
  all       every edge and trap case is right; capabilities and memory are measured
  findings  on the simulated GPU: it found nothing in these
  tests     its own tests against right and wrong implementations; cannot fail
  time      every timed case is right, and how fast

`build` is always run, `core` with `all`, and both with `findings`. Without --stages all
run that can. The score is there where all of its parts were measured: without `tests`, of
an answer that has none, or in CUDA where the challenge has nothing to try them on. With
--json there are the parts that a reward is made of, see challenges/grade.schema.json.

Exit status: 0 graded, whatever the grade; 2 wrong usage or a fault of the harness; 130,
143 or 129 stopped by SIGINT, SIGTERM or SIGHUP.

Examples:
  assay grade answer.cpp -c CHALLENGE --json
  assay grade submissions/textbook/CHALLENGE --device cpu --seed 7
  assay grade answer.cu -c CHALLENGE --stages build,core,all,findings,tests,time --json
  assay grade answer.cu -c CHALLENGE --device cuda --json     on this machine's GPU
)");
  auto c = std::make_shared<GradeCommand>();
  add_outside_options(*command, c->outside, true);
  add_gpu_choice(*command, c->gpus);
  command->add_flag("--json", c->json, "the grade as JSON");
  command
      ->add_option("--stages", c->stages,
                   "only these, and none after one that fails, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(stage_names()));
  command->add_option("--seed", c->seed, "seed of the hidden inputs (default: random, told)");
  command->add_flag("--quick", c->quick, "a smoke grade: few cases, few repetitions");
  add_gpu_option(*command, c->gpu);
  add_harness_options(*command, c->harness);
  command->callback([&action, command, c] {
    c->gpu_given = command->count("--gpu") > 0;
    action = [c](const Context& context) { return grade_answer(context, *c); };
  });
}

}  // namespace assay::cli
