// assay: parse, dispatch, exit status.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/context.h"
#include "cli/conventions.h"
#include "cli/output.h"
#include "util/process_limits.h"
#include "util/stop.h"
#include "version.h"

namespace {

constexpr const char* kAbout =
    "assay grades kernels written by language models: it builds each submission, runs it isolated\n"
    "against fp64 references, times it between a naive and an expert implementation, and writes\n"
    "graded scoreboards.\n";

constexpr const char* kFooter =
    "\nExamples:\n"
    "  assay run                                  everything in submissions/\n"
    "  assay run --model textbook --quick         a smoke run of one model\n"
    "  assay show textbook CHALLENGE              why this score\n"
    "  assay check answer.cpp                     is it right, on public cases, in seconds\n"
    "  assay report                               write the rankings: README.md and RANKINGS.md\n"
    "  assay sim softmax.cu                       run a CUDA program on a simulated GPU\n"
    "\nWhere things lie:\n"
    "  ROOT   challenges/ and include/, which are only read: --root, or the nearest\n"
    "         folder above the working directory or above the program that holds them,\n"
    "         or share/assay of an installation\n"
    "  WORK   submissions/, results/ and README.md: in ROOT, or with an installation in\n"
    "         the working directory\n"
    "  CACHE  what was compiled: ROOT/.cache, or with an installation\n"
    "         $XDG_CACHE_HOME/assay (~/.cache/assay)\n"
    "\nExit status: 0 done (whatever the grades), 1 something is wrong (check, diff, doctor,\n"
    "gpu, selftest, attack, fuzz, report --check) or is to be decided by hand (ask), 2 usage\n"
    "or harness error, 130, 143 or 129 ended early and cleanly by Ctrl-C (SIGINT), SIGTERM or\n"
    "SIGHUP, 141 nobody reads the output. sim has the status of its program, or 3 for findings.\n";

// `assay sim PROGRAM -- ARGS`, `assay solve -- COMMAND`, `assay slurm -- OPTIONS`: how many
// arguments come before the `--`.
int own_arguments(int argc, char** argv) {
  const auto passes_on = [](const std::string_view word) {
    return word == "sim" || word == "solve" || word == "slurm";
  };
  const std::string_view mark = "--";
  return static_cast<int>(
      std::find(std::find_if(argv + 1, argv + argc, passes_on), argv + argc, mark) - argv);
}

// A package is compiled for the processors of the last ten years; others would end it by SIGILL.
bool processor_suffices() {
#ifdef ASSAY_NEEDS_X86_64_V3
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

int parse_and_run(int argc, char** argv) {
  using namespace assay;
  CLI::App app(kAbout, "assay");
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("assay {} ({})", kVersion, kCommit));
  std::string root;
  app.add_option("--root", root, "folder that holds challenges/ and include/")
      ->envname("ASSAY_ROOT");
  const int own = own_arguments(argc, argv);
  const std::vector<std::string> rest(argv + std::min(own + 1, argc), argv + argc);
  cli::Action action;
  cli::add_run(app, action);
  cli::add_rerun(app, action);
  cli::add_check(app, action);
  cli::add_grade(app, action);
  cli::add_serve(app, action);
  cli::add_report(app, action);
  cli::add_show(app, action);
  cli::add_board(app, action);
  cli::add_compare(app, action);
  cli::add_diff(app, action);
  cli::add_merge(app, action);
  cli::add_remove(app, action);
  cli::add_export(app, action);
  cli::add_import(app, action);
  cli::add_list(app, action);
  cli::add_prompt(app, action);
  cli::add_deploy(app, action);
  cli::add_add(app, action);
  cli::add_ask(app, action);
  cli::add_judge(app, action);
  cli::add_solve(app, action, rest);
  cli::add_doctor(app, action);
  cli::add_selftest(app, action);
  cli::add_fuzz(app, action);
  cli::add_attack(app, action);
  cli::add_sim(app, action, rest);
  cli::add_gpu(app, action);
  cli::add_slurm(app, action, rest);
  cli::add_descriptions(app);
  app.footer(kFooter);  // now, for commands inherit what stands before
  cli::keep_conventions(app);
  if (const std::string fault =
          cli::valueless_option(std::vector<std::string>(argv + 1, argv + own));
      !fault.empty()) {
    cli::tell("assay: " + fault + "\n");
    return cli::kUsageOrHarnessError;
  }
  try {
    app.parse(own, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? cli::kDone : cli::kUsageOrHarnessError;
  }
  return action(cli::find_context(root));
}

int failed(const std::exception& fault) {
  using namespace assay;
  if (stop_signal() != 0) return 128 + stop_signal();  // what ended with the request is no fault
  const auto* system = dynamic_cast<const std::system_error*>(&fault);
  if (system != nullptr && std::ferror(stdout) != 0)
    return cli::output_failed(system->code().value());
  if (dynamic_cast<const std::bad_alloc*>(&fault) != nullptr) {
    std::fputs("assay: out of memory: end other programs, or raise the limit on memory\n", stderr);
  } else {
    cli::tell(fmt::format("assay: {}\n", fault.what()));
  }
  return cli::kUsageOrHarnessError;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace assay;
  if (!processor_suffices()) {
    std::fputs(
        "assay: this package needs a processor with AVX2, BMI2 and FMA: build assay from its "
        "sources\n",
        stderr);
    return cli::kUsageOrHarnessError;
  }
  open_standard_files();
  ::prctl(PR_SET_DUMPABLE, 0);  // no submission may read this process, whatever its uid
  ::signal(SIGPIPE, SIG_IGN);   // a closed pipe is an error of the write, which loses no result
  ::signal(SIGXFSZ, SIG_IGN);   // so is a file that would become too large
  give_back_freed_memory();
  try {
    stop_on_signals();
    return cli::after_output(parse_and_run(argc, argv));
  } catch (const Stopped&) {
    return 128 + stop_signal();
  } catch (const std::exception& fault) {
    return failed(fault);
  }
}
