// What every command that runs submissions sets up first.
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
  bool unsafe = false;  // run without isolation where none works
  std::string cache;    // folder of built submissions, "" for the context's
  std::uint64_t cache_limit = kDefaultCacheLimit;  // bytes
  std::string target = kNativeTarget;              // that C++ is compiled for
};

struct Harness {
  sandbox::TierReport tier;
  std::unique_ptr<Builder> builder;
  Machine machine;
  std::string gpu = kDefaultGpu;  // whose model times what was simulated
};

// Declares --cache and --cache-limit.
void add_cache_options(CLI::App&, HarnessOptions&);
// Declares these, --march and --unsafe.
void add_harness_options(CLI::App&, HarnessOptions&);

// The builder that the options ask for.
std::unique_ptr<Builder> make_builder(const Context&, sandbox::Tier, const HarnessOptions&);

// Declares --corpus.
void add_external_options(CLI::App&, std::string& corpus);
// What it names, absolute; throws Error when it cannot be read.
ExternalFiles external_files(const std::string& corpus);

// Whether set_up() compiles and loads a line of C++ to see that both work here. A command that must
// be quick does so only when an answer does not build: Builder::check().
enum class Trial : std::uint8_t { at_once, later };

// Finds the isolation tier, the compiler and the machine's figures. Throws Error, in one line and
// before anything long is done, when no isolation works and the user did not insist, or when what
// is compiled or loaded in it does not work.
Harness set_up(const Context&, const HarnessOptions&, Trial = Trial::at_once);

// Threads for each simulated device when so many run beside each other.
unsigned simulator_threads(std::size_t devices);

// 64 bits from the kernel.
std::uint64_t random_seed();

// Declares --device: auto, cpu or sim; with `real_gpu` also cuda, the machine's own.
void add_device_option(CLI::App&, std::string& device, bool real_gpu = false);

// Declares --gpu: one of gpu_names().
void add_gpu_option(CLI::App&, std::string& gpu);

// The submissions to run: all or those of the named models, of one device or, where none is given,
// of the CPU and the simulated GPU. An unknown name throws Error with the nearest one. Warnings go
// to stderr.
std::vector<Submission> select_submissions(const std::filesystem::path& folder,
                                           const std::vector<ChallengeSpec>& specs,
                                           const std::vector<std::string>& models,
                                           std::optional<Device> device);

}  // namespace assay::cli
