// Setup shared by all commands that run submissions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "build/builder.h"
#include "cli/context.h"
#include "grade/gpu.h"
#include "sandbox/probe.h"
#include "spec/spec.h"
#include "submission/submission.h"

namespace assay::cli {

struct HarnessOptions {
  bool unsafe = false;  // run without isolation if none works
  std::string cache;    // folder of built submissions, "" for the context's
  std::uint64_t cache_limit = kDefaultCacheLimit;  // bytes
  std::string target = kNativeTarget;              // the target C++ is compiled for
};

struct Harness {
  sandbox::TierReport tier;
  std::unique_ptr<Builder> builder;
  Machine machine;
  std::string gpu = kDefaultGpu;  // used to model the time of simulated work
};

// Declares --cache and --cache-limit.
void add_cache_options(CLI::App&, HarnessOptions&);
// Declares --cache, --cache-limit, --march and --unsafe.
void add_harness_options(CLI::App&, HarnessOptions&);

// The folder that --cache names, or the context's.
std::filesystem::path cache_folder(const Context&, const HarnessOptions&);

// The builder that the options ask for.
std::unique_ptr<Builder> make_builder(const Context&, sandbox::Tier, const HarnessOptions&);

// Declares --corpus.
void add_external_options(CLI::App&, std::string& corpus);
// The file that --corpus names, as an absolute path; throws Error if it cannot be read.
ExternalFiles external_files(const std::string& corpus);

// Whether set_up() compiles and loads a line of C++ to verify that both work here. A command that
// must be quick does so only if an answer does not build: Builder::check().
enum class Trial : std::uint8_t { at_once, later };

// Determines the isolation tier, the compiler and the machine's data. Before any long work, throws
// a one-line Error if no isolation works and the user did not pass --unsafe, or if compiling or
// loading in the sandbox does not work.
Harness set_up(const Context&, const HarnessOptions&, Trial = Trial::at_once);

// Threads for each simulated device if `devices` of them run in parallel.
unsigned simulator_threads(std::size_t devices);

// 64 random bits from the kernel.
std::uint64_t random_seed();

// Declares --device: auto, cpu or sim; with `real_gpu` also cuda, the machine's real GPU.
void add_device_option(CLI::App&, std::string& device, bool real_gpu = false);

// Declares --gpu: one of gpu_names().
void add_gpu_option(CLI::App&, std::string& gpu);

// The submissions to run: all, or those of the named models; for one device or, if none is given,
// for the CPU and the simulated GPU. Throws Error for an unknown name, suggesting the nearest one.
// Warnings go to stderr.
std::vector<Submission> select_submissions(const std::filesystem::path& folder,
                                           const std::vector<ChallengeSpec>& specs,
                                           const std::vector<std::string>& models,
                                           std::optional<Device> device);

}  // namespace assay::cli
