#include "cells/test_setting.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "cells/examples.h"
#include "cells/test_library.h"
#include "processes/device_report.h"
#include "util/files.h"

namespace assay::cells {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPar = "par";

std::vector<TestSubject> baselines(const ChallengeSpec& spec, Language language) {
  if (language == Language::cpp) {
    return {{"naive", baseline_file(spec, "naive.cpp"), true, language},
            {kPar, baseline_file(spec, "par.cpp"), true, language}};
  }
  std::vector<TestSubject> found{{"naive", baseline_file(spec, "naive.cu"), true, language}};
  const fs::path kernel = kernel_path(spec);
  if (fs::exists(kernel))
    found.push_back({kPar, {kernel.filename(), read_file(kernel)}, true, language});
  return found;
}

}  // namespace

std::vector<TestSubject> test_subjects(const ChallengeSpec& spec, Language language) {
  std::vector<TestSubject> subjects = baselines(spec, language);
  for (const Example& example : load_examples(spec, language)) {
    const bool correct = example.kind == Example::Kind::slow;
    if (correct || (example.kind == Example::Kind::wrong && breaks_what_is_required(spec, example)))
      subjects.push_back({example.name, example.source, correct, language});
  }
  return subjects;
}

BuildRequest subject_request(const ChallengeSpec& spec, const TestSubject& subject) {
  const bool cuda = subject.language == Language::cuda;
  return {.sources = {{cuda ? "implementation.cu" : "implementation.cpp", subject.source.contents}},
          .headers = cuda && subject.name == kPar ? kernel_headers(spec)
                                                  : example_headers(spec, subject.language),
          .time_limit_s = build_limit(spec, subject.language),
          .language = subject.language,
          .assembly = true};
}

BuildRequest tests_request(const ChallengeSpec& spec, Language language,
                           const std::string& source) {
  return {.sources = {{tests_file(language), source}},
          .headers = {challenge_file(spec, "abi.h")},
          .time_limit_s = build_limit(spec, language),
          .language = language,
          .object = language == Language::cuda,
          .assembly = language == Language::cpp};
}

BuildRequest local_tests_request(const ChallengeSpec& spec, std::string_view assembly) {
  std::vector<std::string> shared = abi_functions(spec);
  shared.emplace_back(kSelfTest);
  return {.sources = {{"test.s", with_local_names(assembly, shared)}},
          .headers = {},
          .time_limit_s = spec.limits.build_time_s,
          .object = true};
}

BuildRequest checked_tests_request(const ChallengeSpec& spec, Language language,
                                   const fs::path& tests, std::vector<std::string> reserved) {
  return {.sources = {{"nothing.s", "\t.text\n"}},
          .headers = {},
          .time_limit_s = spec.limits.build_time_s,
          .language = language,
          .object = true,
          .objects = {tests},
          .reserved = std::move(reserved)};
}

BuildRequest library_request(const ChallengeSpec& spec, Language language,
                             std::string switchboard) {
  return {.sources = {{"switchboard.s", std::move(switchboard)}},
          .headers = {},
          .time_limit_s = spec.limits.build_time_s,
          .language = language};
}

processes::Outcome try_tests(const cases::World& world, const processes::WorkerSettings& settings) {
  constexpr std::size_t kArena = 16384;
  const bool cuda = settings.device.has_value();
  processes::Arena input("input", kArena, processes::Arena::Access::worker_reads);
  std::optional<processes::Arena> device;
  if (cuda)
    device.emplace("device arena", kArena + processes::kCallbackPayload,
                   processes::Arena::Access::worker_writes);
  const auto worker = world.make_worker(settings, input, 4096, device ? &*device : nullptr);
  if (processes::Outcome loaded = worker->load(); loaded.verdict != Verdict::ok) return loaded;
  processes::Outcome outcome =
      worker->self_test(cuda ? kCudaTryLimit : kTryLimit, kTryInstructions);
  if (!outcome.device) return outcome;
  if (const auto failure = processes::device_failure(*outcome.device)) {
    outcome.verdict = failure->verdict;
    outcome.detail = failure->detail;
  }
  return outcome;
}

}  // namespace assay::cells
