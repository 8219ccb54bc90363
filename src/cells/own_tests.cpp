#include "cells/own_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <numeric>
#include <set>
#include <system_error>

#include "assay/random.h"
#include "cells/device_code.h"
#include "cells/dispute.h"
#include "numerics/jobs.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::cells {
namespace fs = std::filesystem;
namespace {

// A number that nobody can predict.
std::uint64_t secret_number(const std::string& secret, const std::string& of) {
  return sha256_word(secret + "\n" + of);
}

// A temporary file that the sandbox can read; removed on destruction.
class TemporaryLibrary {
 public:
  TemporaryLibrary(const fs::path& beside, const std::string& contents) {
    static std::atomic<unsigned> next{0};
    path_ = beside.parent_path() / fmt::format("tests-{}.so", next++);
    write_file_alone(path_, contents);
    std::error_code ec;
    fs::permissions(path_, fs::perms(0644), ec);
  }
  TemporaryLibrary(const TemporaryLibrary&) = delete;
  ~TemporaryLibrary() {
    std::error_code ec;
    fs::remove(path_, ec);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The library that holds the tests and all twins, two for each subject that was built.
class Subjects {
 public:
  Subjects(const cases::World& world, const ChallengeSpec& spec, Language language,
           const processes::WorkerSettings& settings, std::size_t jobs)
      : world_(world),
        spec_(spec),
        language_(language),
        settings_(settings),
        subjects_(test_subjects(spec, language)) {
    builds_.resize(subjects_.size());
    for_each_job(subjects_.size(), jobs,
                 [&](std::size_t i) { builds_[i] = build_subject(world, spec, subjects_[i]); });
  }

  std::size_t size() const { return subjects_.size(); }
  Mutant about(std::size_t i) const {
    return {.subject = subjects_[i].name, .correct = subjects_[i].correct};
  }
  const TestSubject& subject(std::size_t i) const { return subjects_[i]; }
  const SubjectBuild& build(std::size_t i) const { return builds_[i]; }
  std::vector<TestSubject> right() const {
    std::vector<TestSubject> found;
    std::ranges::copy_if(subjects_, std::back_inserter(found), &TestSubject::correct);
    return found;
  }
  // The record says ok, or why the subject was not built.
  const BuildRecord& record(std::size_t i) const { return builds_[i].failed.record; }

  // Names of libraries that any of the subjects uses.
  std::vector<std::string> foreign() const {
    std::set<std::string> names;
    for (const SubjectBuild& build : builds_)
      names.insert(build.foreign.begin(), build.foreign.end());
    return {names.begin(), names.end()};
  }

  // The order of the twins is random, both in the table and in the library, where the tests are
  // placed among them.
  BuildResult link(const fs::path& tests, std::uint64_t seed) {
    Random random(seed);
    std::vector<fs::path> objects{tests};
    for (std::size_t i = 0; i < size(); ++i) {
      if (record(i).verdict != Verdict::ok) continue;
      for (std::size_t twin = 0; twin < 2; ++twin) {
        order_.emplace_back(i, twin);
        objects.push_back(builds_[i].objects[twin]);
      }
    }
    shuffle(order_, random);
    shuffle(objects, random);
    functions_ = abi_functions(spec_);
    mark_ = sha256_hex(fmt::format("mark {:x}", random.next()));
    std::vector<TestSlot> slots;
    for (const auto& [i, twin] : order_) slots.push_back(builds_[i].slots[twin]);
    std::vector<std::string> exports = functions_;
    exports.emplace_back(kSelfTest);
    BuildRequest request = library_request(spec_, language_, switchboard(functions_, slots, mark_));
    request.objects = std::move(objects);
    request.exports = std::move(exports);
    BuildResult linked = world_.compile(request);
    if (linked.record.verdict == Verdict::ok) {
      beside_ = linked.library;
      library_ = read_file(linked.library);
    }
    return linked;
  }

  processes::Outcome try_twin(std::size_t subject, std::size_t twin) const {
    const auto slot = std::ranges::find(order_, std::pair{subject, twin}) - order_.begin();
    const TemporaryLibrary library(beside_,
                                   switched(library_, mark_, functions_.size(), order_.size(),
                                            static_cast<std::size_t>(slot)));
    processes::WorkerSettings settings = settings_;
    settings.library = library.path();
    return try_tests(world_, settings);
  }

 private:
  const cases::World& world_;
  const ChallengeSpec& spec_;
  const Language language_;
  const processes::WorkerSettings& settings_;
  std::vector<TestSubject> subjects_;
  std::vector<SubjectBuild> builds_;
  std::vector<std::pair<std::size_t, std::size_t>> order_;  // subject and twin in each slot
  std::vector<std::string> functions_;
  std::string mark_, library_;
  fs::path beside_;
};

// The object of the tests, in which nothing takes the place of what implementations call: tests
// that define malloc, expf or cudaLaunchKernel would watch implementations from inside.
BuildResult isolated(const cases::World& world, const ChallengeSpec& spec, Language language,
                     BuildResult tests, std::vector<std::string> foreign) {
  const auto built = [&] { return tests.record.verdict == Verdict::ok; };
  if (built() && language == Language::cpp)
    tests = world.compile(local_tests_request(spec, read_file(tests.library)));
  if (built())
    tests = world.compile(checked_tests_request(spec, language, tests.library, std::move(foreign)));
  return tests;
}

bool accepts(const processes::Outcome& outcome) {
  return outcome.verdict == Verdict::ok && outcome.status == 0;
}

// An implementation that crashes under the tests counts as rejected.
std::string why_rejected(const processes::Outcome& outcome) {
  if (outcome.verdict != Verdict::ok) return outcome.detail;
  return fmt::format("returned {}{}", outcome.status, outcome.detail);
}

// Tests that draw random inputs may find a mistake in one run and miss it in another; such a
// difference does not count. But tests that tell twins apart every time go by what the twins are,
// not by what they do.
Mutant settle(const Subjects& subjects, std::size_t i, std::size_t accepted, Mutant mutant) {
  constexpr int kRepetitions = 3;
  for (int n = 0; n < kRepetitions; ++n) {
    if (!accepts(subjects.try_twin(i, accepted)) || accepts(subjects.try_twin(i, 1 - accepted))) {
      mutant.verdict = mutant.correct ? TestVerdict::rejected : TestVerdict::accepted;
      mutant.reason = "accepted in some runs only; " + mutant.reason;
      return mutant;
    }
  }
  mutant.verdict = TestVerdict::inconsistent;
  mutant.reason = "they accept one and reject another that does the same; " + mutant.reason;
  return mutant;
}

Mutant judge_tests(const Subjects& subjects, std::size_t i, std::size_t first_twin) {
  Mutant mutant = subjects.about(i);
  bool accepted[2] = {};
  for (const std::size_t twin : {first_twin, 1 - first_twin}) {
    const processes::Outcome outcome = subjects.try_twin(i, twin);
    mutant.seconds += outcome.seconds;
    accepted[twin] = accepts(outcome);
    if (!accepted[twin]) mutant.reason = why_rejected(outcome);
    // A mistake missed once counts as missed.
    if (accepted[twin] && !mutant.correct && twin == first_twin) {
      mutant.verdict = TestVerdict::accepted;
      return mutant;
    }
  }
  if (accepted[0] != accepted[1]) return settle(subjects, i, accepted[0] ? 0 : 1, mutant);
  mutant.verdict = accepted[0] ? TestVerdict::accepted : TestVerdict::rejected;
  return mutant;
}

// The tests that rejected it may be right: asks the reference.
void hear(const cases::World& world, const ChallengeSpec& spec,
          const processes::WorkerSettings& settings, const fs::path& tests,
          const Subjects& subjects, std::size_t i, Mutant& mutant) {
  const Ruling ruling = settle_dispute(world, spec, settings, tests, subjects.subject(i),
                                       subjects.build(i), subjects.right());
  if (ruling.against == Ruling::On::implementation) {
    mutant.verdict = TestVerdict::house_fault;
    mutant.reason = ruling.text + "; the tests: " + mutant.reason;
  } else {
    mutant.reason += "; " + ruling.text;
  }
}

}  // namespace

SubjectBuild build_subject(const cases::World& world, const ChallengeSpec& spec,
                           const TestSubject& subject) {
  SubjectBuild build;
  build.failed = world.compile(subject_request(spec, subject));
  if (build.failed.record.verdict != Verdict::ok) return build;
  const std::string secret = test_secret(world.kept), assembly = read_file(build.failed.library);
  const std::vector<std::string> functions = abi_functions(spec);
  for (std::size_t twin = 0; twin < 2; ++twin) {
    const std::string what = fmt::format("{} {} {}", spec.name, subject.name, twin);
    const std::string prefix =
        fmt::format("f{:.32}", sha256_hex(fmt::format("{}\nname {}", secret, what)));
    const Disguise disguise{prefix, secret_number(secret, "code " + what), twin == 1};
    const std::string with_code = subject.language == Language::cuda
                                      ? with_disguised_device_code(assembly, disguise)
                                      : assembly;
    const BuildResult object =  // assembly from either language
        world.compile({.sources = {{"implementation.s", disguised(with_code, functions, disguise)}},
                       .headers = {},
                       .time_limit_s = spec.limits.build_time_s,
                       .object = true});
    if (object.record.verdict != Verdict::ok) {
      build.failed = object;
      return build;
    }
    build.objects[twin] = object.library;
    build.slots[twin] = {prefix, functions_in(assembly, functions)};
  }
  build.foreign = foreign_names(assembly);
  return build;
}

std::vector<Mutant> run_own_tests(const cases::World& world, const ChallengeSpec& spec,
                                  const processes::WorkerSettings& settings, Language language,
                                  const std::string& test_source, std::uint64_t seed,
                                  std::size_t jobs) {
  const BuildResult compiled = world.compile(tests_request(spec, language, test_source));
  Subjects subjects(world, spec, language, settings, jobs);
  std::vector<Mutant> mutants;
  for (std::size_t i = 0; i < subjects.size(); ++i) mutants.push_back(subjects.about(i));
  const auto all_failed = [&](const BuildResult& built) {
    for (Mutant& m : mutants) {
      m.verdict = TestVerdict::not_built;
      m.reason = built.record.log;
    }
    return mutants;
  };
  const BuildResult tests = isolated(world, spec, language, compiled, subjects.foreign());
  if (tests.record.verdict != Verdict::ok) return all_failed(tests);
  const std::uint64_t layout =
      secret_number(test_secret(world.kept), fmt::format("{} {} {}", spec.name, seed, test_source));
  const BuildResult linked = subjects.link(tests.library, layout);
  if (linked.record.verdict != Verdict::ok) return all_failed(linked);
  for_each_job(subjects.size(), jobs, [&](std::size_t i) {
    if (const BuildRecord& record = subjects.record(i); record.verdict != Verdict::ok) {
      mutants[i].reason = record.log;  // ours
      return;
    }
    mutants[i] = judge_tests(subjects, i, substream(layout, i) % 2);
    if (mutants[i].correct && mutants[i].verdict == TestVerdict::rejected)
      hear(world, spec, settings, tests.library, subjects, i, mutants[i]);
  });
  return mutants;
}

}  // namespace assay::cells
