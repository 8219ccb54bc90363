// What comes between an answer's launches on a real GPU and the measured time: empty kernels
// launched through the sandbox, the link and the process of the GPU, compared in turns with the
// same launches by the driver in this process.
//
//   driver          launched one after another between two events, as a program does
//   driver, held    the same, but the stream waits until all are queued
//   through assay   as an answer's timed phase: what a score is made of
//   until done      the wall-clock time of that phase by the worker's clock, in which nothing is
//                   graded
//
// Build: ninja -C build gpu_link. Usage: gpu_link --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/error.h"
#include "bare_driver.h"
#include "cases/execute.h"
#include "cells/examples.h"
#include "cells/run_options.h"
#include "cli/context.h"
#include "cli/harness.h"
#include "cli/real_gpu.h"
#include "measure/statistics.h"
#include "support/paths.h"

namespace {

using namespace assay;

struct Options {
  cli::GpuChoice gpu;
  bool smoke = false;

  int turns() const { return smoke ? 1 : 21; }
  std::vector<int> launches() const {
    return smoke ? std::vector{1, 4} : std::vector{1, 10, 100, 300};
  }
};

constexpr char kAnswer[] = R"(
#include <cstddef>
#include <cstdint>

#include "abi.h"

namespace {
__global__ void nothing() {}
int launch(assay_ctx* ctx, std::int64_t times) {
  for (std::int64_t i = 0; i < times; ++i)
    nothing<<<1, 32, 0, static_cast<cudaStream_t>(ctx->stream)>>>();
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
}  // namespace
extern "C" std::size_t ln_cache_bytes(const ln_params*) { return 8; }
extern "C" int ln_forward(assay_ctx* ctx, const ln_params*, const void*, const float*, const float*,
                          void*, void*) {
  return launch(ctx, 1);
}
extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void*, const void*,
                           const float*, const void*, void*, float*, float*) {
  return launch(ctx, p->rows);
}
)";

// An answer to layer norm backward that launches as many empty kernels as there are rows.
class ThroughAssay {
 public:
  ThroughAssay(const cases::World& world, const cells::RunOptions& options,
               const ChallengeSpec& spec, const std::filesystem::path& library, int launches)
      : world_(world), case_(*find_case(spec, "time_8192x768")) {
    case_.params.merge_patch({{"rows", launches}, {"D", 1}});
    const Challenge& challenge = *world.challenge(spec.name).challenge;
    planned_ = cases::plan_case(challenge, case_, processes::Memory::device);
    input_.emplace("input", planned_.layout.input_bytes, processes::Arena::Access::worker_reads);
    device_.emplace("device arena", planned_.layout.device_bytes + processes::kCallbackPayload,
                    processes::Arena::Access::worker_writes);
    drawn_.emplace(challenge, planned_, input_->data(), device_->data());
    drawn_->draw(1);
    processes::WorkerSettings settings = cells::gpu_settings(world, options, spec, library);
    settings.give_device_memory(planned_.layout.device_bytes);
    worker_ = world.make_worker(settings, *input_, planned_.layout.output_bytes, &*device_);
    const processes::Outcome loaded = worker_->load();
    if (loaded.verdict != Verdict::ok) throw Error("loading the answer: " + loaded.detail);
    seconds();  // the first launch of a kernel is not held
  }

  double seconds() {
    cases::TimeAccount account;
    cases::ExecuteOptions options;
    options.case_id = options.poison_seed = ++runs_;
    options.judge = false;
    cases::Trace trace;
    const CaseResult run = cases::execute(world_, *worker_, *drawn_, options, account, &trace);
    if (run.verdict != Verdict::ok) throw Error("running the answer: " + run.detail);
    wall_ = account.submission - trace.before_s;
    return run.seconds;
  }
  double wall_seconds() const { return wall_; }  // of the last run

 private:
  const cases::World& world_;
  CaseSpec case_;
  cases::PlannedCase planned_;
  std::optional<processes::Arena> input_, device_;
  std::optional<cases::CaseInput> drawn_;
  std::unique_ptr<processes::Worker> worker_;
  std::uint64_t runs_ = 0;
  double wall_ = 0;
};

constexpr int kSkipped = 77;

int measure(const Options& options) {
  const cli::Context context = cli::find_context(assay::testing::source_dir());
  cli::Harness harness = cli::set_up(context, {});
  if (options.smoke && !harness.builder->cuda_toolkit()) return kSkipped;
  const cli::Place place = cli::place_on(Device::cuda, harness, options.gpu, "");
  const ChallengeSpec spec = cli::load_specs(context, {"layer_norm_backward"}).front();
  const cells::RunOptions run{harness.tier.tier, 1, {}, 1, place.gpu};
  const BuildResult built =
      place.world.compile({.sources = {{"submission.cu", kAnswer}},
                           .headers = {cells::challenge_file(spec, "abi.h")},
                           .time_limit_s = cells::build_limit(spec, Language::cuda),
                           .language = Language::cuda,
                           .machine_code = true});
  if (built.record.verdict != Verdict::ok) throw Error(built.record.log);
  // The bare driver is loaded into this process, and has to use the same GPU.
  if (!place.gpu->visible.empty()) ::setenv("CUDA_VISIBLE_DEVICES", place.gpu->visible.c_str(), 1);
  if (!place.gpu->order.empty()) ::setenv("CUDA_DEVICE_ORDER", place.gpu->order.c_str(), 1);
  BareDriver bare(place.gpu->driver);
  fmt::print("{}, microseconds a launch of an empty kernel, medians of {} turns\n",
             harness.machine.gpu->name, options.turns());
  fmt::print("{:>8} {:>10} {:>14} {:>15} {:>12} {:>22}\n", "launches", "driver", "driver, held",
             "through assay", "until done", "through assay / held");
  for (const int launches : options.launches()) {
    ThroughAssay through(place.world, run, spec, built.library, launches);
    std::vector<double> plain, held, assay, wall;
    for (int i = 0; i < options.turns(); ++i) {
      plain.push_back(bare.seconds(launches, false));
      held.push_back(bare.seconds(launches, true));
      assay.push_back(through.seconds());
      wall.push_back(through.wall_seconds());
    }
    const double each = 1e6 / launches, of_held = median(held);
    fmt::print("{:>8} {:>10.2f} {:>14.2f} {:>15.2f} {:>12.2f} {:>22.2f}\n", launches,
               each * median(plain), each * of_held, each * median(assay), each * median(wall),
               median(assay) / of_held);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Empty kernels through the link beside the bare driver, on a real GPU"};
  cli::add_gpu_choice(app, options.gpu);
  app.add_flag("--smoke", options.smoke, "Only show that it works: few launches and turns");
  CLI11_PARSE(app, argc, argv);
  try {
    return measure(options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "gpu_link: {}\n", e.what());
    return 2;
  }
}
