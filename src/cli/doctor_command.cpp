// assay doctor: reports what this machine can run, and why it cannot run the rest.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "assay/error.h"
#include "build/target.h"
#include "cli/diagnosis.h"
#include "cli/gpu_diagnosis.h"
#include "cli/harness.h"
#include "cli/real_gpu.h"
#include "measure/machine.h"
#include "processes/memory_watch.h"
#include "report/figures.h"
#include "sandbox/memory_group.h"
#include "sandbox/worker_image.h"
#include "util/files.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::cli {
namespace {

using State = Diagnosis::State;

void examine_isolation(const sandbox::TierReport& tier, std::vector<Diagnosis>& findings) {
  const State weaker = tier.tier == sandbox::Tier::none ? State::bad : State::note;
  findings.push_back({"isolation", to_string(tier.tier),
                      tier.tier == sandbox::Tier::none ? State::bad : State::ok});
  if (!tier.why_not_namespaces.empty()) {
    findings.push_back({"namespaces", "not usable: " + tier.why_not_namespaces, weaker});
  }
  if (!tier.why_not_landlock.empty()) {
    findings.push_back({"landlock", "not usable: " + tier.why_not_landlock, weaker});
  }
  const auto contained = std::count_if(tier.probes.begin(), tier.probes.end(),
                                       [](const auto& p) { return p.contained; });
  const bool all = contained == static_cast<std::ptrdiff_t>(tier.probes.size());
  findings.push_back({"escape attempts",
                      fmt::format("{} of {} contained", contained, tier.probes.size()),
                      all ? State::ok : State::bad});
}

// Everything runs without cgroups too. But then a memory bomb gets RE instead of MLE, and memory
// that a submission maps in place of its buffers is not seen.
void examine_memory(std::vector<Diagnosis>& findings) {
  if (processes::MemoryWatch::works()) {
    findings.push_back({"peaks of memory", "to the page, within calls too"});
  } else {
    findings.push_back({"peaks of memory",
                        "in batches of pages: the kernel hands over no system calls, or does not "
                        "tell a worker's pages, so some hundred KiB that a call gives back can "
                        "hide",
                        State::note});
  }
  const sandbox::MemoryGroups& groups = sandbox::memory_groups();
  if (groups.version != 0) {
    findings.push_back({"memory of answers", fmt::format("cgroup version {}: {}", groups.version,
                                                         groups.folder.string())});
    return;
  }
  findings.push_back({"memory of answers",
                      fmt::format("limits on address space, resident pages: {}", groups.why_not),
                      State::note});
}

double gib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

void examine_compiler(Builder& builder, sandbox::Tier tier, std::vector<Diagnosis>& findings) {
  findings.push_back(
      {"compiler", fmt::format("{} ({})", builder.compiler_version(), builder.compiler())});
  try {
    builder.check();
    const bool confined = tier != sandbox::Tier::none;
    findings.push_back(
        {"compiler in the sandbox",
         confined ? "works, and the library loads" : "works, but there is no sandbox",
         confined ? State::ok : State::note});
  } catch (const Error& e) {
    findings.push_back({"compiler in the sandbox", e.what(), State::bad});
  }
}

void examine_cache(const BuildCache& cache, std::vector<Diagnosis>& findings) {
  const BuildCache::Usage usage = cache.usage();
  findings.push_back(
      {"cache", fmt::format("{}: {:.2f} of at most {:.2f} GiB, {} entries", cache.folder().string(),
                            gib(usage.bytes), gib(cache.limit()), usage.entries)});
  const std::filesystem::path workplace = cache.workplace().parent_path();
  if (workplace != std::filesystem::canonical(cache.folder())) {
    findings.push_back({"workplace",
                        fmt::format("{}: sandboxes cannot reach the cache", workplace.string()),
                        State::note});
  }
}

// Names the instruction sets beyond the architecture's baseline that submissions may use.
void examine_target(const Builder& builder, std::vector<Diagnosis>& findings) {
  constexpr std::array kTold{"SSE4_2",          "AVX2",     "FMA",      "AVX512F",
                             "AVX512BF16",      "AMX_TILE", "ARM_NEON", "ARM_FEATURE_SVE",
                             "ARM_FEATURE_BF16"};
  const std::set<std::string> sets = instruction_sets(builder.compiler(), builder.target());
  std::vector<std::string> told;
  for (const char* name : kTold) {
    if (sets.contains(name)) told.emplace_back(name);
  }
  findings.push_back({"target", fmt::format("{}: {}", builder.target(), fmt::join(told, ", "))});
}

void examine_cuda(Builder& builder, std::vector<Diagnosis>& findings) {
  const auto& toolkit = builder.cuda_toolkit();
  if (!toolkit) {
    findings.push_back({"CUDA", "no CUDA Toolkit (nvcc): submissions in CUDA are not run"});
    return;
  }
  findings.push_back({"CUDA", fmt::format("{} ({})", toolkit->version, toolkit->nvcc.string())});
  BuildRequest request;
  request.sources = {
      {"submission.cu", "__global__ void k() {}\nextern \"C\" void f() { k<<<1, 1>>>(); }\n"}};
  request.language = Language::cuda;
  request.time_limit_s = 120;
  try {
    const BuildResult result = builder.build(request);
    const bool works = result.record.verdict == Verdict::ok;
    findings.push_back({"nvcc in the sandbox", works ? "works" : result.record.log,
                        works ? State::ok : State::bad});
  } catch (const Error& e) {
    findings.push_back({"nvcc in the sandbox", e.what(), State::bad});
  }
  findings.push_back(
      {"CUDA device", "simulated: kernels run on the processor, exactly but not fast"});
}

// A missing GPU is no problem: CUDA submissions can be graded on the simulator.
void examine_gpus(const GpuChoice& choice, const std::string& nvcc,
                  std::vector<Diagnosis>& findings) {
  try {
    for (const processes::RealGpu& gpu : chosen_gpus(choice)) {
      const GpuMachine machine = processes::find_gpu(gpu, choice.management);
      std::ranges::move(gpu_diagnosis(machine, nvcc, ::geteuid() == 0),
                        std::back_inserter(findings));
    }
  } catch (const Error& e) {
    findings.push_back({"GPU", e.what()});
  }
}

// Returns the version of nvcc, "" if there is none.
std::string examine_builder(const Context& context, sandbox::Tier tier,
                            const HarnessOptions& options, std::vector<Diagnosis>& findings) {
  try {
    const std::unique_ptr<Builder> builder = make_builder(context, tier, options);
    examine_compiler(*builder, tier, findings);
    examine_target(*builder, findings);
    examine_cuda(*builder, findings);
    examine_cache(builder->cache(), findings);
    const auto& toolkit = builder->cuda_toolkit();
    return toolkit ? toolkit->version : "";
  } catch (const Error& e) {
    findings.push_back({"builder", e.what(), State::bad});
    return "";
  }
}

void examine_machine(std::vector<Diagnosis>& findings) {
  Machine machine = describe_machine("");
  calibrate(machine);
  findings.push_back({"processor", fmt::format("{}, {} cores", machine.cpu, machine.cores)});
  findings.push_back(
      {"memory", fmt::format("{:.1f} GiB, copy {:.1f} GB/s", gib(machine.memory_bytes),
                             machine.copy_bytes_per_s / 1e9)});
  findings.push_back({"fp32", fmt::format("{:.0f} GFLOP/s", machine.fma_flops_per_s / 1e9)});
  findings.push_back({"system", machine.os + ", Linux " + machine.kernel});
  if (machine.cores < 2) {
    findings.push_back(
        {"cores", "one core only: timings of threaded code say little", State::note});
  }
}

void print_json(const std::vector<Diagnosis>& findings) {
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const Diagnosis& f : findings) {
    document.push_back({{"name", f.name},
                        {"value", f.value},
                        {"good", f.state != State::bad},
                        {"note", f.state == State::note}});
  }
  fmt::print("{}\n", document.dump(1));
}

void print_text(const std::vector<Diagnosis>& findings) {
  constexpr const char* kWords[] = {"ok", "note", "BAD"};
  for (const Diagnosis& f : findings) {
    constexpr std::size_t kColumn = 30;  // of the value
    constexpr std::size_t kLongest = 2000;
    const std::string value = report::one_line(f.value.empty() ? "-" : f.value, kLongest);
    fmt::print("{:<4} {:<24} {}", kWords[static_cast<std::size_t>(f.state)], f.name,
               wrapped(value, kTerminalColumns - kColumn, std::string(kColumn, ' ')));
  }
}

int execute(const Context& context, const HarnessOptions& options, const GpuChoice& gpus,
            bool json) {
  std::vector<Diagnosis> findings;
  const sandbox::TierReport tier = sandbox::find_tier(sandbox::worker_image_fd());
  examine_isolation(tier, findings);
  examine_memory(findings);
  const std::string nvcc = examine_builder(context, tier.tier, options, findings);
  examine_machine(findings);
  examine_gpus(gpus, nvcc, findings);
  check_stop();  // a stop request also kills what was tried
  if (json) {
    print_json(findings);
  } else {
    print_text(findings);
  }
  const bool usable = std::ranges::none_of(
      findings, [](State state) { return state == State::bad; }, &Diagnosis::state);
  return usable ? kDone : kCheckFailed;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("doctor", "What this machine can run, and why not the rest");
  command->footer(
      R"(
Tries real escapes from the sandbox, compiles a line in it, and measures the machine and, if there
is one, its GPU. Takes some seconds and changes nothing but the cache.

ok: works. note: worth knowing, and everything can be run. BAD: something cannot be run here,
and the line says why.

Exit status: 0 submissions can be run here, 1 a line is BAD, 2 another error.

Examples:
  assay doctor
  assay doctor --json
)");
  auto json = std::make_shared<bool>(false);
  auto options = std::make_shared<HarnessOptions>();
  auto gpus = std::make_shared<GpuChoice>();
  command->add_flag("--json", *json, "print JSON");
  add_gpu_choice(*command, *gpus, true);
  add_cache_options(*command, *options);
  command->callback([&action, json, options, gpus] {
    action = [json, options, gpus](const Context& context) {
      return execute(context, *options, *gpus, *json);
    };
  });
}

}  // namespace assay::cli
