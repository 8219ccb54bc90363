#include "cli/outside_answer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "assay/error.h"
#include "cli/harness.h"
#include "submission/answer.h"
#include "util/text.h"

namespace assay::cli {

void add_outside_options(CLI::App& app, OutsideOptions& options, bool real_gpu) {
  app.add_option("PATH", options.path,
                 "an answer's folder, or a file that ends in .cpp, .cc or .cu")
      ->required();
  app.add_option("--challenge,-c", options.challenge,
                 "which it answers (default: from the folder's name or its functions)");
  add_device_option(app, options.device, real_gpu);
}

OutsideAnswer find_outside_answer(const Context& context, const OutsideOptions& options) {
  const std::filesystem::path path = options.path;
  OutsideAnswer found;
  found.answers = read_answers(path);
  if (options.challenge.empty()) {
    const std::vector<ChallengeSpec> specs = load_specs(context);
    const Recognised recognised = recognise_challenge(path, found.answers, specs);
    found.spec = spec_named(specs, recognised.challenge);
    found.known_by = recognised.how;
  } else {
    found.spec = load_specs(context, {options.challenge}).front();
    found.known_by = "as asked";
  }
  for (Submission& answer : found.answers) answer.challenge = found.spec.name;
  if (const std::optional<Device> device = device_from(options.device)) {
    for (Submission& answer : found.answers) answer.on_real_gpu = *device == Device::cuda;
    std::erase_if(found.answers, [&](const Submission& s) { return s.device() != *device; });
    if (found.answers.empty()) {
      throw Error(fmt::format("{} has no answer for the device {}: {} is not there",
                              printable(options.path, 1, 256), options.device,
                              main_file(*device == Device::cpu ? Language::cpp : Language::cuda)));
    }
  }
  return found;
}

}  // namespace assay::cli
