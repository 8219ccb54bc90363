#include "cells/dispute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cases/case_runner.h"
#include "cases/given_inputs.h"
#include "cells/examples.h"
#include "cells/recorded_calls.h"
#include "util/text.h"
#include "util/transient_fault.h"

namespace assay {
extern const std::string_view kWitnessHeader;
}

namespace assay::cells {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kRecordBytes = 64u << 20;
constexpr double kRecordingLimit = 120, kReplayLimit = 60;  // seconds
constexpr const char* kWitness = "worker/witness.cpp";

// Declares how witness.cpp calls the implementation; functions it lacks return ASSAY_ENOTSUP.
std::string implementation_header(const std::vector<std::string>& functions, const TestSlot& slot) {
  std::string text = "#pragma once\n#include \"abi.h\"\n";
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::string name = slot.prefix + "_" + functions[i];
    text +=
        slot.has[i]
            ? fmt::format("extern \"C\" [[gnu::visibility(\"hidden\")]] decltype({}) {};\n",
                          functions[i], name)
            : fmt::format("constexpr auto {} = [](auto...) {{ return ASSAY_ENOTSUP; }};\n", name);
  }
  return text + fmt::format("#define ASSAY_IMPLEMENTATION(name) {}_##name\n", slot.prefix);
}

BuildResult build_recorder(const cases::World& world, const ChallengeSpec& spec,
                           const fs::path& tests, const SubjectBuild& build) {
  const std::vector<std::string> functions = abi_functions(spec);
  std::vector<std::string> exports = functions;
  exports.insert(exports.end(), {kSelfTest, "assay_witness"});
  return world.compile(
      {.sources = {challenge_file(spec, kWitness)},
       .headers = {challenge_file(spec, "abi.h"),
                   challenge_file(spec, "worker/call.h"),
                   {"implementation.h", implementation_header(functions, build.slots[0])},
                   {"assay/witness.h", std::string(kWitnessHeader)}},
       .time_limit_s = spec.limits.build_time_s,
       .objects = {tests, build.objects[0]},
       .exports = std::move(exports)});
}

Recording record(const cases::World& world, processes::WorkerSettings settings,
                 const fs::path& library) {
  settings.library = library;
  processes::Arena input("input", 4096 * 4, processes::Arena::Access::worker_reads);
  const auto worker = world.make_worker(settings, input, kRecordBytes, nullptr);
  std::memset(worker->output(), 0, kRecordBytes);  // charge it to the harness, not the tests
  if (worker->load().verdict == Verdict::ok) worker->self_test(kRecordingLimit, kInstructionLimit);
  return read_recording({worker->output(), kRecordBytes});
}

// One implementation, called as a submission is.
class Replay {
 public:
  Replay(const cases::World& world, const ChallengeSpec& spec,
         const processes::WorkerSettings& settings, const cases::GivenInputs& given,
         const TestSubject& subject)
      : world_(world), spec_(spec), settings_(settings), given_(given), subject_(subject) {}

  // Any verdict but ok or wrong_answer says nothing about the implementation.
  CaseResult run(const CaseSpec& spec) {
    constexpr std::uint64_t kSeed = 1;
    CaseResult result = runner().run(spec, kSeed).result;
    if (result.verdict == Verdict::runtime_error) result.verdict = Verdict::wrong_answer;
    return result;
  }
  const std::string& name() const { return subject_.name; }

 private:
  cases::CaseRunner& runner() {
    if (!runner_) {
      const BuildResult built =
          world_.compile({.sources = {{"implementation.cpp", subject_.source.contents}},
                          .headers = example_headers(spec_),
                          .time_limit_s = spec_.limits.build_time_s});
      if (built.record.verdict != Verdict::ok)
        throw Error(fmt::format("{} of {}: {}:\n{}", subject_.name, spec_.name,
                                description(built.record.verdict), built.record.log));
      settings_.library = built.library;
      runner_.emplace(cases::Bench{world_, given_, settings_, 0, account_}, false);
    }
    return *runner_;
  }

  const cases::World& world_;
  const ChallengeSpec& spec_;
  processes::WorkerSettings settings_;
  const cases::GivenInputs& given_;
  const TestSubject& subject_;
  cases::TimeAccount account_;
  std::optional<cases::CaseRunner> runner_;
};

struct Looked {
  std::size_t right = 0, unfit = 0, alone = 0;  // alone: no implementation passes there
};

std::string text_of(const Looked& looked, const Recording& recording) {
  const std::size_t seen = looked.right + looked.unfit + looked.alone;
  std::string text = fmt::format("right on {} of {} different calls that were recorded",
                                 looked.right, recording.calls.size());
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0) text += fmt::format("; {} {}", count, what);
  };
  add(looked.unfit, "could not be judged");
  add(looked.alone, "on which no implementation passes");
  add(recording.calls.size() - seen, "for which there was no time");
  add(recording.dropped, "found no room");
  add(recording.strange, "with arguments that no array can be read by");
  return text;
}

std::optional<CaseSpec> case_of(cases::GivenInputs& given, const RecordedCall& call) {
  try {
    return given.take(call);
  } catch (const TransientFault&) {
    throw;
  } catch (const std::exception&) {  // no record, however malformed, may end the ruling
    return std::nullopt;
  }
}

}  // namespace

Ruling settle_dispute(const cases::World& world, const ChallengeSpec& spec,
                      const processes::WorkerSettings& settings, const fs::path& tests,
                      const TestSubject& subject, const SubjectBuild& build,
                      const std::vector<TestSubject>& right) {
  using On = Ruling::On;
  if (subject.language == Language::cuda)
    return {On::nobody, "not put to the reference: calls on a device are not recorded"};
  std::error_code ec;
  if (!fs::exists(fs::path(spec.directory) / kWitness, ec))
    return {On::nobody, "not put to the reference: the challenge has no witness.cpp"};
  const BuildResult recorder = build_recorder(world, spec, tests, build);
  if (recorder.record.verdict != Verdict::ok)
    return {On::nobody, "not put to the reference: they do not build with the witness: " +
                            printable(recorder.record.log, 1)};
  const Recording recording = record(world, settings, recorder.library);

  cases::GivenInputs given(*world.challenge(spec.name).challenge);
  Replay accused(world, spec, settings, given, subject);
  std::vector<std::unique_ptr<Replay>> others;
  for (const TestSubject& other : right) {
    if (other.name != subject.name)
      others.push_back(std::make_unique<Replay>(world, spec, settings, given, other));
  }
  Looked looked;
  const double end = world.now() + kReplayLimit;
  for (const RecordedCall& call : recording.calls) {
    if (world.now() > end) break;
    const auto replayed = case_of(given, call);
    const CaseResult result = replayed ? accused.run(*replayed) : CaseResult{};
    if (!replayed || (result.verdict != Verdict::ok && result.verdict != Verdict::wrong_answer)) {
      ++looked.unfit;
    } else if (result.verdict == Verdict::ok) {
      ++looked.right;
    } else if (const auto other = std::ranges::find_if(
                   others, [&](auto& o) { return o->run(*replayed).verdict == Verdict::ok; });
               other == others.end()) {
      ++looked.alone;
    } else {
      return {On::implementation,
              fmt::format("{} of {} is wrong, and {} right, on {}: {}; {}; a call of params {}",
                          subject.name, spec.name, (*other)->name(), result.shape, result.detail,
                          cases::describe_inputs(given.plan(*replayed), call),
                          printable(replayed->params.dump(), 1, 300))};
    }
  }
  const std::string text = text_of(looked, recording);
  if (looked.right == 0) return {On::nobody, "the reference could not judge it: " + text};
  return {On::tests, "the reference finds it " + text};
}

}  // namespace assay::cells
