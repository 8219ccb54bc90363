#include "records/scoreboard.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "board_samples.h"
#include "records/documents.h"
#include "records/evidence.h"
#include "records/json_text.h"
#include "records/record_fields.h"
#include "spec/json_schema.h"
#include "store/run_record.h"
#include "support/error_of.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay {
namespace {

using nlohmann::json;
using testing::awkward_cell;
using testing::board_of;
using testing::case_of;
using testing::entry_of;
using testing::error_of;
using ::testing::HasSubstr;
using testing::row_of;
using testing::sample_cell;
using testing::sample_spec;
using ::testing::StartsWith;

BoardRow awkward_row() { return row_of(entry_of(awkward_cell())); }

TEST(Scoreboard, TextSurvivesARoundTrip) {
  CellResult second = sample_cell(sample_spec(), "b");
  second.key.attempt = "2";
  const std::string text = scoreboard_text(board_of({awkward_cell(), second}));
  EXPECT_EQ(scoreboard_text(parse_scoreboard(text, "f")), text);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(scoreboard_text(parse_scoreboard(scoreboard_text({}), "f")), scoreboard_text({}));
}

TEST(Scoreboard, TheShippedBoardIsRewrittenByteForByte) {
  const std::string file = testing::source_dir() + "/results/scoreboard.json";
  const std::string text = read_file(file);
  EXPECT_EQ(scoreboard_text(parse_scoreboard(text, file)), text);
}

TEST(Scoreboard, FailedCasesAreKeptByVerdict) {
  CellResult cell = sample_cell(sample_spec(), "m");
  case_of(cell, "trap_b").verdict = Verdict::wrong_answer;
  case_of(cell, "core_b").verdict = Verdict::wrong_answer;
  case_of(cell, "edge_a").verdict = Verdict::runtime_error;
  case_of(cell, "strided").verdict = Verdict::unsupported;
  case_of(cell, "bf16_a").verdict = Verdict::skipped;
  case_of(cell, "bf16_b").verdict = Verdict::harness_error;
  const BoardRow row = row_of(entry_of(cell));
  const std::vector<FailedCase> expected{{"strided", Verdict::unsupported},
                                         {"edge_a", Verdict::runtime_error},
                                         {"core_b", Verdict::wrong_answer},
                                         {"trap_b", Verdict::wrong_answer}};
  EXPECT_EQ(row.failed, expected);
  Scoreboard board;
  board.entries.emplace(row.key, row);
  EXPECT_EQ(parse_scoreboard(scoreboard_text(board), "f").entries.at(row.key).failed, expected);
  EXPECT_EQ(parse_row(row_text(row), "f").failed, expected);
}

TEST(Scoreboard, ValuesSurviveARoundTrip) {
  BoardRow row = awkward_row();
  row.score.modelled_on = "H200";
  row.score.gpu_sheet = "sheet-hash";
  row.revision = 7;
  row.score.flags = {{Note::Kind::stolen_time, "a flag"}};
  row.score.interval = {0.1 + 0.2, HUGE_VAL};
  Scoreboard board;
  board.entries.emplace(row.key, row);
  const BoardRow back = parse_scoreboard(scoreboard_text(board), "f").entries.at(row.key);
  EXPECT_EQ(record_json(back.score).dump(), record_json(row.score).dump());
  EXPECT_EQ(record_json(back.machine).dump(), record_json(row.machine).dump());
  EXPECT_EQ(back.reason, row.reason);
  EXPECT_THAT(back.reason, HasSubstr("core case core_a failed (WA): dx[0,1]: got nan"));
  EXPECT_EQ(back.seed, row.seed);
  EXPECT_EQ(back.seconds, row.seconds);
  EXPECT_EQ(back.spec_hash, "spec-hash");
  EXPECT_EQ(back.revision, 7);
  EXPECT_EQ(back.score.gpu_sheet, "sheet-hash");
  EXPECT_EQ(back.source_hash, "source-hash");
  EXPECT_EQ(back.finished_at, row.finished_at);
  EXPECT_EQ(back.isolation, row.isolation);
  EXPECT_EQ(back.assay_version + back.assay_commit, row.assay_version + row.assay_commit);
  EXPECT_EQ(back.evidence.path, row.evidence.path);
  EXPECT_EQ(back.evidence.sha256, row.evidence.sha256);
}

TEST(Scoreboard, WhoAnsweredStandsThereOnceAndSurvives) {
  BoardRow row = awkward_row();
  row.about.name = "M";
  row.about.sample = true;
  row.attempt.turns = 3;
  row.attempt.how = "not on a board";
  const std::string line = row_text(row);
  EXPECT_EQ(row_text(parse_row(line, "f")), line);
  Scoreboard board;
  merge(board, parse_row(line, "f"));
  EXPECT_TRUE(board.entries.at(row.key).about.empty());
  EXPECT_TRUE(is_reference(board, row.key.model));
  EXPECT_FALSE(is_reference(board, "another"));
  const std::string text = scoreboard_text(board);
  const Scoreboard back = parse_scoreboard(text, "f");
  EXPECT_EQ(scoreboard_text(back), text);
  EXPECT_EQ(back.models, board.models);
  EXPECT_EQ(back.entries.at(row.key).attempt.turns, 3);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("not on a board")));
  validate_json(json::parse(text), document_schema("scoreboard"), "f");
  validate_json(json::parse(line), document_schema("journal_line"), "f");
  // A model without results is not described.
  board.entries.clear();
  EXPECT_EQ(scoreboard_text(board), scoreboard_text({}));
}

TEST(Scoreboard, WhatIsSaidOfModelsIsBroughtUpToDate) {
  Scoreboard board = board_of({awkward_cell()});
  const std::string model = board.entries.begin()->first.model;
  ModelInfo info;
  info.name = "M";
  EXPECT_FALSE(describe(board, {{"another", info}, {model, {}}}));
  EXPECT_TRUE(describe(board, {{model, info}}));
  EXPECT_FALSE(describe(board, {{model, info}}));
  EXPECT_FALSE(describe(board, {}));
  EXPECT_EQ(board.models, (std::map<std::string, ModelInfo>{{model, info}}));
  EXPECT_TRUE(describe(board, {{model, {}}}));
  EXPECT_TRUE(board.models.empty());
}

TEST(Scoreboard, WhatIsWrongAboutWhoAnsweredIsNamedWithItsPlace) {
  Scoreboard board = board_of({awkward_cell()});
  board.models[board.entries.begin()->first.model].link = "https://x";
  board.entries.begin()->second.attempt.turns = 1;
  json j = json::parse(scoreboard_text(board));
  json bad = j;
  bad["models"].begin().value()["link"] = "javascript:x";
  EXPECT_THAT(error_of([&] { board_from_json(bad, "f"); }), HasSubstr("link: expected an address"));
  bad = j;
  bad["entries"][0]["attempt"]["turns"] = "one";
  EXPECT_THAT(error_of([&] { board_from_json(bad, "f"); }),
              HasSubstr("at /entries/0/attempt: turns: expected"));
}

TEST(Scoreboard, ARowOfAJournalIsTheSame) {
  const BoardRow row = awkward_row();
  const std::string text = row_text(row);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(row_text(parse_row(text, "f")), text);
}

TEST(Scoreboard, ACellTakesAFewLinesAndNoMoreThanThreeKilobytes) {
  const std::string one = scoreboard_text(board_of({awkward_cell()}));
  const std::string two =
      scoreboard_text(board_of({awkward_cell(), sample_cell(sample_spec(), "b")}));
  EXPECT_LE(std::count(two.begin(), two.end(), '\n') - std::count(one.begin(), one.end(), '\n'), 7);
  EXPECT_LT(two.size() - one.size(), 3000u);
}

TEST(Scoreboard, AMachineThatMeasuredManyCellsStandsThereOnce) {
  const json j =
      json::parse(scoreboard_text(board_of({awkward_cell(), sample_cell(sample_spec(), "b")})));
  EXPECT_EQ(j.at("machines").size(), 1u);
  EXPECT_EQ(j.at("entries").size(), 2u);
}

GpuMachine sample_gpu() {
  GpuMachine g;
  g.name = "NVIDIA H100 80GB HBM3";
  g.driver = "13.0";
  g.compute_capability = "9.0";
  g.multiprocessors = 132;
  g.memory_bytes = 8.5e10;
  g.ecc = true;
  g.copy_bytes_per_s = 2.5e12;
  g.bf16_flops_per_s = 6e14;
  g.isolation = "landlock+seccomp";
  g.driver_release = "580.95.05";
  g.pci_bus_id = "0000:3b:00.0";
  g.max_sm_mhz = 1980;
  g.mig = false;
  return g;
}

TEST(Scoreboard, TheGpuOfAMachineIsKept) {
  BoardEntry entry = entry_of(sample_cell(sample_spec()));
  entry.cell.key.device = Device::cuda;
  entry.machine.gpu = sample_gpu();
  Scoreboard board;
  merge(board, row_of(entry));
  const std::optional<GpuMachine> gpus[] = {
      parse_evidence(evidence_text({.run_id = "a-run", .entry = entry}), "e").entry.machine.gpu,
      parse_scoreboard(scoreboard_text(board), "s").entries.begin()->second.machine.gpu};
  for (const auto& gpu : gpus) {
    ASSERT_TRUE(gpu);
    EXPECT_EQ(gpu->name, sample_gpu().name);
    EXPECT_EQ(gpu->driver, "13.0");
    EXPECT_EQ(gpu->multiprocessors, 132);
    EXPECT_EQ(gpu->memory_bytes, 8.5e10);
    EXPECT_TRUE(gpu->ecc);
    EXPECT_EQ(gpu->copy_bytes_per_s, 2.5e12);
    EXPECT_EQ(gpu->isolation, "landlock+seccomp");
    EXPECT_EQ(gpu->compute_capability, "9.0");
    EXPECT_EQ(gpu->bf16_flops_per_s, 6e14);
    EXPECT_EQ(gpu->driver_release, "580.95.05");
    EXPECT_EQ(gpu->pci_bus_id, "0000:3b:00.0");
    EXPECT_EQ(gpu->max_sm_mhz, 1980);
    EXPECT_EQ(gpu->mig, false);
  }
}

TEST(Scoreboard, BytesThatAreNotUtf8DoNotStopASave) {
  CellResult cell = sample_cell(sample_spec());
  cell.build.verdict = Verdict::build_error;
  cell.build.log = "error: \xff\xfe";
  EXPECT_NO_THROW(parse_scoreboard(scoreboard_text(board_of({cell})), "f"));
}

TEST(Scoreboard, MalformedFileIsNamedWithItsLine) {
  EXPECT_THAT(error_of([] { parse_scoreboard("{\n \"schema\": 1,\n oops}", "dir/s.json"); }),
              HasSubstr("dir/s.json:3: not valid JSON"));
  EXPECT_THAT(error_of([] { parse_scoreboard("", "s.json"); }), HasSubstr("s.json:1"));
}

TEST(Scoreboard, AnotherSchemaIsRefusedWithTheRemedy) {
  EXPECT_EQ(error_of([] { parse_scoreboard(R"({"schema": 3, "new": []})", "s.json"); }),
            "s.json: written by a newer assay (schema 3); this one reads up to 2: upgrade, or use "
            "another --results");
  EXPECT_THAT(error_of([] { parse_scoreboard("[]", "s.json"); }), HasSubstr("s.json: expected"));
}

TEST(Scoreboard, WhatASchemaCannotStateIsCheckedToo) {
  json j = json::parse(scoreboard_text(board_of({awkward_cell()})));
  j["entries"][0]["cell"]["seed"] = "18446744073709551616";
  EXPECT_THAT(error_of([&] { parse_scoreboard(j.dump(), "s.json"); }),
              StartsWith("s.json: at /entries/0/cell/seed: "));
  json twice = json::parse(scoreboard_text(board_of({awkward_cell()})));
  twice["entries"].push_back(twice["entries"][0]);
  EXPECT_THAT(error_of([&] { parse_scoreboard(twice.dump(), "s.json"); }),
              StartsWith("s.json: at /entries/1: a second entry"));
  json unnamed = json::parse(scoreboard_text(board_of({awkward_cell()})));
  unnamed["entries"][0]["machine"] = "another";
  EXPECT_THAT(error_of([&] { parse_scoreboard(unnamed.dump(), "s.json"); }),
              StartsWith("s.json: at /entries/0/machine: "));
}

TEST(Scoreboard, EveryCodeCanBeReadBack) {
  for (int i = 0; i <= static_cast<int>(Verdict::ok); ++i)
    EXPECT_EQ(verdict_from_code(code(static_cast<Verdict>(i))), static_cast<Verdict>(i));
  for (int i = 0; i <= static_cast<int>(TestVerdict::not_run); ++i)
    EXPECT_EQ(test_verdict_from_code(code(static_cast<TestVerdict>(i))),
              static_cast<TestVerdict>(i));
  for (int i = 0; i <= static_cast<int>(Note::Kind::needs_gpu); ++i)
    EXPECT_EQ(note_kind_from_code(code(static_cast<Note::Kind>(i))), static_cast<Note::Kind>(i));
  EXPECT_FALSE(verdict_from_code("AC"));
}

// --- the schema --------------------------------------------------------------

// One of each kind of document.
std::vector<std::pair<std::string, json>> documents() {
  const BoardRow row = awkward_row();
  Scoreboard board = board_of({awkward_cell()});
  board.entries.begin()->second.score.modelled_on = "H200";
  board.entries.begin()->second.score.gpu_sheet = "sheet-hash";
  board.entries.begin()->second.score.flags = {{Note::Kind::stolen_time, "a flag"}};
  std::vector<std::pair<std::string, json>> all{
      {"scoreboard", json::parse(scoreboard_text(board))},
      {"journal_line", json::parse(row_text(row))},
      {"evidence", json::parse(evidence_text({"a-run", entry_of(awkward_cell())}))}};
  const testing::TemporaryFolder folder;
  store::RunStart start;
  start.run_id = "id";
  start.options = {{"quick", true}, {"models", {"textbook"}}};
  store::RunLog log = store::RunLog::begin(folder.path, start);
  log.add(store::run_cell(row, Arrival::added));
  log.finish();
  std::istringstream lines(read_file(log.path()));
  for (std::string line; std::getline(lines, line);)
    all.emplace_back("run_line", json::parse(line));
  return all;
}

TEST(ScoreboardSchema, AcceptsWhatIsWritten) {
  EXPECT_EQ(documents().size(), 6u);
  for (const auto& [kind, j] : documents()) {
    EXPECT_NO_THROW(validate_json(j, document_schema(kind), "f")) << kind;
    EXPECT_NO_THROW(validate_json(j, kScoreboardSchema, "f")) << kind;
  }
  EXPECT_NO_THROW(validate_json(json::parse(scoreboard_text({})), kScoreboardSchema, "f"));
}

// Every object of a document, by JSON pointer, except those with free keys.
void collect_objects(const json& j, const std::string& at, std::vector<std::string>& found) {
  if (at.ends_with("/options")) return;
  if (j.is_object() && !at.ends_with("/machines")) found.push_back(at);
  if (!j.is_structured()) return;
  for (const auto& [key, value] : j.items())
    collect_objects(value, fmt::format("{}/{}", at, key), found);
}

TEST(ScoreboardSchema, RejectsUnknownKeysEverywhere) {
  for (const auto& [kind, document] : documents()) {
    std::vector<std::string> objects;
    collect_objects(document, "", objects);
    for (const std::string& at : objects) {
      json changed = document;
      changed[json::json_pointer(at)]["unheard_of"] = 1;
      EXPECT_THROW(validate_json(changed, kScoreboardSchema, "f"), Error) << kind << at;
      if (kind != "scoreboard") continue;
      EXPECT_EQ(error_of([&] { parse_scoreboard(changed.dump(), "f"); }),
                "f: at " + at + "/unheard_of: unknown");
    }
  }
}

TEST(ScoreboardSchema, ReaderAndSchemaWantTheSameKeys) {
  const json document = documents().front().second;
  std::vector<std::string> objects;
  collect_objects(document, "", objects);
  EXPECT_GT(objects.size(), 10u);
  for (const std::string& at : objects) {
    const json& object = document.at(json::json_pointer(at));
    for (const auto& [key, value] : object.items()) {
      json changed = document;
      changed[json::json_pointer(at)].erase(key);
      const bool schema = error_of([&] {
                            validate_json(changed, document_schema("scoreboard"), "f");
                          }) == "no error";
      const std::string reader = error_of([&] { parse_scoreboard(changed.dump(), "f"); });
      EXPECT_EQ(schema, reader == "no error") << at << " " << key << ": " << reader;
      const bool optional = key == "modelled_on" || key == "gpu_sheet" || key == "revision" ||
                            key == "target" || key == "failed" || at.ends_with("/failed");
      EXPECT_EQ(schema, optional) << at << " " << key;
    }
  }
}

TEST(ScoreboardSchema, ReaderAndSchemaRejectWrongValues) {
  const json document = documents().front().second;
  const std::string machine =
      "/machines/" + document.at("entries").at(0).at("machine").get<std::string>();
  const std::pair<std::string, json> kMutations[] = {
      {"/schema", 0},
      {"/kind", "run"},
      {"/entries", json::object()},
      {"/machines", json::array()},
      {machine + "/cores", -1},
      {machine + "/cores", 1.5},
      {machine + "/cpu", 1},
      {machine + "/copy_bytes_per_s", "fast"},
      {"/entries/0", 1},
      {"/entries/0/cell/model", ""},
      {"/entries/0/cell/model", nullptr},
      {"/entries/0/cell/device", "gpu"},
      {"/entries/0/cell/seed", 42},
      {"/entries/0/cell/seed", "-1"},
      {"/entries/0/cell/seconds", "1"},
      {"/entries/0/cell/seconds", nullptr},
      {"/entries/0/score", json::array()},
      {"/entries/0/score/verdict", "AC"},
      {"/entries/0/score/total", "A"},
      {"/entries/0/score/capped", "no"},
      {"/entries/0/score/interval", {1}},
      {"/entries/0/score/interval", {1, "x"}},
      {"/entries/0/score/dimensions", json::object()},
      {"/entries/0/score/dimensions/0", "style"},
      {"/entries/0/score/dimensions/0/max", nullptr},
      {"/entries/0/score/speeds/0/ratio_to_par", true},
      {"/entries/0/score/speeds/0/ratio_to_par", 0},
      {"/entries/0/score/speeds/0/ratio_to_par", "nan"},
      {"/entries/0/score/speeds/0/ratio_to_naive", -2},
      {"/entries/0/score/speeds/0/ratio_interval", {0, 1}},
      {"/entries/0/score/flags", "quick"},
      {"/entries/0/score/flags", {1}},
      {"/entries/0/score/flags/0/kind", "unheard_of"},
      {"/entries/0/score/modelled_on", 1},
      {"/entries/0/score/gpu_sheet", 1},
      {"/entries/0/cell/revision", "1"},
      {"/entries/0/cell/revision", -1},
      {"/entries/0/reason", 1},
      {"/entries/0/failed", json::array()},
      {"/entries/0/failed/WA", "core_a"},
      {"/entries/0/failed/WA", {1}},
      {"/entries/0/machine", 1},
      {"/entries/0/evidence/sha256", nullptr},
  };
  for (const auto& [at, value] : kMutations) {
    json changed = document;
    changed.at(json::json_pointer(at)) = value;
    EXPECT_THROW(validate_json(changed, document_schema("scoreboard"), "f"), Error) << at;
    EXPECT_THAT(error_of([&] { parse_scoreboard(changed.dump(), "f"); }),
                at == "/schema" ? HasSubstr("f: expected \"schema\"") : HasSubstr("f: at " + at));
  }
}

// --- merge -------------------------------------------------------------------

BoardRow finished_at(const std::string& time, CellResult cell) {
  cell.finished_at = time;
  return row_of(entry_of(std::move(cell)));
}

BoardRow full(const std::string& time) { return finished_at(time, sample_cell(sample_spec())); }

BoardRow quick(const std::string& time, const std::string& source_hash = "source-hash") {
  CellResult cell = testing::quick_cell(sample_spec(), "textbook");
  cell.build.source_hash = source_hash;
  return finished_at(time, cell);
}

// The board after all rows have arrived, by time.
std::string after(const std::vector<BoardRow>& rows) {
  Scoreboard board;
  for (const BoardRow& row : rows) merge(board, row);
  return board.entries.begin()->second.finished_at;
}

TEST(Merge, TheNewestMeasurementCounts) {
  Scoreboard board;
  EXPECT_EQ(merge(board, full("2")), Arrival::added);
  EXPECT_EQ(merge(board, full("2")), Arrival::same);
  EXPECT_EQ(merge(board, full("1")), Arrival::older);
  EXPECT_EQ(merge(board, full("3")), Arrival::replaced);
  EXPECT_EQ(board.entries.begin()->second.finished_at, "3");
}

TEST(Merge, OfTwoOfTheSameSecondTheLaterToCome) {
  CellResult worse = sample_cell(sample_spec());
  case_of(worse, "core_a").verdict = Verdict::wrong_answer;
  Scoreboard board;
  merge(board, full("1"));
  EXPECT_EQ(merge(board, finished_at("1", worse)), Arrival::replaced);
  EXPECT_EQ(board.entries.begin()->second.score.total, 59);
}

TEST(Merge, AQuickRunDoesNotDisplaceAFullOneOfTheSameSources) {
  Scoreboard board;
  merge(board, full("1"));
  EXPECT_EQ(merge(board, quick("2")), Arrival::lesser);
  EXPECT_TRUE(board.entries.begin()->second.score.flags.empty());
  // The sources differ: the old score does not apply to them.
  EXPECT_EQ(merge(board, quick("2", "edited")), Arrival::replaced);
  EXPECT_EQ(merge(board, quick("3", "edited")), Arrival::replaced);
}

TEST(Merge, AHarnessErrorDoesNotDisplaceAScore) {
  Scoreboard board;
  merge(board, full("1"));
  CellResult broken = sample_cell(sample_spec());
  broken.build.verdict = Verdict::harness_error;
  EXPECT_EQ(merge(board, finished_at("2", broken)), Arrival::lesser);
  EXPECT_TRUE(board.entries.begin()->second.score.total);
}

BoardRow of_revision(int revision, BoardRow row) {
  row.revision = revision;
  row.evidence.sha256 += std::to_string(revision);
  return row;
}

TEST(Merge, RevisionsThatCompareAreAsOne) {
  // Of a device with several of them: the last change may have left only one for the others.
  const auto compares_with_older = [](Device d) {
    return oldest_comparable(d) < kMeasurementRevision;
  };
  const std::array devices{Device::cpu, Device::sim, Device::cuda};
  const auto device = std::ranges::find_if(devices, compares_with_older);
  if (device == devices.end()) GTEST_SKIP() << "only one revision compares on any device";
  const auto row = [&](int revision, BoardRow r) {
    r.key.device = *device;
    return of_revision(revision, std::move(r));
  };
  const int oldest = oldest_comparable(*device);
  Scoreboard board;
  merge(board, row(oldest, full("1")));
  EXPECT_EQ(merge(board, row(kMeasurementRevision, quick("2"))), Arrival::lesser);
  EXPECT_EQ(merge(board, row(kMeasurementRevision, full("2"))), Arrival::replaced);
  EXPECT_EQ(merge(board, row(oldest, full("1"))), Arrival::older);
  EXPECT_EQ(merge(board, row(oldest, full("3"))), Arrival::replaced);
  EXPECT_EQ(merge(board, row(oldest - 1, full("4"))), Arrival::older);
}

TEST(Merge, ARevisionThatDoesNotCompareCountsByItsAgeAlone) {
  Scoreboard board;
  merge(board, of_revision(1, full("9")));
  EXPECT_EQ(merge(board, of_revision(2, quick("1"))), Arrival::replaced);
  EXPECT_EQ(merge(board, of_revision(1, full("9"))), Arrival::older);
  EXPECT_EQ(merge(board, of_revision(0, full("10"))), Arrival::older);
  EXPECT_EQ(merge(board, of_revision(2, full("0"))), Arrival::replaced);
  EXPECT_EQ(board.entries.begin()->second.finished_at, "0");
}

TEST(Scoreboard, ARowWithoutARevisionIsOfNone) {
  const json with = json::parse(row_text(full("1")));
  EXPECT_EQ(with.at("cell").at("revision"), kMeasurementRevision);
  json without = with;
  without["cell"].erase("revision");
  EXPECT_EQ(parse_row(without.dump(), "f").revision, 0);
}

TEST(Merge, TheOrderDoesNotMatter) {
  EXPECT_EQ(after({of_revision(1, full("1")), of_revision(0, full("2"))}), "1");
  EXPECT_EQ(after({of_revision(0, full("2")), of_revision(1, full("1"))}), "1");
  EXPECT_EQ(after({full("1"), quick("2")}), "1");
  EXPECT_EQ(after({quick("2"), full("1")}), "1");
  EXPECT_EQ(after({full("1"), full("2"), quick("3")}), "2");
  EXPECT_EQ(after({quick("3"), full("2"), full("1")}), "2");
}

// The contents of a journal and a board after a kill that kept both.
TEST(Merge, TheSameRowsOnceMoreChangeNothing) {
  const std::vector<std::vector<BoardRow>> kJournals{
      {full("1"), full("2")},
      {full("1"), quick("2", "edited"), quick("3")},
      {quick("1"), full("2"), quick("3", "edited"), full("4")},
  };
  for (const std::vector<BoardRow>& journal : kJournals) {
    Scoreboard board;
    for (const BoardRow& row : journal) EXPECT_TRUE(is_placed(merge(board, row)));
    const std::string text = scoreboard_text(board);
    for (const BoardRow& row : journal) merge(board, row);
    EXPECT_EQ(scoreboard_text(board), text);
  }
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
