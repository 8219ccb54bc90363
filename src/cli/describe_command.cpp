// assay man, assay completion: hidden commands that the build uses to generate installed files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cases/challenge_registry.h"
#include "cli/context.h"
#include "cli/describe.h"
#include "cli/describe_keys.h"
#include "spec/json_schema.h"
#include "version.h"

namespace assay::cli {
namespace {

std::vector<std::string> challenge_names() {
  std::vector<std::string> names;
  for (const ChallengeRow& row : challenge_rows()) names.emplace_back(row.name);
  return names;
}

// Prints while parsing, like --help, because it needs no work folder.
void print_and_end(const std::string& text) {
  fmt::print("{}", text);
  throw CLI::Success();
}

}  // namespace

void add_descriptions(CLI::App& app) {
  app.add_subcommand("man", "print the manual page")->group("")->callback([&app] {
    print_and_end(man_page(app, kVersion, man_keys(kScoreboardSchema, "scoreboard_1")));
  });
  auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand("completion", "print a script for the shell")->group("");
  completion->add_option("SHELL", *shell, "bash")->required()->check(CLI::IsMember({"bash"}));
  completion->callback([&app, shell] { print_and_end(bash_completion(app, challenge_names())); });
}

}  // namespace assay::cli
