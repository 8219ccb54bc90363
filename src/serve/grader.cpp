#include "serve/grader.h"

#include <fmt/format.h>

#include <exception>

#include "assay/parallel.h"
#include "cells/cell.h"
#include "check/grade_report.h"
#include "check/stages.h"
#include "util/clock.h"
#include "util/stop.h"

namespace assay::serve {
namespace {

// A builder keeps its builds for its lifetime. It is replaced after this many grades, so that a
// server that runs for weeks does not fill the disk.
constexpr int kUsesOfABuilder = 256;

// Gives this thread all cores, for references and cache flushes, for the object's lifetime.
class AllCores {
 public:
  AllCores() { set_parallel_threads(0); }
  ~AllCores() { set_parallel_threads(1); }
  AllCores(const AllCores&) = delete;
  AllCores& operator=(const AllCores&) = delete;
};

struct AloneOnTheMachine {
  std::shared_ptr<void> gate;
  AllCores cores;
};

// Compiles what timing compares against before timing gets the machine to itself.
void build_baselines(cells::CellRunner& runner, const ChallengeSpec& spec) {
  for (const cells::SharedBuild& build : runner.baseline_builds(spec, Language::cpp)) {
    try {
      build.run();
    } catch (const std::exception&) {
      return;  // timing hits the same fault and reports it
    }
  }
}

}  // namespace

Grader::Grader(std::span<const ChallengeSpec> specs, GraderSettings settings)
    : specs_(specs), settings_(std::move(settings)), builder_(settings_.make_builder()) {}

std::shared_ptr<Builder> Grader::builder() {
  const std::lock_guard lock(mutex_);
  if (++uses_ > kUsesOfABuilder) {
    // Looking for nvcc may fail for a moment, which must not last for as many grades.
    std::shared_ptr<Builder> next = settings_.make_builder();
    if (next->cuda_toolkit() || !builder_->cuda_toolkit()) builder_ = std::move(next);
    uses_ = 1;
  }
  return builder_;
}

bool Grader::has_cuda() {
  const std::lock_guard lock(mutex_);
  return builder_->cuda_toolkit().has_value();
}

std::string Grader::identity() {
  const std::lock_guard lock(mutex_);
  const Machine& machine = settings_.machine;
  const std::optional<CudaToolkit>& toolkit = builder_->cuda_toolkit();
  return fmt::format("{} {} {} {} {} {} {} {}", settings_.assay_version, settings_.assay_commit,
                     machine.cpu, machine.cores, machine.compiler, builder_->target(),
                     toolkit ? toolkit->version : "no CUDA", sandbox::to_string(settings_.tier));
}

void Grader::check_builder(Builder& builder) {
  constexpr double kHoldsFor = 60;
  {
    const std::lock_guard lock(mutex_);
    if (checked_ > 0 && steady_seconds() - checked_ < kHoldsFor) return;
  }
  builder.check();
  const std::lock_guard lock(mutex_);
  checked_ = steady_seconds();
}

Json Grader::grade(const GradeRequest& request, const std::function<void(check::Stage)>& on_stage) {
  set_parallel_threads(1);
  const ChallengeSpec& spec = spec_named(specs_, request.answer.challenge);
  const std::shared_ptr<Builder> used = builder();
  const cases::CaseFilter filter{.quick = request.quick};
  const std::uint64_t seed = request.seed ? *request.seed : settings_.random_seed();
  cells::CellRunner runner(cases::real_world(*used),
                           {settings_.tier, seed, filter, settings_.simulator_threads});
  check::RunnerStages steps(runner, spec, request.answer, filter, 1);
  const auto begin = [&](check::Stage stage) -> std::shared_ptr<void> {
    on_stage(stage);
    std::shared_ptr<void> beside = gate_.beside_others();
    // For an answer in CUDA the time is modelled, so other work does not matter.
    if (stage != check::Stage::time || request.answer.language == Language::cuda) return beside;
    build_baselines(runner, spec);
    beside.reset();
    auto alone = std::make_shared<AloneOnTheMachine>();
    alone->gate = gate_.alone(request.priority);
    return alone;
  };
  const std::vector<check::Stage> all(check::kStages.begin(), check::kStages.end());
  const check::StagedGrade grade =
      check::grade_in_stages(steps, spec, request.stages.empty() ? all : request.stages,
                             !request.stages.empty(), request.gpu, begin);
  if (grade.cell.build.verdict == Verdict::build_error) check_builder(*used);
  if (grade.cell.build.verdict == Verdict::skipped)
    throw Error("not graded: " + grade.cell.build.log);
  const check::GradeFacts facts{spec,
                                "",
                                request.known_by,
                                settings_.assay_version,
                                settings_.assay_commit,
                                settings_.machine,
                                request.quick};
  return Json::parse(check::grade_json(grade, facts));
}

}  // namespace assay::serve
