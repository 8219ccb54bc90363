#include "records/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "board_samples.h"
#include "records/documents.h"
#include "records/lookup.h"
#include "records/record_fields.h"
#include "spec/json_schema.h"
#include "support/error_of.h"

namespace assay {
namespace {

using nlohmann::json;
using testing::awkward_cell;
using testing::case_of;
using testing::entry_of;
using testing::error_of;
using ::testing::HasSubstr;
using testing::mutant_of;
using testing::sample_cell;
using testing::sample_spec;
using ::testing::StartsWith;

Evidence evidence_of(CellResult cell) { return {"a-run", entry_of(std::move(cell))}; }

Evidence stored(CellResult cell) {
  return parse_evidence(evidence_text(evidence_of(std::move(cell))), "f");
}

TEST(Evidence, TextSurvivesARoundTrip) {
  const std::string text = evidence_text(evidence_of(awkward_cell()));
  EXPECT_EQ(evidence_text(parse_evidence(text, "f")), text);
  EXPECT_EQ(text.back(), '\n');
}

TEST(Evidence, ValuesSurviveARoundTrip) {
  const CellResult cell = awkward_cell();
  CellResult back = stored(cell).entry.cell;
  EXPECT_EQ(back.seed, cell.seed);
  EXPECT_EQ(back.tests_note, cell.tests_note);
  EXPECT_EQ(back.faults, cell.faults);
  EXPECT_EQ(back.code, cell.code);
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

TEST(Evidence, GradeOfAStoredCellIsTheSame) {
  const ChallengeSpec spec = sample_spec();
  for (const CellResult& cell : {sample_cell(spec), awkward_cell()}) {
    const BoardEntry back = stored(cell).entry;
    const std::string fresh = record_json(grade(spec, cell)).dump();
    EXPECT_EQ(record_json(grade(spec, back.cell)).dump(), fresh);
    EXPECT_EQ(record_json(back.score).dump(), fresh);
  }
}

TEST(Evidence, SamplesStandOnOneLine) {
  const std::string text = evidence_text(evidence_of(sample_cell(sample_spec())));
  EXPECT_THAT(text, HasSubstr("[4.0,1.0,0.99],"));
  EXPECT_THAT(text, HasSubstr("[null,1.03"));
}

TEST(Evidence, ItsRunIsKnownFromItsStart) {
  const std::string text = evidence_text(evidence_of(awkward_cell()));
  EXPECT_THAT(text, StartsWith(evidence_start("a-run")));
  EXPECT_THAT(text, Not(StartsWith(evidence_start("a-ru"))));
  EXPECT_EQ(parse_evidence(text, "f").run_id, "a-run");
}

TEST(Evidence, CodeThatIsNotKnownIsLeftOutAsInFilesOfOld) {
  const CellResult old = sample_cell(sample_spec());
  EXPECT_THAT(evidence_text(evidence_of(old)), Not(HasSubstr("\"code\"")));
  EXPECT_FALSE(stored(old).entry.cell.code);
  CellResult unbuilt = old;
  unbuilt.code.emplace().files = 1;
  EXPECT_EQ(stored(unbuilt).entry.cell.code, unbuilt.code);
}

TEST(Evidence, CodeIsReadStrictly) {
  const json good = json::parse(evidence_text(evidence_of(awkward_cell())));
  const auto error = [&](const char* place, const json& value) {
    json bad = good;
    bad["cell"]["code"][json::json_pointer(place)] = value;
    return error_of([&] { parse_evidence(bad.dump(), "f"); });
  };
  EXPECT_EQ(error("/files", 2), error_of([] {}));
  EXPECT_THAT(error("/files", -1), HasSubstr("/cell/code/files"));
  EXPECT_THAT(error("/files", "2"), HasSubstr("/cell/code/files"));
  EXPECT_THAT(error("/beauty", 10), HasSubstr("beauty"));
  EXPECT_THAT(error("/longest/line", 0), HasSubstr("/cell/code/longest/line"));
  EXPECT_THAT(error("/warnings/first", 3), HasSubstr("/cell/code/warnings/first"));
}

TEST(Evidence, CodeIsInNoScore) {
  const ChallengeSpec spec = sample_spec();
  CellResult cell = sample_cell(spec);
  const std::string without = record_json(grade(spec, cell)).dump();
  cell.code = awkward_cell().code;
  EXPECT_EQ(record_json(grade(spec, cell)).dump(), without);
}

TEST(Evidence, WithoutFaultsNothingIsSaidOfThemAsInFilesOfOld) {
  const json j = json::parse(evidence_text(evidence_of(sample_cell(sample_spec()))));
  EXPECT_FALSE(j["cell"].contains("faults"));
  EXPECT_TRUE(parse_evidence(j.dump(), "f").entry.cell.faults.empty());
}

TEST(Evidence, OtherDocumentsAreRefused) {
  EXPECT_THAT(error_of([] { parse_evidence("{\n oops}", "e.json"); }), HasSubstr("e.json:2"));
  EXPECT_THAT(error_of([] { parse_evidence(R"({"schema": 3})", "e.json"); }),
              HasSubstr("e.json: written by a newer assay (schema 3)"));
  EXPECT_THAT(error_of([] { parse_evidence(scoreboard_text({}), "e.json"); }),
              HasSubstr("e.json: at /"));
  json j = json::parse(evidence_text(evidence_of(awkward_cell())));
  j["cell"]["cases"][9]["samples"][0] = {1, 2, "x"};
  EXPECT_THAT(error_of([&] { parse_evidence(j.dump(), "e.json"); }),
              HasSubstr("e.json: at /cell/cases/9/samples/0"));
}

// --- boards of schema 1 ------------------------------------------------------

json board_of_schema_1(const CellResult& cell = awkward_cell()) {
  json e = json::parse(evidence_text(evidence_of(cell)));
  for (const char* key : {"schema", "kind", "run_id"}) e.erase(key);
  return {{"schema", 1}, {"kind", "scoreboard"}, {"entries", {e}}};
}

TEST(ScoreboardOfSchema1, StillLoads) {
  const auto entries = read_scoreboard_1(board_of_schema_1(), "s.json");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(evidence_text({"a-run", entries[0]}), evidence_text(evidence_of(awkward_cell())));
}

TEST(ScoreboardOfSchema1, IsValidated) {
  json j = board_of_schema_1();
  j["entries"][0]["cell"]["cases"][0]["group"] = "other";
  EXPECT_THAT(error_of([&] { read_scoreboard_1(j, "s.json"); }),
              HasSubstr("s.json: at /entries/0/cell/cases/0"));
}

TEST(ScoreboardOfSchema1, ASkippedCaseThatNeededAGpuSaidSoInItsDetail) {
  json document = board_of_schema_1(sample_cell(sample_spec()));
  json& cases = document["entries"][0]["cell"]["cases"];
  cases[0]["verdict"] = cases[1]["verdict"] = "SKIP";
  cases[0]["detail"] = "needs a GPU (stacksave.u64)";
  cases[1]["detail"] = "timing was switched off";
  const CellResult cell = read_scoreboard_1(document, "f").at(0).cell;
  EXPECT_EQ(cell.cases[0].verdict, Verdict::needs_gpu);
  EXPECT_EQ(cell.cases[1].verdict, Verdict::skipped);
}

// OK meant "judged rightly".
TEST(ScoreboardOfSchema1, AMutantWasACase) {
  json document = board_of_schema_1(sample_cell(sample_spec()));
  json& mutants = document["entries"][0]["cell"]["mutants"];
  const auto old = [](const char* name, const char* verdict, const char* detail) {
    return json{{"name", name},     {"group", "core"}, {"verdict", verdict},
                {"detail", detail}, {"seed", "0"},     {"seconds", 0.5}};
  };
  mutants = {old("naive", "OK", ""),
             old("par", "WA", "rejected a correct implementation (returned 3)"),
             old("wrong_a", "OK", ""), old("wrong_b", "WA", "accepted a wrong implementation"),
             old("wrong_c", "CE", "test.cpp:1: error")};
  CellResult cell = read_scoreboard_1(document, "f").at(0).cell;
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

TEST(ScoreboardOfSchema1, ANoteWasItsText) {
  json document = board_of_schema_1(sample_cell(sample_spec()));
  json& entry = document["entries"][0];
  entry["cell"]["tests_note"] = "not run in a partial run";
  entry["score"]["flags"] = {"quick", "wrong on a timed repetition: t", "something else"};
  const BoardEntry read = read_scoreboard_1(document, "f").at(0);
  EXPECT_EQ(read.cell.tests_note, (Note{Note::Kind::tests_not_run, "not run in a partial run"}));
  EXPECT_EQ(read.score.flags,
            (std::vector<Note>{{Note::Kind::quick, "quick"},
                               {Note::Kind::wrong_when_timed, "wrong on a timed repetition: t"},
                               {Note::Kind::other, "something else"}}));
  EXPECT_TRUE(is_quick(read.score));
}

}  // namespace
}  // namespace assay
