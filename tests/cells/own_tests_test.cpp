#include "cells/own_tests.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "assay/witness.h"
#include "cases/fake_world.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::cells {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr std::size_t kSubjects = 4;
constexpr std::size_t kWrong = 3;  // index of the wrong example among the subjects

// Four floats, taken from a recorded call.
class Recorded final : public testing::Copying {
 public:
  std::optional<nlohmann::json> recorded(const RecordedCall& call) const override {
    if (call.arrays.size() != 1 || call.arrays[0].bytes.size() != 16) return std::nullopt;
    return nlohmann::json{{"of", "four"}};
  }
};

// A challenge of one function, with naive, par, a slow and a wrong example; the text of each is its
// name. The compiler is fake: assembly holds the name of its source, and a library holds a number
// for each slot of its switchboard. Workers are named after the functions in force: "naive 0" and
// "naive 1" are the twins, "naive alone" replays calls, and "recorder" comes before all others.
class OwnTestsTest : public ::testing::Test {
 protected:
  OwnTestsTest()
      : folder_(fs::temp_directory_path() / ("assay-own-tests-" + std::to_string(::getpid()))) {
    for (const char* name : {"baselines", "examples", "worker"})
      fs::create_directories(folder_ / name);
    spec_.directory = folder_;
    spec_.required_symbols = {"copy"};
    for (const char* name : {"naive", "par"})
      write(std::string("baselines/") + name + ".cpp", name);
    write("abi.h", "");
    write("examples/wrong_a.cpp", "// fails: basic\nwrong_a");
    write("examples/slow_b.cpp", "// slow: basic\nslow_b");
    world_.compile = [this](const BuildRequest& request) { return built(request); };
    both("wrong_a", {.status = 7});
  }
  ~OwnTestsTest() override { fs::remove_all(folder_); }

  void write(const std::string& file, const std::string& text) const {
    write_file_atomically(folder_ / file, text);
  }
  void both(const std::string& subject, const processes::Outcome& outcome) {
    for (const char* twin : {" 0", " 1"}) world_.libraries[subject + twin].self_test = outcome;
  }

  BuildResult built(const BuildRequest& request) {
    requests_.push_back(request);
    BuildResult result;
    std::string text = request.sources.at(0).contents;
    std::string name = text.substr(text.find('\n') + 1);
    if (request.sources[0].name == "worker/witness.cpp") {
      name = text = "recorder";
    } else if (request.assembly && name == "the tests") {
      text = "\t.globl\texpf\nexpf:\n";
    } else if (request.assembly) {
      text = fmt::format("\t.text\n\t.string\t\"{}\"\ncopy:\n\tcall\tcudaFree@PLT\n\tret\n", name);
    } else if (!request.reserved.empty()) {
      name = "checked tests";
    } else if (request.object && name != "the tests") {
      name = request.sources[0].name == "test.s" ? "local tests" : "twin";
    } else if (!request.objects.empty()) {
      name = "linked";
      text = linked(request, text);
    } else if (!request.object) {
      text = name += " alone";
    }
    if (does_not_build_ == name) {
      result.record.verdict = Verdict::build_error;
      result.record.log = "error: no";
    }
    result.library = folder_ / fmt::format("product-{}", ++products_);
    write_file_atomically(result.library, text);
    return result;
  }

  // The mark, a word for the function in force, then 1000 for the first slot, 2000 for the second,
  // ...
  std::string linked(const BuildRequest& request, const std::string& board) {
    const std::size_t mark = board.find("board_") + 6;
    std::string bytes;
    for (std::size_t i = 0; i < 64; i += 2)
      bytes += static_cast<char>(std::stoi(board.substr(mark + i, 2), nullptr, 16));
    bytes += std::string(4, '\0');
    slots_.clear();
    for (std::size_t at = 0; (at = board.find("\t.long\t", at)) != std::string::npos; ++at) {
      const std::string name = board.substr(at + 7, board.find(" - .", at) - at - 7);
      slots_.push_back(whose(request, name));
      const auto distance =
          static_cast<std::int32_t>(1000 * slots_.size()) - static_cast<std::int32_t>(bytes.size());
      bytes.append(reinterpret_cast<const char*>(&distance), sizeof distance);
    }
    return bytes;
  }
  // The subject whose object defines the name, and which of its twins it is.
  static std::string whose(const BuildRequest& request, const std::string& name) {
    for (const fs::path& object : request.objects) {
      const std::string text = read_file(object);
      if (text.find(".globl\t" + name + "\n") == std::string::npos) continue;
      const std::size_t begin = text.find('"') + 1;
      return text.substr(begin, text.find('"', begin) - begin) +
             (text.find("_body_") == std::string::npos ? " 0" : " 1");
    }
    return "nobody";
  }
  std::string in_force(const fs::path& library) const {
    std::string text = read_file(library);
    if (text == "recorder" || text.ends_with(" alone")) return text;
    std::int32_t distance = 0;
    std::memcpy(&distance, text.data() + 32, sizeof distance);
    return slots_.at(static_cast<std::size_t>((distance + 32) / 1000 - 1));
  }

  std::vector<Mutant> run(std::uint64_t seed = 1) {
    processes::WorkerSettings settings;
    settings.spec = &spec_;
    cases::World world = world_.world();
    world.challenge = [this](const std::string&) { return cases::KnownChallenge{0, &challenge_}; };
    const processes::WorkerFactory make = world.make_worker;
    world.make_worker = [this, make](const processes::WorkerSettings& given,
                                     processes::Arena& input, std::size_t bytes,
                                     processes::Arena* device) {
      processes::WorkerSettings known = given;
      loaded_.push_back(given.library);
      known.library = in_force(given.library);
      return make(known, input, bytes, device);
    };
    if (language_ == Language::cuda) settings.device.emplace();
    return run_own_tests(world, spec_, settings, language_, "the tests", seed, 1);
  }

  // The same names, except par, in CUDA.
  void turn_to_cuda() {
    language_ = Language::cuda;
    write("baselines/naive.cu", "naive");
    write("examples/wrong_a.cu", "// fails: basic\nwrong_a");
    write("examples/slow_b.cu", "// slow: basic\nslow_b");
  }

  // Adds a witness, which records that the tests make one call for each of these first values.
  void witness_of(const std::vector<float>& calls) {
    write("worker/witness.cpp", "the witness");
    write("worker/call.h", "");
    world_.libraries["recorder"].records = [calls](std::span<std::byte> memory) {
      auto& page = witness::Page::of_process();
      page.data = reinterpret_cast<unsigned char*>(memory.data());
      page.room = memory.size() - sizeof(witness::Account);
      for (const float first : calls) {
        const float x[4] = {first, 2, 3, 4};
        witness::Record(0).array(0, x, sizeof x);
      }
      page.data = nullptr;
    };
  }
  // Sets an implementation's answer on recorded inputs.
  void alone(const std::string& subject, const testing::Answer& answer) {
    world_.libraries[subject + " alone"].run = [answer](const auto&, int) { return answer; };
  }

  fs::path folder_;
  testing::FakeWorld world_;
  Recorded challenge_;
  ChallengeSpec spec_ = testing::spec_with({testing::case_spec("basic")});
  Language language_ = Language::cpp;
  std::string does_not_build_;
  std::vector<BuildRequest> requests_;
  std::vector<std::string> slots_;
  std::vector<fs::path> loaded_;  // by workers
  int products_ = 0;
};

TEST_F(OwnTestsTest, AreTriedOnBothTwinsOfWhatIsRightAndOfEveryWrongExample) {
  const auto mutants = run();
  ASSERT_EQ(mutants.size(), 4u);
  EXPECT_EQ(mutants[0].subject, "naive");
  EXPECT_TRUE(mutants[0].correct);
  EXPECT_EQ(mutants[0].verdict, TestVerdict::accepted);
  EXPECT_EQ(mutants[1].subject, "par");
  EXPECT_TRUE(mutants[1].judged_rightly());
  EXPECT_EQ(mutants[2].subject, "slow_b");
  EXPECT_TRUE(mutants[2].correct) << "slow, but right";
  EXPECT_TRUE(mutants[2].judged_rightly());
  EXPECT_EQ(mutants[kWrong].subject, "wrong_a");
  EXPECT_FALSE(mutants[kWrong].correct);
  EXPECT_EQ(mutants[kWrong].verdict, TestVerdict::rejected);
  EXPECT_EQ(mutants[kWrong].reason, "returned 7");
  EXPECT_TRUE(mutants[kWrong].judged_rightly());
  EXPECT_THAT(
      world_.entries("test"),
      UnorderedElementsAre("test naive 0", "test naive 1", "test par 0", "test par 1",
                           "test slow_b 0", "test slow_b 1", "test wrong_a 0", "test wrong_a 1"));
}

TEST_F(OwnTestsTest, InCudaTheyMeetImplementationsInCuda) {
  turn_to_cuda();
  const auto mutants = run();
  ASSERT_EQ(mutants.size(), 3u);
  for (const Mutant& m : mutants) EXPECT_TRUE(m.judged_rightly()) << m.subject;
  EXPECT_THAT(world_.entries("test"),
              UnorderedElementsAre("test naive 0", "test naive 1", "test slow_b 0", "test slow_b 1",
                                   "test wrong_a 0", "test wrong_a 1"));
  EXPECT_EQ(requests_.front().sources.front().name, "test.cu");
  EXPECT_EQ(requests_.front().language, Language::cuda);
  EXPECT_EQ(requests_.back().language, Language::cuda);
}

// Otherwise the tests could see what an implementation allocates, computes or launches.
TEST_F(OwnTestsTest, MayNotStandInForWhatImplementationsCall) {
  for (const Language language : {Language::cpp, Language::cuda}) {
    if (language == Language::cuda) turn_to_cuda();
    run();
    const BuildRequest& checked = requests_.at(requests_.size() - 2);
    EXPECT_THAT(checked.reserved, ::testing::ElementsAre("cudaFree"));
    EXPECT_THAT(checked.objects, ::testing::SizeIs(1));
    EXPECT_TRUE(checked.object);
    EXPECT_EQ(checked.language, language);
  }
}

TEST_F(OwnTestsTest, WhatTheyDefineIsTheirsAlone) {
  run();
  const auto local = std::ranges::find_if(
      requests_, [](const BuildRequest& r) { return r.sources.at(0).name == "test.s"; });
  ASSERT_NE(local, requests_.end());
  EXPECT_EQ(local->sources[0].contents, "expf:\n");
}

TEST_F(OwnTestsTest, ThatStandInForALibraryAreNotBuilt) {
  for (const char* step : {"local tests", "checked tests"}) {
    does_not_build_ = step;
    for (const Mutant& m : run()) EXPECT_EQ(m.verdict, TestVerdict::not_built) << step;
  }
  EXPECT_TRUE(world_.log.empty());
}

TEST_F(OwnTestsTest, InCudaFindingsReject) {
  turn_to_cuda();
  processes::Outcome found;
  found.device.emplace();
  found.device->findings = 1;
  found.device->first_finding = "a race";
  both("wrong_a", found);
  const Mutant wrong = run().back();
  EXPECT_EQ(wrong.verdict, TestVerdict::rejected);
  EXPECT_EQ(wrong.reason, "a race");
}

TEST_F(OwnTestsTest, InCudaARejectionIsNotPutToTheReference) {
  turn_to_cuda();
  witness_of({1});
  both("naive", {.status = 3});
  alone("naive", testing::wrong());
  const Mutant naive = run().front();
  EXPECT_EQ(naive.verdict, TestVerdict::rejected);
  EXPECT_EQ(naive.reason,
            "returned 3; not put to the reference: calls on a device are not recorded");
}

TEST_F(OwnTestsTest, OnesThatAcceptEverythingMissTheWrongExample) {
  both("wrong_a", {});
  const auto mutants = run();
  EXPECT_EQ(mutants[kWrong].verdict, TestVerdict::accepted);
  EXPECT_FALSE(mutants[kWrong].judged_rightly());
}

TEST_F(OwnTestsTest, ThatTellTwinsApartGoBySomethingElseThanBehaviour) {
  world_.libraries["wrong_a 1"].self_test = {};
  std::vector<TestVerdict> verdicts;
  // The twin that is tried first may be the one that the tests accept, which counts as a miss. The
  // order is random: with probability 2^-39, all runs draw the same.
  for (std::uint64_t seed = 1; seed <= 40; ++seed) verdicts.push_back(run(seed)[kWrong].verdict);
  EXPECT_THAT(verdicts, Contains(TestVerdict::inconsistent));
  EXPECT_THAT(verdicts, Contains(TestVerdict::accepted));
  EXPECT_THAT(verdicts, ::testing::Not(Contains(TestVerdict::rejected)));
}

TEST_F(OwnTestsTest, ThatRejectOneTwinOfACorrectOneAreWrongAboutIt) {
  world_.libraries["par 1"].self_test = {.status = 1};
  EXPECT_FALSE(run()[1].judged_rightly());
}

TEST_F(OwnTestsTest, ThatRejectWhatIsWrongByTheReferenceFoundAFaultOfTheHouse) {
  witness_of({1});
  both("par", {.status = 3});
  alone("par", testing::wrong());
  const Mutant par = run()[1];
  EXPECT_EQ(par.verdict, TestVerdict::house_fault);
  EXPECT_TRUE(par.judged_rightly());
  for (const char* part : {"par of copying is wrong, and naive right", "shape of recorded",
                           "not a copy", "x = 1, 2, 3, 4", R"({"of":"four"})", "returned 3"})
    EXPECT_THAT(par.reason, HasSubstr(part));
}

TEST_F(OwnTestsTest, ThatRejectWhatIsRightByTheReferenceAreWrong) {
  witness_of({1, 5});
  both("par", {.status = 3});
  const auto mutants = run();
  EXPECT_EQ(mutants[1].verdict, TestVerdict::rejected);
  EXPECT_FALSE(mutants[1].judged_rightly());
  EXPECT_EQ(
      mutants[1].reason,
      "returned 3; the reference finds it right on 2 of 2 different calls that were recorded");
  EXPECT_EQ(world_.count("run par alone recorded"), 2);
}

TEST_F(OwnTestsTest, OneWrongCallAmongManyIsEnough) {
  witness_of({1, 5, 6});
  both("par", {.status = 3});
  world_.libraries["par alone"].run = [](const auto&, int nth) {
    return nth == 2 ? testing::wrong() : testing::Answer();
  };
  const Mutant par = run()[1];
  EXPECT_EQ(par.verdict, TestVerdict::house_fault);
  EXPECT_THAT(par.reason, HasSubstr("x = 1, 2, 3, 4")) << "the first call is replayed last";
}

TEST_F(OwnTestsTest, InputsOnWhichNoImplementationPassesAccuseNone) {
  witness_of({1});
  both("par", {.status = 3});
  for (const char* subject : {"naive", "par", "slow_b"}) alone(subject, testing::wrong());
  const Mutant par = run()[1];
  EXPECT_EQ(par.verdict, TestVerdict::rejected);
  EXPECT_THAT(par.reason, HasSubstr("could not judge"));
  EXPECT_THAT(par.reason, HasSubstr("1 on which no implementation passes"));
}

TEST_F(OwnTestsTest, ACrashOnRecordedInputsIsAFaultAndATimeLimitIsNone) {
  witness_of({1});
  both("par", {.status = 3});
  alone("par", testing::ending(Verdict::runtime_error));
  EXPECT_EQ(run()[1].verdict, TestVerdict::house_fault);
  alone("par", testing::ending(Verdict::time_limit));
  EXPECT_EQ(run()[1].verdict, TestVerdict::rejected);
}

TEST_F(OwnTestsTest, ARecordThatIsNoneChangesNothing) {
  witness_of({});
  world_.libraries["recorder"].records = [](std::span<std::byte> memory) {
    std::memset(memory.data(), 0x5a, 4096);
  };
  both("par", {.status = 3});
  alone("par", testing::wrong());
  const Mutant par = run()[1];
  EXPECT_EQ(par.verdict, TestVerdict::rejected);
  EXPECT_THAT(par.reason, HasSubstr("could not judge"));
}

TEST_F(OwnTestsTest, WithoutAWitnessSayThatTheReferenceWasNotAsked) {
  both("par", {.status = 3});
  alone("par", testing::wrong());
  const Mutant par = run()[1];
  EXPECT_EQ(par.verdict, TestVerdict::rejected);
  EXPECT_THAT(par.reason, HasSubstr("not put to the reference"));
}

TEST_F(OwnTestsTest, OnlyARejectionOfWhatIsRightIsDisputed) {
  witness_of({1});
  run();
  EXPECT_TRUE(world_.entries("test recorder").empty());
  both("par", {.status = 3});
  run();
  EXPECT_EQ(world_.entries("test recorder").size(), 1u);
}

TEST_F(OwnTestsTest, TheRecorderHoldsOneImplementationAndShowsItsEntryBeside) {
  witness_of({1});
  both("par", {.status = 3});
  run();
  const BuildRequest& request = *std::ranges::find_if(
      requests_, [](const BuildRequest& r) { return r.sources[0].name == "worker/witness.cpp"; });
  EXPECT_EQ(request.objects.size(), 2u);
  EXPECT_THAT(request.exports, UnorderedElementsAre("copy", "assay_self_test", "assay_witness"));
  const auto header = std::ranges::find_if(
      request.headers, [](const SourceFile& h) { return h.name == "implementation.h"; });
  ASSERT_NE(header, request.headers.end());
  EXPECT_THAT(header->contents, HasSubstr("decltype(copy)"));
}

TEST_F(OwnTestsTest, SayWhatTheyPrinted) {
  both("par", {.detail = "; its output ends: row 3 is off", .status = 2});
  EXPECT_THAT(run()[1].reason, HasSubstr("returned 2; its output ends: row 3 is off;"));
}

TEST_F(OwnTestsTest, ACrashUnderTheTestsIsARejection) {
  both("par", {.verdict = Verdict::runtime_error, .detail = "SIGSEGV"});
  for (const char* twin : {"wrong_a 0", "wrong_a 1"})
    world_.libraries[twin].load = {.verdict = Verdict::load_error, .detail = "no symbol"};
  const auto mutants = run();
  EXPECT_EQ(mutants[1].verdict, TestVerdict::rejected);
  EXPECT_THAT(mutants[1].reason, HasSubstr("SIGSEGV; not put to the reference"));
  EXPECT_FALSE(mutants[1].judged_rightly());
  EXPECT_EQ(mutants[kWrong].verdict, TestVerdict::rejected);
}

TEST_F(OwnTestsTest, TestsThatDoNotCompileAcceptAndRejectNothing) {
  does_not_build_ = "the tests";
  const auto mutants = run();
  ASSERT_EQ(mutants.size(), kSubjects);
  for (const Mutant& m : mutants) {
    EXPECT_EQ(m.verdict, TestVerdict::not_built) << m.subject;
    EXPECT_EQ(m.reason, "error: no");
  }
  EXPECT_TRUE(world_.log.empty());
}

TEST_F(OwnTestsTest, WhatCannotBeLinkedIsTheTestsFault) {
  does_not_build_ = "linked";
  const auto mutants = run();
  ASSERT_EQ(mutants.size(), kSubjects);
  for (const Mutant& m : mutants) EXPECT_EQ(m.verdict, TestVerdict::not_built) << m.subject;
}

TEST_F(OwnTestsTest, AnImplementationThatDoesNotCompileIsOurs) {
  does_not_build_ = "wrong_a";
  const auto mutants = run();
  EXPECT_EQ(mutants[0].verdict, TestVerdict::accepted);
  EXPECT_EQ(mutants[kWrong].verdict, TestVerdict::not_run);
}

TEST_F(OwnTestsTest, MeetAllImplementationsInOneLibraryThatShowsOnlyTheAbi) {
  run();
  std::size_t links = 0;
  for (const BuildRequest& request : requests_) {
    if (request.exports.empty()) continue;
    ++links;
    EXPECT_EQ(request.objects.size(), 9u) << "the tests and two twins of four";
    EXPECT_THAT(request.exports, UnorderedElementsAre("copy", "assay_self_test"));
  }
  EXPECT_EQ(links, 1u);
}

TEST_F(OwnTestsTest, TheOrderChangesFromRunToRun) {
  std::vector<std::vector<std::string>> orders;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    run(seed);
    orders.push_back(slots_);
  }
  EXPECT_THAT(orders, ::testing::Not(Each(orders.front())));
}

TEST_F(OwnTestsTest, LeaveNoLibraryBehind) {
  run();
  const auto is_temporary = [&](const fs::path& file) {
    return file.parent_path() == folder_ && file.filename().string().starts_with("tests-");
  };
  EXPECT_TRUE(std::ranges::any_of(loaded_, is_temporary));
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_FALSE(is_temporary(entry.path())) << entry.path();
}

}  // namespace
}  // namespace assay::cells
