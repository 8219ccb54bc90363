// assay doctor: what this machine can run, and why not the rest.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/harness.h"
#include "measure/machine.h"
#include "run/worker_process.h"
#include "sandbox/worker_image.h"
#include "util/files.h"

namespace assay::cli {
namespace {

struct Finding {
  std::string name, value;
  bool good = true;
};

void examine_isolation(const sandbox::TierReport& tier, std::vector<Finding>& findings) {
  findings.push_back({"isolation", to_string(tier.tier), tier.tier != sandbox::Tier::none});
  if (!tier.why_not_namespaces.empty()) {
    findings.push_back({"namespaces", "not usable: " + tier.why_not_namespaces, false});
  }
  if (!tier.why_not_landlock.empty()) {
    findings.push_back({"landlock", "not usable: " + tier.why_not_landlock, false});
  }
  const auto contained = std::count_if(tier.probes.begin(), tier.probes.end(),
                                       [](const auto& p) { return p.contained; });
  findings.push_back({"escape attempts",
                      fmt::format("{} of {} contained", contained, tier.probes.size()),
                      contained == static_cast<std::ptrdiff_t>(tier.probes.size())});
}

void examine_compiler(const Context& context, sandbox::Tier tier, std::vector<Finding>& findings) {
  try {
    Builder builder(tier, context.root, context.cache);
    BuildRequest request;
    request.sources = {
        {"submission.cpp", "#include <vector>\nextern \"C\" int f() { return 0; }\n"}};
    const BuildResult result = builder.build(request);
    findings.push_back(
        {"compiler", fmt::format("{} ({})", builder.compiler_version(), builder.compiler())});
    const bool works = result.record.verdict == Verdict::ok;
    findings.push_back({"compiler in the sandbox", works ? "works" : result.record.log, works});
  } catch (const Error& e) {
    findings.push_back({"compiler", e.what(), false});
  }
}

void examine_cuda(const Context& context, sandbox::Tier tier, std::vector<Finding>& findings) {
  try {
    Builder builder(tier, context.root, context.cache);
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
    const BuildResult result = builder.build(request);
    const bool works = result.record.verdict == Verdict::ok;
    findings.push_back({"nvcc in the sandbox", works ? "works" : result.record.log, works});
    findings.push_back(
        {"CUDA device", "simulated: kernels run on the processor, exactly but not fast"});
  } catch (const Error& e) {
    findings.push_back({"CUDA", e.what(), false});
  }
}

void examine_machine(std::vector<Finding>& findings) {
  Machine machine = describe_machine("");
  calibrate(machine);
  findings.push_back({"processor", fmt::format("{}, {} cores", machine.cpu, machine.cores)});
  findings.push_back({"memory", fmt::format("{:.1f} GiB, copy {:.1f} GB/s",
                                            static_cast<double>(machine.memory_bytes) / (1 << 30),
                                            machine.copy_bytes_per_s / 1e9)});
  findings.push_back({"fp32", fmt::format("{:.0f} GFLOP/s", machine.fma_flops_per_s / 1e9)});
  findings.push_back({"system", machine.os + ", Linux " + machine.kernel});
  if (machine.cores < 2) {
    findings.push_back({"cores", "one core only: timings of threaded code say little", false});
  }
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("doctor", "What this machine can run, and why not the rest");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->footer(
      "\nTries real escapes from the sandbox, compiles a line in it, and measures the machine. "
      "Takes\n"
      "some seconds and changes nothing but the cache. A line that begins with BAD says what does\n"
      "not work and why.\n"
      "\nExit status: 0 submissions can be run here, 1 they cannot, 2 another error.\n"
      "\nExamples:\n"
      "  assay doctor\n"
      "  assay doctor --json\n");
  command->callback([&action, json] {
    action = [json](const Context& context) {
      std::vector<Finding> findings;
      const sandbox::TierReport tier = sandbox::find_tier(sandbox::worker_image_fd());
      examine_isolation(tier, findings);
      examine_compiler(context, tier.tier, findings);
      examine_machine(findings);
      examine_cuda(context, tier.tier, findings);
      if (*json) {
        nlohmann::ordered_json document = nlohmann::ordered_json::array();
        for (const auto& f : findings) {
          document.push_back({{"name", f.name}, {"value", f.value}, {"good", f.good}});
        }
        fmt::print("{}\n", document.dump(1));
      } else {
        for (const auto& f : findings) {
          fmt::print("{} {:<24} {}\n", f.good ? "ok  " : "BAD ", f.name, f.value);
        }
      }
      const bool usable = tier.tier != sandbox::Tier::none;
      return usable ? kDone : kCheckFailed;
    };
  });
}

}  // namespace assay::cli
