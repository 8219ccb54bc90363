// assay prompt and assay deploy: the task as given to a model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "assay/error.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "spec/public_cases.h"
#include "submission/submission.h"
#include "task/task.h"
#include "util/shell.h"

namespace assay::cli {
namespace {
namespace fs = std::filesystem;

std::vector<Language> languages_from(const std::string& name) {
  if (name == "cpp") return {Language::cpp};
  if (name == "cuda") return {Language::cuda};
  return {Language::cpp, Language::cuda};
}

struct PromptCommand {
  std::string challenge, language = "cpp";
  bool hints = false;
};

int print_prompt(const Context& context, const PromptCommand& c) {
  const std::vector<ChallengeSpec> specs = load_specs(context, {c.challenge});
  const PublicCases published = load_public_cases(specs.front());
  const task::Source source{context.root, specs.front(), challenge_of(specs.front()), published};
  fmt::print("{}", task::prompt_of(source, {languages_from(c.language), c.hints}));
  return kDone;
}

task::CheckProgram this_program(const Context& context) {
  return {quoted(fs::read_symlink("/proc/self/exe")), " --root " + quoted(context.root)};
}

struct DeployCommand {
  std::string model, language = "cpp", into;
  std::vector<std::string> challenges;
  bool hints = false;
};

int deploy_tasks(const Context& context, const DeployCommand& c) {
  if (const std::string objection = objection_to_model(c.model); !objection.empty())
    throw Error(fmt::format("no model can have the name '{}': {}", c.model, objection));
  const fs::path into = c.into.empty() ? context.submissions() : fs::path(c.into);
  for (const ChallengeSpec& spec : load_specs(context, c.challenges)) {
    const fs::path folder = into / c.model / spec.name;
    const PublicCases published = load_public_cases(spec);
    task::deploy({context.root, spec, challenge_of(spec), published},
                 {languages_from(c.language), c.hints}, folder, this_program(context));
    fmt::print("{}\n", folder.string());
  }
  return kDone;
}

}  // namespace

void add_hints_option(CLI::App& app, bool& hints) {
  app.add_flag("--hints", hints,
               "with what experts know of the task: which method, what is easily missed;\n"
               "the attempt's record says so");
}

void add_prompt(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("prompt", "Print what a model is given, as one text");
  auto c = std::make_shared<PromptCommand>();
  command->add_option("CHALLENGE", c->challenge, "see assay list challenges")->required();
  command->add_option("--language", c->language, "of the answer")
      ->check(CLI::IsMember({"cpp", "cuda"}))
      ->capture_default_str();
  add_hints_option(*command, c->hints);
  command->footer(
      R"(
The task, the rules, how it is graded, the public cases, the whole interface and the
command that compiles an answer. Nothing else is needed to write one. How to do it well is
left to the model, unless --hints adds what experts know.

Exit status: 0 printed, 2 an error.

Examples:
  assay prompt CHALLENGE > task.md
  assay prompt CHALLENGE --language cuda | your-model > answer.md
)");
  command->callback(
      [&action, c] { action = [c](const Context& context) { return print_prompt(context, *c); }; });
}

void add_deploy(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("deploy", "Make a folder for each task, to be solved in place");
  auto c = std::make_shared<DeployCommand>();
  command->add_option("MODEL", c->model, "a name for who will answer")->required();
  command->add_option("--challenge,-c", c->challenges, "only these")->allow_extra_args(false);
  command->add_option("--language", c->language, "of the answers")
      ->check(CLI::IsMember({"cpp", "cuda", "both"}))
      ->capture_default_str();
  command->add_option("--into,--submissions", c->into,
                      "folder of models (default: WORK/submissions)");
  add_hints_option(*command, c->hints);
  command->footer(
      R"(
Each folder holds PROMPT.md, abi.h, an answer that compiles and does nothing, build.sh,
which compiles it, and check.sh, which runs `assay check` on it: is it right, in seconds.
attempt.json says which version of the prompt that is; it comes onto the board.
Whatever else an agent leaves there is no part of its answer. Grade it where it lies:
assay run --model MODEL. A folder that holds anything is left alone.

Exit status: 0 made, 2 an error.

Examples:
  assay deploy my-model
  assay deploy my-model --challenge CHALLENGE --language both --into /tmp/tasks
)");
  command->callback(
      [&action, c] { action = [c](const Context& context) { return deploy_tasks(context, *c); }; });
}

}  // namespace assay::cli
