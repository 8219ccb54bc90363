// What every subcommand starts from: file locations and the known challenges.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace CLI {
class App;
}

namespace assay::cli {

// Exit statuses. 0: done, whatever the grades. 128 + N: stopped by signal N (util/stop.h), or
// nobody reads the output (output.h).
inline constexpr int kDone = 0, kCheckFailed = 1, kUsageOrHarnessError = 2;

struct Context {
  std::filesystem::path root;   // the folder with challenges/ and include/; only read
  std::filesystem::path work;   // the folder of submissions/, results/ and the README to update
  std::filesystem::path cache;  // for built submissions, unless --cache names another
  std::string named_root{};     // as given by the user, "" if it was found

  std::filesystem::path challenges() const { return root / "challenges"; }
  std::filesystem::path submissions() const { return work / "submissions"; }
  std::filesystem::path results() const { return work / "results"; }
};

// The root is --root, else ASSAY_ROOT, else the nearest parent of the working directory that holds
// challenges/ and include/, else such a parent of the program's file, else share/assay beside the
// program's bin/. Throws Error if there is none. The root is also the work folder, with its cache
// in .cache/. An installed root, share/assay, is shared, however: there the work folder is the
// working directory, and the cache is assay/ in $XDG_CACHE_HOME or ~/.cache.
Context find_context(const std::string& root_option);

// Specs of all challenges, or of the named ones in the given order; throws Error for an unknown
// name, suggesting the nearest known one.
std::vector<ChallengeSpec> load_specs(const Context&, const std::vector<std::string>& names = {},
                                      const ExternalFiles& files = {});

// A subcommand's work after the command line is parsed; returns the exit status.
using Action = std::function<int(const Context&)>;

// Each declares its command and options on the app, and sets `action` if the command is chosen.
void add_run(CLI::App&, Action&);
void add_rerun(CLI::App&, Action&);
void add_check(CLI::App&, Action&);
void add_grade(CLI::App&, Action&);
void add_serve(CLI::App&, Action&);
void add_report(CLI::App&, Action&);
void add_show(CLI::App&, Action&);
void add_board(CLI::App&, Action&);
void add_merge(CLI::App&, Action&);
void add_remove(CLI::App&, Action&);
void add_compare(CLI::App&, Action&);
void add_diff(CLI::App&, Action&);
void add_export(CLI::App&, Action&);
void add_import(CLI::App&, Action&);
void add_list(CLI::App&, Action&);
void add_prompt(CLI::App&, Action&);
void add_deploy(CLI::App&, Action&);
void add_add(CLI::App&, Action&);
void add_ask(CLI::App&, Action&);
void add_judge(CLI::App&, Action&);
// `agent_command` is the command line after `--`.
void add_solve(CLI::App&, Action&, std::vector<std::string> agent_command);
// `run_options` are the options of `assay run` after `--`.
void add_slurm(CLI::App&, Action&, std::vector<std::string> run_options);
void add_doctor(CLI::App&, Action&);
void add_selftest(CLI::App&, Action&);
void add_fuzz(CLI::App&, Action&);
void add_attack(CLI::App&, Action&);
// `program_arguments` are the arguments after `--`, for the simulated program.
void add_sim(CLI::App&, Action&, std::vector<std::string> program_arguments);
void add_gpu(CLI::App&, Action&);

// Declares --hints, for the commands that hand out tasks.
void add_hints_option(CLI::App&, bool& hints);

// Hidden commands: `man` and `completion bash` print text generated from the help of all commands.
void add_descriptions(CLI::App&);

}  // namespace assay::cli
