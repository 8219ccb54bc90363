// assay sim: runs a CUDA program on the simulated device.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "assay/parallel.h"
#include "cli/annotated_source.h"
#include "cli/context.h"
#include "cli/harness.h"
#include "cli/nvcc.h"
#include "cli/output.h"
#include "cli/sim_report.h"
#include "util/files.h"
#include "util/temporary_folder.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct SimOptions {
  std::vector<std::string> programs, arguments, nvcc_flags;
  std::string arch = "sm_80";
  unsigned threads = static_cast<unsigned>(available_cores());
  std::uint64_t seed = 0;
  bool no_races = false, json = false, profile = false, source = false;
  std::string gpu = kDefaultGpu;
  HarnessOptions harness;  // its cache
};

SimulatedProgram program_of(const SimOptions& o, CudaLibraries libraries) {
  SimulatedProgram program;
  program.libraries = std::move(libraries);
  program.arguments = {fs::path(o.programs.front()).replace_extension().string()};
  program.arguments.insert(program.arguments.end(), o.arguments.begin(), o.arguments.end());
  program.device.threads = o.threads;
  program.device.shuffle_seed = o.seed;
  program.device.check_races = !o.no_races;
  program.device.locate_replays = true;
  program.device.count_lines = o.source;
  program.stdout_to_stderr = o.json;
  return program;
}

int simulate(const Context& context, const SimOptions& o) {
  const TemporaryFolder folder("assay-sim-");
  BuildCache cache(sandbox::Tier::none, cache_folder(context, o.harness), o.harness.cache_limit);
  ObjectCache objects(cache);
  CudaBuild build;
  build.sources.assign(o.programs.begin(), o.programs.end());
  build.architecture = o.arch;
  build.flags = o.nvcc_flags;
  const CudaLibraries libraries = compile(find_nvcc(), build, folder.path(), objects);
  const SimulatedRun run = run_simulated(program_of(o, libraries));
  const Gpu* const model = o.profile ? &gpu_named(o.gpu) : nullptr;
  if (o.json) {
    fmt::print("{}", sim_json(run, model));
  } else {
    tell(sim_text(run, model));
    if (o.source) tell(annotated_sources(run.summary, build.sources));
  }
  return exit_status(run);
}

}  // namespace

void add_sim(CLI::App& app, Action& action, std::vector<std::string> program_arguments) {
  auto* command = app.add_subcommand("sim", "Run a CUDA program on a simulated GPU");
  auto options = std::make_shared<SimOptions>();
  options->arguments = std::move(program_arguments);
  command
      ->add_option("PROGRAM", options->programs,
                   ".cu files with a main, and C++ files that go with them")
      ->required();
  command
      ->add_option(
          "--arch", options->arch,
          "what nvcc compiles for: sm_80, sm_90, or sm_90a for wgmma; the device is an sm_90")
      ->check(CLI::IsMember({"sm_80", "sm_90", "sm_90a"}))
      ->capture_default_str();
  command
      ->add_option("--threads", options->threads,
                   "host threads; results and counters do not depend on it (default: one a core)")
      ->check(CLI::Range(1, 1024));
  command->add_option(
      "--seed", options->seed,
      "run blocks and warps in an order drawn from this number; 0: in their own order");
  command->add_flag("--no-races", options->no_races, "do not look for races; faster");
  command->add_flag(
      "--json", options->json,
      "print counters and findings as JSON on stdout; the program's own output goes to stderr");
  command->add_flag("--profile", options->profile,
                    "a second table: for each kernel the modelled time and what bounds it");
  command->add_flag("--source", options->source,
                    "the sources, with what each line executed and what was found there");
  add_gpu_option(*command, options->gpu);
  command->add_option("--nvcc-flag", options->nvcc_flags, "a further argument for nvcc; repeatable")
      ->allow_extra_args(false);
  add_cache_options(*command, options->harness);
  command->footer(
      R"(
The program is compiled with nvcc (release 13; no GPU or driver is needed) and runs with your
rights, like any program that you start. What was compiled is kept, and compiled again when a file
that it was made from changes. The kernels' PTX is executed exactly, thread by thread:
every access is checked for bounds, alignment, initialised memory and races, and counted. At the
end a table on stderr shows for each kernel
  instructions     of warps; one that no lane executes counts too
  lanes active     of 32, on average: below 100 % the warps diverged
  sectors          pieces of 32 bytes that were moved: 32 sectors for 1024 bytes is perfect
  shared passes    over shared memory; replays are those due to bank conflicts
with --profile a second one
  modelled         time by the rules of docs/simulator.md, and the price that bounds it
  reads, writes    bytes asked for, of the bytes of the sectors that were moved for them
  local            bytes of threads' arrays in local memory; registers that ptxas spills are not
                   known
  warps resident   of the 64 that a multiprocessor holds, and what limits them; registers are
                   estimated
then the source lines that most replays are due to, and every finding. A fault ends its kernel,
and the program sees CUDA's error code. With --source the sources follow; before each line stand
  instructions     of warps, and their share of all; code inlined from CUDA's headers counts for
                   the line that calls it, and a kernel that failed is not counted
  lanes, replays   as above, of the line

Times are not simulated: cudaEventElapsedTime is derived from counted work, and says nothing
about a GPU. Not simulated either: surfaces, dynamic parallelism, cuBLAS and other libraries with
kernels of their own. With --nvcc-flag=-rdc=true the device code of several files is linked.

Exit status: the program's own (128 + N if signal N ended it); 3 if there are findings; 2 if it
did not compile or start, or needs what is not simulated.

Examples:
  assay sim softmax.cu
  assay sim --seed 7 softmax.cu           races and order: does the result depend on it?
  assay sim --nvcc-flag=-Iinclude main.cu kernels.cu -- --size 1024
  assay sim --profile --gpu a100 softmax.cu
  assay sim --source softmax.cu 2>&1 | less
  assay sim --json softmax.cu 2>/dev/null | python3 -m json.tool
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return simulate(context, *options); };
  });
}

}  // namespace assay::cli
