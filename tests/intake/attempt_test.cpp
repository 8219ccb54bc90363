#include "intake/attempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "intake/received.h"
#include "records/entrant_json.h"
#include "support/child_process.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::intake {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AttemptTest : public ::testing::Test {
 protected:
  fs::path root() const { return temporary_.path / "submissions"; }
  fs::path store(const Answer& answer, const AttemptRecord& record = {}) const {
    return store_attempt(root(), "m", "challenge", answer, record);
  }
  std::vector<Submission> found(std::vector<std::string>& warnings) const {
    return find_submissions(root(), {"challenge"}, warnings);
  }
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((root() / name).parent_path());
    write_file_atomically(root() / name, text);
  }
  // Hidden entries belong to stores under way.
  std::vector<std::string> hidden() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root())) {
      const std::string name = entry.path().filename();
      if (name.front() == '.') names.push_back(name);
    }
    return names;
  }

  testing::TemporaryFolder temporary_;
  const Answer answer_{{{"submission.cpp", "int x;\n"}, {"helper.h", "int y;\n"}},
                       {{"answer.md", "```cpp\r\nint x;\r\n```"}, {"logs/a.txt", "log"}}};
};

TEST_F(AttemptTest, IsStoredWithWhatWasReceived) {
  AttemptRecord record;
  record.turns = 3;
  record.cost_usd = 0.25;
  record.how = "by hand";
  record.hints = false;
  const fs::path folder = store(answer_, record);
  EXPECT_EQ(folder, root() / "m" / "challenge" / "1");
  EXPECT_EQ(read_file(folder / "submission.cpp"), "int x;\n");
  EXPECT_EQ(read_file(folder / "helper.h"), "int y;\n");
  EXPECT_EQ(read_file(folder / "original" / "answer.md"), "```cpp\r\nint x;\r\n```");
  EXPECT_EQ(read_file(folder / "original" / "logs" / "a.txt"), "log");
  AttemptRecord back =
      attempt_record_from(nlohmann::json::parse(read_file(folder / "attempt.json")));
  EXPECT_EQ(back.date.size(), std::string("2026-11-25T00:00:00Z").size());
  back.date.clear();
  EXPECT_EQ(back, record);
  EXPECT_THAT(hidden(), IsEmpty());
}

TEST_F(AttemptTest, IsFoundAndWhatBelongsToItIsNoNoise) {
  store(answer_);
  std::vector<std::string> warnings;
  const auto all = found(warnings);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].attempt, "1");
  EXPECT_EQ(all[0].rejected, "");
  EXPECT_EQ(all[0].sources.size(), 2u);
  EXPECT_FALSE(all[0].record.date.empty());
  EXPECT_THAT(all[0].ignored, IsEmpty());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(AttemptTest, TheNextHasTheNextNumber) {
  EXPECT_EQ(store(answer_).filename(), "1");
  EXPECT_EQ(store(answer_).filename(), "2");
  fs::create_directories(root() / "m" / "challenge" / "9");
  EXPECT_EQ(store(answer_).filename(), "10");
}

TEST_F(AttemptTest, AnAnswerWithoutANumberIsTheFirst) {
  put("m/challenge/submission.cu", "int x;");
  EXPECT_EQ(store(answer_).filename(), "2");
  std::vector<std::string> warnings;
  std::vector<std::string> attempts;
  for (const Submission& s : found(warnings)) attempts.push_back(s.attempt);
  EXPECT_THAT(attempts, ElementsAre("", "2"));
}

TEST_F(AttemptTest, NotesInTheFolderAreNoAnswer) {
  put("m/challenge/notes.md", "x");
  EXPECT_EQ(store(answer_).filename(), "1");
}

TEST_F(AttemptTest, OneThatGaveNoAnswerSaysSo) {
  AttemptRecord record;
  record.no_answer = "refused:\n\x1b[2J no";
  record.language = "cuda";
  EXPECT_EQ(store({}, record).filename(), "1");
  std::vector<std::string> warnings;
  const auto all = found(warnings);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].no_answer, "refused: \\x1b[2J no");
  EXPECT_EQ(all[0].rejected, "");
  EXPECT_EQ(all[0].device(), Device::sim);
  EXPECT_THAT(all[0].sources, IsEmpty());
  EXPECT_NE(source_hash(all[0]), source_hash(Submission{}));
}

TEST_F(AttemptTest, AnAnswerThatIsThereIsOneWhateverItsRecordSays) {
  put("m/challenge/submission.cpp", "int x;");
  put("m/challenge/attempt.json", R"({"no_answer": "refused", "turns": 2})");
  std::vector<std::string> warnings;
  const Submission s = found(warnings).front();
  EXPECT_EQ(s.no_answer, "");
  EXPECT_EQ(s.record.no_answer, "");
  EXPECT_EQ(s.record.turns, 2);
}

TEST_F(AttemptTest, WhatIsWrongWithFactsIsToldAndCostsNothing) {
  put("m/challenge/submission.cpp", "int x;");
  put("m/challenge/attempt.json", "{\n \"turns\": 1,\n \"seconds\": \"long\"\n}");
  put("m/model.json", "{\n \"name\": \"M\",\n\n \"parametres\": \"7B\"\n}");
  std::vector<std::string> warnings;
  const auto all = found(warnings);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].rejected, "");
  EXPECT_TRUE(all[0].record.empty());
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0], HasSubstr("m/model.json:4: parametres: unknown: a model has name, "));
  EXPECT_THAT(warnings[0], HasSubstr("mend it as challenges/entrant.schema.json describes it"));
  EXPECT_THAT(warnings[1], HasSubstr("challenge/attempt.json:3: seconds: expected a number"));
}

TEST_F(AttemptTest, FactsThatAreNoJsonOrNoFileAreTold) {
  put("m/model.json", "{\n \"name\": \"M\",\n}");
  std::string fault;
  EXPECT_TRUE(read_model_info(root(), "m", fault).empty());
  EXPECT_THAT(fault, HasSubstr("m/model.json:3: not valid JSON"));
  fs::remove(root() / "m" / "model.json");
  fs::create_symlink("/etc/passwd", root() / "m" / "model.json");
  EXPECT_TRUE(read_model_info(root(), "m", fault).empty());
  EXPECT_THAT(fault, HasSubstr("model.json is a symbolic link"));
  fs::remove(root() / "m" / "model.json");
  fault.clear();
  EXPECT_TRUE(read_model_info(root(), "m", fault).empty());
  EXPECT_EQ(fault, "");
}

TEST_F(AttemptTest, NamesThatLeadElsewhereAreRefusedAndNothingIsLeft) {
  const auto refused = [&](const Answer& answer) { return error_of([&] { store(answer); }); };
  for (const char* name : {"../x.cpp", "/x.cpp", "a/b.cpp", ".x.cpp", "x.py", "abi.h", "x.so", ""})
    EXPECT_THAT(refused({{{name, "int x;"}}}), HasSubstr("no file of an answer")) << name;
  for (const char* name : {"../x", "/etc/x", "a/../../x", "", ".", "a//.."})
    EXPECT_THAT(refused({answer_.files, {{name, "x"}}}), HasSubstr("no place")) << name;
  EXPECT_THAT(refused({{{"submission.cpp", "a"}, {"submission.cpp", "b"}}}), HasSubstr("twice"));
  EXPECT_THAT(refused({}), HasSubstr("either files or a reason"));
  for (const char* model : {"", ".", "..", ".m", "a/b", "a\nb", "a\xff"}) {
    EXPECT_THAT(error_of([&] { store_attempt(root(), model, "challenge", answer_, {}); }),
                HasSubstr("no model can have the name"))
        << model;
  }
  EXPECT_THAT(error_of([&] { store_attempt(root(), "m", "../c", answer_, {}); }),
              HasSubstr("the name of no challenge"));
  EXPECT_FALSE(fs::exists(root()));
}

TEST_F(AttemptTest, AFileInTheWayIsAnError) {
  put("m/challenge", "x");
  EXPECT_THAT(error_of([&] { store(answer_); }), HasSubstr("is not a folder: move it away"));
  EXPECT_THAT(hidden(), IsEmpty());
}

TEST_F(AttemptTest, TwoProcessesNeverShareANumber) {
  constexpr int kEach = 15;
  const auto many = [&](const testing::ChildProcess& child) {
    for (int i = 0; i < kEach; ++i) store(answer_);
    child.signal();
  };
  {
    testing::ChildProcess a(many), b(many);
    for (int i = 0; i < kEach; ++i) store(answer_);
    a.wait_for_signal();
    b.wait_for_signal();
  }
  std::vector<std::string> warnings;
  std::set<std::string> attempts;
  for (const Submission& s : found(warnings)) {
    EXPECT_EQ(s.rejected, "") << s.attempt;
    EXPECT_EQ(s.sources.size(), 2u) << s.attempt;
    attempts.insert(s.attempt);
  }
  EXPECT_EQ(attempts.size(), 3u * kEach);
  EXPECT_TRUE(attempts.contains(std::to_string(3 * kEach)));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(AttemptTest, AKillLeavesWholeAttemptsOnly) {
  constexpr int kKills = 8;
  const Answer large{{{"submission.cpp", std::string(1u << 18, ' ')}},
                     {{"answer.md", std::string(1u << 18, ' ')}}};
  for (int i = 0; i < kKills; ++i) {
    testing::ChildProcess child([&](const testing::ChildProcess& self) {
      self.signal();
      for (;;) store(large);
    });
    child.wait_for_signal();
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * i));
    child.kill();
  }
  store(large);  // removes what the killed stores left
  EXPECT_THAT(hidden(), IsEmpty());
  std::vector<std::string> warnings;
  for (const Submission& s : found(warnings)) {
    EXPECT_EQ(s.rejected, "") << s.attempt;
    EXPECT_FALSE(s.record.date.empty()) << s.attempt;
    EXPECT_TRUE(fs::exists(s.directory / "original" / "answer.md")) << s.attempt;
  }
  EXPECT_THAT(warnings, IsEmpty());
}

// --- what is handed in ------------------------------------------------------------

class ReceivedTest : public AttemptTest {
 protected:
  fs::path file(const std::string& name, const std::string& text) const {
    fs::path path = temporary_.path / "in" / name;
    fs::create_directories(path.parent_path());
    write_file_atomically(path, text);
    return path;
  }
  fs::path folder() const { return temporary_.path / "in"; }
  static std::vector<std::string> names(const std::vector<SourceFile>& files) {
    std::vector<std::string> all;
    for (const SourceFile& f : files) all.push_back(f.name);
    return all;
  }
  Received take(const std::vector<fs::path>& paths, std::optional<Language> language = {}) const {
    return take_paths(paths, language, {{"forward"}});
  }
  const std::string forward_ = "int forward() {}\n";
};

TEST_F(ReceivedTest, AFileIsTakenAsItIs) {
  const Received r = take({file("submission.cpp", "int x;\r\n")});
  EXPECT_THAT(names(r.answer.files), ElementsAre("submission.cpp"));
  EXPECT_EQ(r.answer.files[0].contents, "int x;\r\n");
  EXPECT_EQ(r.language, Language::cpp);
}

TEST_F(ReceivedTest, AFileOfAnotherNameIsTheMainFile) {
  const Received r = take({file("my_kernel.cu", "int x;")});
  EXPECT_THAT(names(r.answer.files), ElementsAre("submission.cu"));
  EXPECT_THAT(names(r.answer.original), ElementsAre("my_kernel.cu"));
  EXPECT_EQ(r.language, Language::cuda);
  EXPECT_THAT(r.how, HasSubstr("my_kernel.cu is submission.cu"));
}

TEST_F(ReceivedTest, SeveralFilesAreOneAnswer) {
  const Received r = take({file("a.h", "int x;"), file("k.cpp", forward_),
                           file("other.cpp", "int forward();"), file("test.cpp", "int t;")});
  EXPECT_THAT(names(r.answer.files), ElementsAre("a.h", "submission.cpp", "other.cpp", "test.cpp"));
  EXPECT_THAT(error_of([&] {
                take({file("a.h", ""), file("x.md", "")});
              }),
              HasSubstr("x.md is no source file"));
  EXPECT_THAT(error_of([&] {
                take({file("a.cpp", ""), file("b.cpp", "")});
              }),
              HasSubstr("Name the main file submission.cpp"));
}

TEST_F(ReceivedTest, AChatAnswerIsKnownByNameOrContents) {
  for (const char* name : {"answer.md", "answer.txt", "answer", "answer.json", "submission.cpp"}) {
    const std::string text = "```cpp\n" + forward_ + "```\n";
    const Received r = take({file(name, text)});
    EXPECT_EQ(r.answer.files[0].contents, forward_) << name;
    EXPECT_EQ(r.answer.original[0].contents, text) << name;
    EXPECT_THAT(names(r.answer.original), ElementsAre(name));
  }
  const Received r = take({file("an answer, with spaces.md", "```cpp\n" + forward_ + "```\n")});
  EXPECT_THAT(names(r.answer.original), ElementsAre("answer.md"));
}

TEST_F(ReceivedTest, OfAFolderTheRestIsKeptAndNoPartOfTheAnswer) {
  file("submission.cpp", forward_);
  file("helper.h", "int h;");
  file("notes.md", "x");
  file("session.jsonl", "{}");
  file("solve.py", "x");
  file("abi.h", "x");
  file("submission.so", "x");
  file("deep/er/other.cpp", "x");
  fs::create_symlink("/etc/passwd", folder() / "link.txt");
  file("huge.log", std::string((4u << 20) + 1, 'x'));
  const Received r = take({folder()});
  EXPECT_THAT(names(r.answer.files), ::testing::UnorderedElementsAre("submission.cpp", "helper.h"));
  EXPECT_THAT(r.ignored, ::testing::UnorderedElementsAre("notes.md", "session.jsonl", "solve.py",
                                                         "deep", "link.txt", "huge.log"));
  EXPECT_THAT(r.not_kept, ::testing::UnorderedElementsAre("link.txt", "huge.log"));
  EXPECT_THAT(names(r.answer.original), ::testing::Contains("deep/er/other.cpp"));
  EXPECT_EQ(r.answer.original.size(), 8u);
  AttemptRecord record;
  record.not_kept = r.not_kept;
  const fs::path stored = store(r.answer, record);
  EXPECT_EQ(read_file(stored / "original" / "deep" / "er" / "other.cpp"), "x");
  std::vector<std::string> warnings;
  EXPECT_EQ(found(warnings).front().rejected, "");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(ReceivedTest, WhatIsUnsafeInAFolderIsRefusedByName) {
  file("submission.cpp", forward_);
  fs::create_symlink("/etc/passwd", folder() / "link.h");
  EXPECT_THAT(error_of([&] { take({folder()}); }), HasSubstr("link.h is a symbolic link"));
  fs::remove(folder() / "link.h");
  ASSERT_EQ(::mkfifo((folder() / "pipe.h").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { take({folder()}); }), HasSubstr("pipe.h is not a regular file"));
  fs::remove(folder() / "pipe.h");
  file("two words.h", "x");
  EXPECT_THAT(error_of([&] { take({folder()}); }), HasSubstr("names consist of"));
}

TEST_F(ReceivedTest, TheLanguageLeavesOutTheOther) {
  file("submission.cpp", forward_);
  file("submission.cu", forward_);
  file("test.cpp", "x");
  file("part.cuh", "x");
  EXPECT_EQ(take({folder()}).answer.files.size(), 4u);
  EXPECT_THAT(names(take({folder()}, Language::cuda).answer.files),
              ::testing::UnorderedElementsAre("submission.cu", "part.cuh"));
  EXPECT_THAT(names(take({folder()}, Language::cpp).answer.files),
              ::testing::UnorderedElementsAre("submission.cpp", "test.cpp"));
}

TEST_F(ReceivedTest, AFolderWithoutSourcesIsNoAnswer) {
  file("answer.md", "x");
  EXPECT_THROW(take({folder()}), NoAnswer);
  EXPECT_THAT(error_of([&] { take({folder() / "missing.cpp"}); }), HasSubstr("no such file"));
}

}  // namespace
}  // namespace assay::intake
