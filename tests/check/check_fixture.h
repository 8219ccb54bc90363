// Answers to the copying challenge, checked in a world without processes.
#pragma once

#include <string>

#include "assay/abi.h"
#include "cases/fake_world.h"
#include "cells/cell.h"
#include "spec/public_cases.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::check {

class CheckFixture {
 public:
  explicit CheckFixture(ChallengeSpec spec) : spec_(std::move(spec)) {
    spec_.directory = folder_.path;
    std::filesystem::create_directories(folder_.path / "baselines");
    for (const char* name : {"naive", "par"})
      write_file_atomically(folder_.path / "baselines" / (std::string(name) + ".cpp"), name);
    write_file_atomically(folder_.path / "abi.h", "");
    world_.libraries["naive"].run = [](const auto&, int) { return testing::taking(0.008); };
    world_.libraries["par"].run = [](const auto&, int) { return testing::taking(0.002); };
    world_.libraries["answer"].run = [](const auto&, int) { return testing::taking(0.004); };
  }

  static Submission answer(Language language = Language::cpp) {
    Submission s;
    s.challenge = "copying";
    s.language = language;
    s.sources = {{main_file(language), "answer"}};
    return s;
  }
  // The answer fails these cases in this way, and is right in all others.
  void fails(const std::string& name, const testing::Answer& how) {
    failures_[name] = how;
    world_.libraries["answer"].run = [this](const std::string& case_name, int) {
      const auto found = failures_.find(case_name);
      return found == failures_.end() ? testing::taking(0.004) : found->second;
    };
  }
  static testing::Answer not_supported() {
    return {.outcome = {.status = ASSAY_ENOTSUP, .seconds = 0.001}, .writes = false};
  }
  cells::CellRunner runner(cases::CaseFilter filter = {.quick = true}) {
    return cells::CellRunner(world_.world(), {.tier = {}, .seed = 7, .filter = std::move(filter)});
  }

  testing::TemporaryFolder folder_;
  testing::FakeWorld world_;
  ChallengeSpec spec_;

 private:
  std::map<std::string, testing::Answer> failures_;
};

inline CaseSpec quick_case(const std::string& name, CaseGroup group = CaseGroup::core) {
  CaseSpec c = testing::case_spec(name, group);
  c.quick = true;
  return c;
}

// The result of public_spec().
inline ChallengeSpec public_copying() {
  ChallengeSpec spec = testing::spec_with({quick_case("public_plain"),
                                           quick_case("public_more", CaseGroup::completeness),
                                           quick_case("public_memory", CaseGroup::resource),
                                           quick_case("public_speed", CaseGroup::timed)});
  spec.cases[1].capability = "more";
  spec.capabilities = {{"more", "more of it", 1}};
  return spec;
}

}  // namespace assay::check
