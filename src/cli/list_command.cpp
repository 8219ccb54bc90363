// assay list: the challenges and the models.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/output.h"
#include "submission/submission.h"
#include "util/text.h"

namespace assay::cli {
namespace {

struct ListCommand {
  std::string what = "all", submissions;
  bool json = false;
};

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
  return table.str();
}

std::string model_table(const std::vector<Submission>& submissions) {
  TextTable table({"model", "challenge", "attempt", "device", "files"});
  for (const Submission& s : submissions) {
    table.add({s.model, s.challenge, s.attempt.empty() ? "-" : s.attempt, to_string(s.device()),
               s.rejected.empty() ? std::to_string(s.sources.size()) : "rejected: " + s.rejected});
  }
  return table.str();
}

nlohmann::ordered_json as_json(const std::vector<ChallengeSpec>& specs,
                               const std::vector<Submission>& submissions) {
  nlohmann::ordered_json document{{"challenges", nlohmann::ordered_json::array()},
                                  {"submissions", nlohmann::ordered_json::array()}};
  for (const ChallengeSpec& s : specs) {
    document["challenges"].push_back({{"name", s.name},
                                      {"difficulty", s.difficulty},
                                      {"cases", s.cases.size()},
                                      {"timed", count_timed(s)},
                                      {"simulated", spec_for(Device::sim, s).cases.size()}});
  }
  for (const Submission& s : submissions) {
    document["submissions"].push_back({{"model", s.model},
                                       {"challenge", s.challenge},
                                       {"attempt", s.attempt},
                                       {"device", to_string(s.device())},
                                       {"rejected", s.rejected}});
  }
  return document;
}

int execute(const Context& context, const ListCommand& c) {
  const std::vector<ChallengeSpec> specs = load_specs(context);
  std::vector<std::string> names, warnings;
  for (const ChallengeSpec& s : specs) names.push_back(s.name);
  const std::vector<Submission> submissions = find_submissions(
      c.submissions.empty() ? context.submissions() : std::filesystem::path(c.submissions), names,
      warnings);
  for (const std::string& warning : warnings) tell(fmt::format("warning: {}\n", warning));
  if (c.json) {
    fmt::print("{}\n", as_json(specs, submissions).dump(1));
    return kDone;
  }
  if (c.what != "models") fmt::print("{}", challenge_table(specs));
  if (c.what == "all") fmt::print("\n");
  if (c.what != "challenges") fmt::print("{}", model_table(submissions));
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
      "\nOf a challenge: its cases, how many of them are timed, and how many run on the simulated\n"
      "GPU. Of a model: its answers, and why one was rejected. Nothing is run or written.\n"
      "\nExit status: 0 listed, 2 an error.\n"
      "\nExamples:\n"
      "  assay list\n"
      "  assay list challenges\n"
      "  assay list models --json\n");
  command->callback(
      [&action, c] { action = [c](const Context& context) { return execute(context, *c); }; });
}

}  // namespace assay::cli
