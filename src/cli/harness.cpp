#include "cli/harness.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "assay/error.h"
#include "assay/parallel.h"
#include "cases/challenge_registry.h"
#include "cli/output.h"
#include "measure/machine.h"
#include "sandbox/worker_image.h"
#include "util/files.h"
#include "util/process_limits.h"
#include "util/text.h"

namespace assay::cli {

void add_cache_options(CLI::App& app, HarnessOptions& options) {
  app.add_option("--cache", options.cache, "folder of what was compiled (default: CACHE)");
  app.add_option("--cache-limit", options.cache_limit,
                 "its size, such as 500M or 4G (the default): beyond it what was used least\n"
                 "recently goes")
      ->transform(CLI::Validator(
          [](std::string& text) {
            const std::string given = text;
            try {
              if (CLI::AsSizeValue(false)(text).empty()) return std::string();
            } catch (const CLI::ValidationError&) {  // of the unit, in words of its own
            }
            return fmt::format("'{}' is not a size, such as 500M or 4G", given);
          },
          ""))
      ->type_name("SIZE");
}

void add_harness_options(CLI::App& app, HarnessOptions& options) {
  app.add_flag("--unsafe", options.unsafe,
               "run submissions without isolation if none works here; rows say so");
  app.add_option("--march", options.target,
                 "the processor that C++ is compiled for, answers and what they are compared\n"
                 "with: what follows -march=, such as x86-64-v3; this machine must run it")
      ->capture_default_str();
  add_cache_options(app, options);
}

std::filesystem::path cache_folder(const Context& context, const HarnessOptions& options) {
  return options.cache.empty() ? context.cache : std::filesystem::path(options.cache);
}

std::unique_ptr<Builder> make_builder(const Context& context, sandbox::Tier tier,
                                      const HarnessOptions& options) {
  return std::make_unique<Builder>(tier, context.root, cache_folder(context, options),
                                   options.cache_limit, options.target);
}

void add_external_options(CLI::App& app, std::string& corpus) {
  app.add_option(
      "--corpus", corpus,
      "a text of yours: cases that train on real text run too and show their bits per byte\n"
      "beside a compressor's; no points hang on them");
}

void add_device_option(CLI::App& app, std::string& device, bool real_gpu) {
  std::vector<std::string> known{"auto", to_string(Device::cpu), to_string(Device::sim)};
  if (real_gpu) known.emplace_back(to_string(Device::cuda));
  app.add_option("--device", device,
                 real_gpu
                     ? "where kernels run: submission.cpp on the cpu, submission.cu on a "
                       "simulated GPU (sim)\nor on this machine's own (cuda); auto is cpu and sim"
                     : "where kernels run: submission.cpp on the cpu, submission.cu on a "
                       "simulated GPU (sim)")
      ->check(CLI::IsMember(known))
      ->capture_default_str();
}

void add_gpu_option(CLI::App& app, std::string& gpu) {
  app.add_option("--gpu", gpu,
                 "the GPU whose data sheet times what was simulated; modelled, never measured")
      ->check(CLI::IsMember(gpu_names()))
      ->capture_default_str();
}

ExternalFiles external_files(const std::string& corpus) {
  if (corpus.empty()) return {};
  read_file(corpus);  // fail now, naming the file, rather than in mid-run
  return {{"corpus", std::filesystem::absolute(corpus)}};
}

Harness set_up(const Context& context, const HarnessOptions& options, Trial trial) {
  Harness harness;
  raise_open_files();
  lift_memory_limit();
  harness.tier = sandbox::find_tier(sandbox::worker_image_fd());
  if (harness.tier.tier == sandbox::Tier::none && !options.unsafe) {
    throw Error(fmt::format(
        "no isolation works on this machine, and submissions are hostile code (namespaces: {}; "
        "landlock: {}): allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or a "
        "container with --security-opt seccomp=unconfined), use Linux 5.13 or later with Landlock, "
        "or insist with --unsafe",
        harness.tier.why_not_namespaces, harness.tier.why_not_landlock));
  }
  harness.builder = make_builder(context, harness.tier.tier, options);
  if (trial == Trial::at_once) harness.builder->check();
  harness.machine = describe_machine(harness.builder->compiler());
  return harness;
}

unsigned simulator_threads(std::size_t devices) {
  const auto cores = static_cast<std::size_t>(available_cores());
  return static_cast<unsigned>(std::max<std::size_t>(1, cores / std::max<std::size_t>(1, devices)));
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed)
    throw Error("the kernel gives no random seed");
  return seed;
}

std::vector<Submission> select_submissions(const std::filesystem::path& folder,
                                           const std::vector<ChallengeSpec>& specs,
                                           const std::vector<std::string>& models,
                                           std::optional<Device> device) {
  if (!std::filesystem::is_directory(folder)) {
    throw Error(
        fmt::format("no submissions folder {}: create it, with one folder per model and in it "
                    "one per challenge, or name another with --submissions",
                    folder.string()));
  }
  std::vector<std::string> challenges, warnings;
  for (const ChallengeRow& row : challenge_rows()) challenges.emplace_back(row.name);
  std::vector<Submission> all = find_submissions(folder, challenges, warnings);
  for (const std::string& warning : warnings) tell(fmt::format("warning: {}\n", warning));
  for (Submission& s : all) s.on_real_gpu = device == Device::cuda;
  std::erase_if(all, [&](const Submission& s) {
    return std::ranges::find(specs, s.challenge, &ChallengeSpec::name) == specs.end() ||
           (device && device != s.device());
  });
  if (models.empty()) return all;
  std::set<std::string> known;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) known.insert(entry.path().filename());
  }
  for (const std::string& model : models) {
    if (!known.contains(model)) {
      throw Error(unknown_name("model", model, {known.begin(), known.end()}));
    }
  }
  std::erase_if(all, [&](const Submission& s) {
    return std::find(models.begin(), models.end(), s.model) == models.end();
  });
  return all;
}

}  // namespace assay::cli
