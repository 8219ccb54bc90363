// assay list: lists the challenges and the models.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "cli/context.h"
#include "cli/output.h"
#include "records/entrant_json.h"
#include "submission/submission.h"
#include "util/text.h"

namespace assay::cli {
namespace {

struct ListCommand {
  std::string what = "all", submissions;
  bool json = false;
};

// A program that reads the tables finds one row in a line.
std::size_t columns() {
  return ::isatty(STDOUT_FILENO) == 1 ? kTerminalColumns : std::string::npos;
}

std::size_t count_timed(const ChallengeSpec& spec) {
  return static_cast<std::size_t>(
      std::count_if(spec.cases.begin(), spec.cases.end(),
                    [](const CaseSpec& c) { return c.group == CaseGroup::timed; }));
}

std::string challenge_table(const std::vector<ChallengeSpec>& specs) {
  TextTable table({"challenge", "difficulty", "cases", "timed", "simulated", "in one line"});
  for (const ChallengeSpec& s : specs) {
    table.add({s.name, s.difficulty, std::to_string(s.cases.size()), std::to_string(count_timed(s)),
               std::to_string(spec_for(Device::sim, s).cases.size()), s.summary});
  }
  return table.str(columns());
}

using Models = std::map<std::string, ModelInfo>;

// Faults in descriptions were already reported when the submissions were found.
Models described_models(const std::filesystem::path& root,
                        const std::vector<Submission>& submissions) {
  Models models;
  for (const Submission& s : submissions) {
    std::string told;
    if (!models.contains(s.model)) models[s.model] = read_model_info(root, s.model, told);
  }
  return models;
}

std::string shown_name(const ModelInfo& about) {
  std::string name = about.name.empty() ? "-" : about.name;
  if (!about.sample) return name;
  return about.name.empty() ? "(reference)" : name + " (reference)";
}

std::string files_of(const Submission& s) {
  if (!s.no_answer.empty()) return "no answer: " + s.no_answer;
  return s.rejected.empty() ? std::to_string(s.sources.size()) : "rejected: " + s.rejected;
}

std::string model_table(const std::vector<Submission>& submissions, const Models& models) {
  TextTable table({"model", "name", "challenge", "attempt", "device", "files"});
  for (const Submission& s : submissions) {
    table.add({s.model, shown_name(models.at(s.model)), s.challenge,
               s.attempt.empty() ? "-" : s.attempt, to_string(s.device()), files_of(s)});
  }
  return table.str(columns());
}

void add_challenges(nlohmann::ordered_json& document, const std::vector<ChallengeSpec>& specs) {
  document["challenges"] = nlohmann::ordered_json::array();
  for (const ChallengeSpec& s : specs) {
    document["challenges"].push_back({{"name", s.name},
                                      {"difficulty", s.difficulty},
                                      {"cases", s.cases.size()},
                                      {"timed", count_timed(s)},
                                      {"simulated", spec_for(Device::sim, s).cases.size()}});
  }
}

void add_models(nlohmann::ordered_json& document, const std::vector<Submission>& submissions,
                const Models& models) {
  document["models"] = nlohmann::ordered_json::array();
  document["submissions"] = nlohmann::ordered_json::array();
  for (const auto& [model, about] : models) {
    nlohmann::ordered_json row{{"model", model}};
    row.update(to_json(about));
    document["models"].push_back(row);
  }
  for (const Submission& s : submissions) {
    document["submissions"].push_back({{"model", s.model},
                                       {"challenge", s.challenge},
                                       {"attempt", s.attempt},
                                       {"device", to_string(s.device())},
                                       {"rejected", s.rejected},
                                       {"no_answer", s.no_answer}});
  }
}

int execute(const Context& context, const ListCommand& c) {
  const std::vector<ChallengeSpec> specs = load_specs(context);
  std::vector<std::string> names, warnings;
  for (const ChallengeSpec& s : specs) names.push_back(s.name);
  const std::filesystem::path root =
      c.submissions.empty() ? context.submissions() : std::filesystem::path(c.submissions);
  const bool of_models = c.what != "challenges";
  if (of_models && !c.submissions.empty() && !std::filesystem::is_directory(root))
    throw Error(fmt::format("no folder {}: --submissions names a folder of models", root.string()));
  const std::vector<Submission> submissions = find_submissions(root, names, warnings);
  const Models models = described_models(root, submissions);
  for (const std::string& warning : warnings) tell(fmt::format("warning: {}\n", warning));
  if (c.json) {
    nlohmann::ordered_json document;
    if (c.what != "models") add_challenges(document, specs);
    if (of_models) add_models(document, submissions, models);
    fmt::print("{}\n", document.dump(1));
    return kDone;
  }
  if (c.what != "models") fmt::print("{}", challenge_table(specs));
  if (c.what == "all") fmt::print("\n");
  if (of_models && submissions.empty()) {
    fmt::print("no answers in {}: assay ask, add or deploy brings some\n", root.string());
  } else if (of_models) {
    fmt::print("{}", model_table(submissions, models));
  }
  return kDone;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("list", "The challenges and the models");
  auto c = std::make_shared<ListCommand>();
  command->add_option("WHAT", c->what, "challenges, models or all")
      ->check(CLI::IsMember({"challenges", "models", "all"}))
      ->capture_default_str();
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  command->add_flag("--json", c->json, "print JSON");
  command->footer(
      R"(
Of a challenge: its cases, how many of them are timed, and how many run on the simulated
GPU. Of a model: its name, as its model.json says, its answers, and why one was rejected.
Nothing is run or written.

Exit status: 0 listed, 2 an error.

Examples:
  assay list
  assay list challenges
  assay list models --json
)");
  command->callback(
      [&action, c] { action = [c](const Context& context) { return execute(context, *c); }; });
}

}  // namespace assay::cli
