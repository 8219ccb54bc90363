// assay check: tests whether an answer is right on the public cases.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "assay/error.h"
#include "check/check_report.h"
#include "check/public_check.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "cli/outside_answer.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "spec/public_cases.h"
#include "task/task.h"
#include "util/files.h"
#include "version.h"

namespace assay::cli {
namespace {

struct CheckCommand {
  HarnessOptions harness;
  OutsideOptions outside;
  std::string gpu = kDefaultGpu;
  bool json = false;
};

// Does not flush caches: a check only indicates speed on a small shape with warm inputs, and must
// itself be quick.
cases::World world_of_checks(Builder& builder) {
  cases::World world = cases::real_world(builder);
  world.flush_caches = [] {};
  return world;
}

// A CUDA answer cannot be checked without a toolkit. If there is also a C++ answer, that is only a
// remark.
bool can_build(const Harness& harness, const OutsideAnswer& outside, const Submission& answer) {
  if (answer.language != Language::cuda || harness.builder->cuda_toolkit()) return true;
  const std::string why = fmt::format("{}: {}; it is looked for in PATH, CUDA_HOME and ASSAY_NVCC",
                                      main_file(answer.language), kNoToolkit);
  if (outside.answers.size() == 1) throw Error(why);
  tell(why + "\n");
  return false;
}

int check_answers(const Context& context, const CheckCommand& c) {
  const OutsideAnswer outside = find_outside_answer(context, c.outside);
  const PublicCases published = load_public_cases(outside.spec);
  const ChallengeSpec spec = public_spec(outside.spec, published);
  Harness harness = set_up(context, c.harness, Trial::later);
  cells::CellRunner runner(
      world_of_checks(*harness.builder),
      {harness.tier.tier, published.seed, {.quick = true}, simulator_threads(1)});
  const bool alone = !std::filesystem::is_directory(c.outside.path);
  bool all_passed = true, first = true;
  for (const Submission& answer : outside.answers) {
    if (!can_build(harness, outside, answer)) continue;
    check::PublicCheck result;
    {
      Progress progress(0);
      const auto activity = progress.begin(fmt::format("checking {}", main_file(answer.language)));
      result = check::check_publicly(runner, spec, answer, c.gpu);
      // Find out whether only the answer fails to build or the compiler does not work at all.
      if (result.cell.build.verdict != Verdict::ok && answer.rejected.empty())
        harness.builder->check();
    }
    const ChallengeSpec put = spec_for(answer.device(), spec);
    check::Subject about{answer, put, outside.spec, published, outside.known_by, kVersion, alone};
    if (const std::string& prompt = answer.record.prompt_sha256; !prompt.empty()) {
      about.prompt_is_current = task::is_current(
          {context.root, outside.spec, challenge_of(outside.spec), published}, prompt);
    }
    constexpr std::size_t kAll = 1 << 20;
    if (!c.json && !first) fmt::print("\n");
    first = false;
    fmt::print("{}", c.json ? check_json(result, about) : check_text(result, about, kAll));
    all_passed = all_passed && passed(result);
  }
  return all_passed ? kDone : kCheckFailed;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("check", "Is an answer right, on the public cases?");
  command->footer(
      R"(
Compiles the answer and runs it, isolated, on the public cases of its challenge, which its
prompt lists: small shapes with known seeds, one for each optional capability, and draws.
Tells what does not compile, the first mismatch of each wrong case with its error and
bound, memory, and an indicative speed beside par's and naive's; of an answer in CUDA what
the simulator found, with source lines, what it counted, and a modelled time. A grading has
other shapes, inputs and seeds. Gives no grade, stores nothing, and leaves PATH alone.
A folder with submission.cpp and submission.cu has two answers: both are checked.

With --json each answer is an object on a line of its own; its field "feedback" is text
for a model, of at most 8 kB. challenges/check.schema.json describes it.

Exit status: 0 every case is right, or optional and left out; 1 something is wrong in the
answer; 2 wrong usage or a fault of the harness; 130, 143 or 129 stopped by a signal.

Examples:
  assay check .                                a deployed folder, from inside
  assay check answer.cu -c CHALLENGE           one file
  assay check submissions/textbook/CHALLENGE --device cpu --json
)");
  auto c = std::make_shared<CheckCommand>();
  add_outside_options(*command, c->outside);
  command->add_flag("--json", c->json, "for scripts: an object for each answer, on a line each");
  add_gpu_option(*command, c->gpu);
  add_harness_options(*command, c->harness);
  command->callback([&action, c] {
    action = [c](const Context& context) { return check_answers(context, *c); };
  });
}

}  // namespace assay::cli
