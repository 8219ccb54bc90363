#include "grade/scoreboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "grade/grade.h"
#include "grade/json_text.h"
#include "grade/results_json.h"
#include "samples.h"
#include "spec/json_schema.h"
#include "util/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::case_of;
using ::testing::HasSubstr;
using testing::mutant_of;
using testing::sample_cell;
using testing::sample_machine;
using testing::sample_spec;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Everything that is awkward to write down.
CellResult awkward_cell() {
  CellResult cell = sample_cell(sample_spec(), "model \"x\" <b>");
  cell.seed = std::numeric_limits<std::uint64_t>::max();
  cell.tests_note = {Note::Kind::tests_not_run, "line\nbreak\ttab \x01 é"};
  CaseResult& a = case_of(cell, "core_a");
  a.verdict = Verdict::wrong_answer;
  a.error = HUGE_VAL;
  a.accuracy = kNaN;
  a.bound = 0.1 + 0.2;
  a.detail = "dx[0,1]: got nan, expected 1 | \\";
  a.metrics.push_back({"negative", -HUGE_VAL});
  a.seconds = 5e-324;
  CaseResult& t = case_of(cell, "timed_a");
  t.samples[3] = {};
  t.samples[4].submission = 1e-300;
  return cell;
}

BoardEntry entry_of(CellResult cell) {
  BoardEntry e;
  e.score = grade(sample_spec(), cell);
  e.cell = std::move(cell);
  e.assay_version = "0.1.0";
  e.assay_commit = "0123456789abcdef";
  e.machine = sample_machine();
  return e;
}

Scoreboard board_of(std::vector<CellResult> cells) {
  Scoreboard board;
  for (CellResult& c : cells) merge(board, entry_of(std::move(c)));
  return board;
}

RunFile sample_run() {
  RunFile run;
  run.run_id = "20261121T040000Z-42";
  run.started_at = "2026-11-21T04:00:00Z";
  run.options = {{"quick", true}, {"models", {"textbook"}}};
  run.seed = 42;
  run.machine = sample_machine();
  run.assay_version = "0.1.0";
  const BoardEntry e = entry_of(awkward_cell());
  run.cells = {{e.cell, e.score}};
  return run;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("assay_scoreboard_" + std::to_string(::getpid()));
  TemporaryFolder() { fs::create_directories(path); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

TEST(Scoreboard, TextSurvivesARoundTrip) {
  CellResult second = sample_cell(sample_spec(), "b");
  second.key.attempt = "2";
  const std::string text = scoreboard_text(board_of({awkward_cell(), second}));
  EXPECT_EQ(scoreboard_text(parse_scoreboard(text, "f")), text);
  EXPECT_EQ(text.back(), '\n');
}

TEST(Scoreboard, ValuesSurviveARoundTrip) {
  const CellResult cell = awkward_cell();
  const Scoreboard board = parse_scoreboard(scoreboard_text(board_of({cell})), "f");
  CellResult back = board.entries.at(cell.key).cell;
  EXPECT_EQ(back.seed, cell.seed);
  EXPECT_EQ(back.tests_note, cell.tests_note);
  const CaseResult& a = case_of(back, "core_a");
  EXPECT_EQ(a.error, HUGE_VAL);
  EXPECT_TRUE(std::isnan(a.accuracy.value()));
  EXPECT_EQ(a.bound, 0.1 + 0.2);
  EXPECT_EQ(a.seconds, 5e-324);
  EXPECT_EQ(a.metrics.back().value, -HUGE_VAL);
  const CaseResult& t = case_of(back, "timed_a");
  EXPECT_FALSE(t.samples[3].par);
  EXPECT_FALSE(t.samples[5].naive);
  EXPECT_EQ(t.samples[4].submission, 1e-300);
  EXPECT_FALSE(case_of(back, "edge_b").error);
}

TEST(Scoreboard, GradeOfAStoredCellIsTheSame) {
  const ChallengeSpec spec = sample_spec();
  for (const CellResult& cell : {sample_cell(spec), awkward_cell()}) {
    const Scoreboard board = parse_scoreboard(scoreboard_text(board_of({cell})), "f");
    const BoardEntry& stored = board.entries.at(cell.key);
    const std::string fresh = to_json(grade(spec, cell)).dump();
    EXPECT_EQ(to_json(grade(spec, stored.cell)).dump(), fresh);
    EXPECT_EQ(to_json(stored.score).dump(), fresh);
  }
}

// --- files of old ------------------------------------------------------------

json document_of(const CellResult& cell) { return json::parse(scoreboard_text(board_of({cell}))); }

CellResult cell_of(const json& document) {
  return parse_scoreboard(document.dump(), "f").entries.begin()->second.cell;
}

TEST(FilesOfOld, ASkippedCaseThatNeededAGpuSaidSoInItsDetail) {
  json document = document_of(sample_cell(sample_spec()));
  json& cases = document["entries"][0]["cell"]["cases"];
  cases[0]["verdict"] = cases[1]["verdict"] = "SKIP";
  cases[0]["detail"] = "needs a GPU (wgmma.fence)";
  cases[1]["detail"] = "timing was switched off";
  const CellResult cell = cell_of(document);
  EXPECT_EQ(cell.cases[0].verdict, Verdict::needs_gpu);
  EXPECT_EQ(cell.cases[1].verdict, Verdict::skipped);
}

// OK stood for "judged rightly".
TEST(FilesOfOld, AMutantWasACase) {
  json document = document_of(sample_cell(sample_spec()));
  json& mutants = document["entries"][0]["cell"]["mutants"];
  const auto old = [](const char* name, const char* verdict, const char* detail) {
    return json{{"name", name},     {"group", "core"}, {"verdict", verdict},
                {"detail", detail}, {"seed", "0"},     {"seconds", 0.5}};
  };
  mutants = {old("naive", "OK", ""),
             old("par", "WA", "rejected a correct implementation (returned 3)"),
             old("wrong_a", "OK", ""), old("wrong_b", "WA", "accepted a wrong implementation"),
             old("wrong_c", "CE", "test.cpp:1: error")};
  CellResult cell = cell_of(document);
  ASSERT_EQ(cell.mutants.size(), 5u);
  EXPECT_TRUE(mutant_of(cell, "naive").correct);
  EXPECT_EQ(mutant_of(cell, "naive").verdict, TestVerdict::accepted);
  EXPECT_EQ(mutant_of(cell, "naive").seconds, 0.5);
  EXPECT_EQ(mutant_of(cell, "par").verdict, TestVerdict::rejected);
  EXPECT_EQ(mutant_of(cell, "par").reason, "returned 3");
  EXPECT_FALSE(mutant_of(cell, "wrong_a").correct);
  EXPECT_EQ(mutant_of(cell, "wrong_a").verdict, TestVerdict::rejected);
  EXPECT_EQ(mutant_of(cell, "wrong_b").verdict, TestVerdict::accepted);
  EXPECT_EQ(mutant_of(cell, "wrong_b").reason, "");
  EXPECT_EQ(mutant_of(cell, "wrong_c").verdict, TestVerdict::not_built);
  EXPECT_EQ(mutant_of(cell, "wrong_c").reason, "test.cpp:1: error");
}

TEST(FilesOfOld, ANoteWasItsText) {
  json document = document_of(sample_cell(sample_spec()));
  json& entry = document["entries"][0];
  entry["cell"]["tests_note"] = "not run in a partial run";
  entry["score"]["flags"] = {"quick", "wrong on a timed repetition: t", "something else"};
  const Scoreboard board = parse_scoreboard(document.dump(), "f");
  const BoardEntry& read = board.entries.begin()->second;
  EXPECT_EQ(read.cell.tests_note, (Note{Note::Kind::tests_not_run, "not run in a partial run"}));
  EXPECT_EQ(read.score.flags,
            (std::vector<Note>{{Note::Kind::quick, "quick"},
                               {Note::Kind::wrong_when_timed, "wrong on a timed repetition: t"},
                               {Note::Kind::other, "something else"}}));
  EXPECT_TRUE(is_quick(read.score));
}

TEST(Scoreboard, EveryCodeCanBeReadBack) {
  for (int i = 0; i <= static_cast<int>(Verdict::ok); ++i)
    EXPECT_EQ(verdict_from_code(code(static_cast<Verdict>(i))), static_cast<Verdict>(i));
  for (int i = 0; i <= static_cast<int>(TestVerdict::not_run); ++i)
    EXPECT_EQ(test_verdict_from_code(code(static_cast<TestVerdict>(i))),
              static_cast<TestVerdict>(i));
  for (int i = 0; i <= static_cast<int>(Note::Kind::wrong_when_timed); ++i)
    EXPECT_EQ(note_kind_from_code(code(static_cast<Note::Kind>(i))), static_cast<Note::Kind>(i));
  EXPECT_FALSE(verdict_from_code("AC"));
}

TEST(Scoreboard, RunSurvivesARoundTrip) {
  const std::string text = run_text(sample_run());
  const RunFile back = parse_run(text, "f");
  EXPECT_EQ(run_text(back), text);
  EXPECT_EQ(back.options.at("models").at(0), "textbook");
  EXPECT_FALSE(back.finished);
}

TEST(Scoreboard, BytesThatAreNotUtf8DoNotStopASave) {
  CellResult cell = sample_cell(sample_spec());
  cell.build.log = "\xff\xfe";
  const std::string text = scoreboard_text(board_of({cell}));
  EXPECT_NO_THROW(parse_scoreboard(text, "f"));
}

TEST(Scoreboard, SamplesStandOnOneLine) {
  const std::string text = scoreboard_text(board_of({sample_cell(sample_spec())}));
  EXPECT_THAT(text, HasSubstr("[4.0,1.0,0.99],"));
  EXPECT_THAT(text, HasSubstr("[null,1.03"));
}

TEST(Scoreboard, SavedFileLoads) {
  const TemporaryFolder folder;
  const fs::path file = folder.path / "scoreboard.json";
  EXPECT_TRUE(load_scoreboard(file).entries.empty());  // missing: an empty board
  const Scoreboard board = board_of({awkward_cell()});
  save_scoreboard(file, board);
  EXPECT_EQ(scoreboard_text(load_scoreboard(file)), scoreboard_text(board));
  save_run(folder.path / "run.json", sample_run());
  EXPECT_EQ(run_text(load_run(folder.path / "run.json")), run_text(sample_run()));
}

TEST(Scoreboard, MalformedFileIsNamedWithItsLine) {
  EXPECT_THAT(error_of([] { parse_scoreboard("{\n \"schema\": 1,\n oops}", "dir/s.json"); }),
              HasSubstr("dir/s.json:3: not valid JSON"));
  EXPECT_THAT(error_of([] { parse_scoreboard("", "s.json"); }), HasSubstr("s.json:1"));
}

TEST(Scoreboard, NewerSchemaIsRefusedWithTheRemedy) {
  EXPECT_EQ(error_of([] { parse_scoreboard(R"({"schema": 2, "new": []})", "s.json"); }),
            "s.json: written by a newer assay (schema 2); this one reads up to 1: upgrade, or use "
            "another --results");
  EXPECT_THAT(error_of([] { parse_run(R"({"schema": 7})", "r.json"); }), HasSubstr("(schema 7)"));
}

TEST(Scoreboard, WrongKindIsRefused) {
  EXPECT_THAT(error_of([] { parse_scoreboard(run_text(sample_run()), "s.json"); }),
              HasSubstr("s.json: at /"));
}

TEST(Scoreboard, WhatASchemaCannotStateIsCheckedToo) {
  json j = json::parse(scoreboard_text(board_of({awkward_cell()})));
  j["entries"][0]["cell"]["seed"] = "18446744073709551616";
  EXPECT_THAT(error_of([&] { parse_scoreboard(j.dump(), "s.json"); }), HasSubstr("s.json: seed"));
  json twice = json::parse(scoreboard_text(board_of({awkward_cell()})));
  twice["entries"].push_back(twice["entries"][0]);
  EXPECT_THAT(error_of([&] { parse_scoreboard(twice.dump(), "s.json"); }),
              HasSubstr("two entries"));
}

// --- the schema --------------------------------------------------------------

TEST(ScoreboardSchema, AcceptsWhatIsWritten) {
  for (const std::string& text :
       {scoreboard_text({}), scoreboard_text(board_of({awkward_cell()})), run_text(sample_run())}) {
    EXPECT_NO_THROW(validate_json(json::parse(text), kScoreboardSchema, "f"));
  }
}

// Every object of a document, by JSON pointer.
void collect_objects(const json& j, const std::string& at, std::vector<std::string>& found) {
  if (j.is_object() && !at.ends_with("/options")) found.push_back(at);
  if (!j.is_structured() || at.ends_with("/options")) return;
  for (const auto& [key, value] : j.items()) collect_objects(value, at + "/" + key, found);
}

TEST(ScoreboardSchema, RejectsUnknownKeysEverywhere) {
  for (const std::string& text :
       {scoreboard_text(board_of({awkward_cell()})), run_text(sample_run())}) {
    const json document = json::parse(text);
    std::vector<std::string> objects;
    collect_objects(document, "", objects);
    EXPECT_GT(objects.size(), 20u);
    for (const std::string& at : objects) {
      json changed = document;
      changed[json::json_pointer(at)]["unheard_of"] = 1;
      EXPECT_THROW(validate_json(changed, kScoreboardSchema, "f"), Error) << at;
    }
  }
}

TEST(ScoreboardSchema, RejectsMutatedDocuments) {
  const json document = json::parse(scoreboard_text(board_of({awkward_cell()})));
  const std::pair<const char*, json> kMutations[] = {
      {"/schema", 0},
      {"/kind", "run"},
      {"/entries", json::object()},
      {"/entries/0/cell/model", ""},
      {"/entries/0/cell/device", "cuda"},
      {"/entries/0/cell/tests_note/kind", "unheard_of"},
      {"/entries/0/cell/mutants/0/verdict", "OK"},
      {"/entries/0/cell/seed", 42},
      {"/entries/0/cell/seed", "-1"},
      {"/entries/0/cell/build/verdict", "AC"},
      {"/entries/0/cell/build/cached", "no"},
      {"/entries/0/cell/cases/0/group", "other"},
      {"/entries/0/cell/cases/0/error", "1.0"},
      {"/entries/0/cell/cases/0/seconds", nullptr},
      {"/entries/0/cell/cases/9/samples/0", {1, 2}},
      {"/entries/0/cell/cases/9/samples/0", {1, 2, "x"}},
      {"/entries/0/score/total", "A"},
      {"/entries/0/score/letter", "A+"},
      {"/entries/0/score/interval", {1}},
      {"/entries/0/score/dimensions/0/name", "style"},
      {"/entries/0/machine/cores", -1},
  };
  EXPECT_NO_THROW(validate_json(document, kScoreboardSchema, "f"));
  for (const auto& [at, value] : kMutations) {
    json changed = document;
    changed.at(json::json_pointer(at)) = value;
    EXPECT_THROW(validate_json(changed, kScoreboardSchema, "f"), Error) << at;
    EXPECT_THAT(error_of([&] { parse_scoreboard(changed.dump(), "f"); }), HasSubstr("f: at /"))
        << at;
  }
}

TEST(ScoreboardSchema, RejectsMissingKeys) {
  const json document = json::parse(run_text(sample_run()));
  for (const auto& [key, value] : document.items()) {
    json changed = document;
    changed.erase(key);
    EXPECT_THROW(validate_json(changed, kScoreboardSchema, "f"), Error) << key;
  }
}

// --- merge -------------------------------------------------------------------

BoardEntry quick_entry(const std::string& source_hash) {
  CellResult cell = sample_cell(sample_spec());
  cell.build.source_hash = source_hash;
  for (CaseResult& r : cell.cases) {
    if (r.name != "core_a" && r.name != "trap_a" && r.name != "timed_a")
      r.verdict = Verdict::skipped;
  }
  return entry_of(cell);
}

TEST(Merge, TheNewestMeasurementCounts) {
  Scoreboard board = board_of({sample_cell(sample_spec())});
  CellResult worse = sample_cell(sample_spec());
  case_of(worse, "core_a").verdict = Verdict::wrong_answer;
  EXPECT_TRUE(merge(board, entry_of(worse)));
  ASSERT_EQ(board.entries.size(), 1u);
  EXPECT_EQ(board.entries.begin()->second.score.total, 59);
}

TEST(Merge, AQuickRunDoesNotDisplaceAFullOneOfTheSameSources) {
  Scoreboard board = board_of({sample_cell(sample_spec())});
  EXPECT_FALSE(merge(board, quick_entry("source-hash")));
  EXPECT_TRUE(board.entries.begin()->second.score.flags.empty());
  EXPECT_TRUE(merge(board, quick_entry("edited")));  // other sources: the old score is not theirs
  EXPECT_FALSE(board.entries.begin()->second.score.flags.empty());
  EXPECT_TRUE(merge(board, quick_entry("edited")));
}

TEST(Merge, AHarnessErrorDoesNotDisplaceAScore) {
  Scoreboard board = board_of({sample_cell(sample_spec())});
  CellResult broken = sample_cell(sample_spec());
  broken.build.verdict = Verdict::harness_error;
  EXPECT_FALSE(merge(board, entry_of(broken)));
  EXPECT_TRUE(board.entries.begin()->second.score.total);
}

// --- text --------------------------------------------------------------------

TEST(JsonText, BreaksOnlyWhatDoesNotFit) {
  nlohmann::ordered_json j;
  j["short"] = {{"b", 1}, {"a", {1, 2}}};
  j["long"] = {std::string(60, 'x'), std::string(60, 'y'), {{"k", "v"}}};
  const std::string text = json_text(j);
  EXPECT_THAT(text, HasSubstr("\n \"short\": {\"b\":1,\"a\":[1,2]},\n"));
  EXPECT_EQ(json::parse(text), json::parse(j.dump()));
}

}  // namespace
}  // namespace assay
