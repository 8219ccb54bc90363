#include "store/result_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <random>
#include <regex>
#include <thread>

#include "store/cell_path.h"
#include "store/evidence_file.h"
#include "store/line_file.h"
#include "store_samples.h"
#include "support/child_process.h"
#include "support/error_of.h"
#include "util/files.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::ChildProcess;
using testing::entry_at;
using ::testing::HasSubstr;
using testing::key_of;
using ::testing::Pair;
using testing::quick_entry_at;
using testing::run_start;
using testing::times;
using ::testing::UnorderedElementsAre;

class ResultStoreTest : public ::testing::Test {
 protected:
  // What find_evidence reports for each cell of the board with a problem.
  std::vector<std::string> problems() const {
    std::vector<std::string> all;
    for (const auto& [key, row] : read_board(folder).entries) {
      const FoundEvidence found = find_evidence(folder, row.evidence);
      if (!found.problem.empty()) all.push_back(found.problem);
    }
    return all;
  }
  testing::TemporaryFolder temporary;
  const fs::path& folder = temporary.path;
};

TEST_F(ResultStoreTest, AFinishedCellIsOnDisk) {
  ResultStore store(folder);
  store.start(run_start("r"));
  EXPECT_EQ(store.add(entry_at("a", "1")), Arrival::added);
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "1")));
  const BoardRow row = read_board(folder).entries.at(key_of("a"));
  EXPECT_EQ(row.evidence.path, "cells/a/layer_norm_backward/cpu.json");
  EXPECT_EQ(find_evidence(folder, row.evidence).text, evidence_text({"r", entry_at("a", "1")}));
  const RunRecord run = read_run(store.run_path());
  EXPECT_FALSE(run.finished);
  ASSERT_EQ(run.cells.size(), 1u);
  EXPECT_EQ(run.cells.at(key_of("a")).source_hash, "source-hash");
  EXPECT_EQ(run.cells.at(key_of("a")).total, row.score.total);
  EXPECT_EQ(run.cells.at(key_of("a")).evidence.path, row.evidence.path);
  store.finish();
  EXPECT_TRUE(read_run(store.run_path()).finished);
}

TEST_F(ResultStoreTest, KnowsHowTheLastRunEnded) {
  using enum ResultStore::LastRun;
  EXPECT_EQ(ResultStore(folder).last_run(), none);
  {
    ResultStore store(folder);
    store.start(run_start("r"));
    EXPECT_EQ(ResultStore(folder).last_run(), unfinished);
    store.finish();
  }
  EXPECT_EQ(ResultStore(folder).last_run(), finished);
  // A file that a kill left without a complete first line is ignored.
  write_file_atomically(folder / "runs" / "s.jsonl", "{\"schema\"");
  EXPECT_EQ(ResultStore(folder).last_run(), finished);
}

// As on a network file system where a dead node still holds its locks.
TEST_F(ResultStoreTest, ASoleWriterGoesOnDespiteTheLocksOfOneThatDied) {
  ResultStore dead(folder);
  dead.start(run_start("r"));
  dead.add(entry_at("a", "1"));
  const FolderLock of_the_dead(folder);
  EXPECT_THAT(testing::error_of([&] { ResultStore(folder).resume(20ms); }),
              HasSubstr("nothing to resume"));
  ResultStore store(folder, Writers::one);
  EXPECT_EQ(store.resume(20ms).cells.size(), 1u);
  EXPECT_EQ(store.add(entry_at("b", "1")), Arrival::added);
  store.finish();
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "1"), Pair("b", "1")));
}

TEST_F(ResultStoreTest, ASmallBoardIsWrittenWholeAtOnceALargeOneAtTheEnd) {
  ResultStore store(folder);
  store.start(run_start("r"));
  for (std::size_t i = 0; i <= kSmallBoard; ++i) {
    EXPECT_FALSE(fs::exists(journal_path(folder))) << i;
    store.add(entry_at("m" + std::to_string(i), "1"));
  }
  EXPECT_EQ(read_lines(journal_path(folder)).lines.size(), 1u);
  store.finish();
  EXPECT_FALSE(fs::exists(journal_path(folder)));
  EXPECT_EQ(read_board(folder).entries.size(), kSmallBoard + 1);
}

TEST_F(ResultStoreTest, ALesserResultLeavesBoardAndEvidenceAlone) {
  ResultStore store(folder);
  store.start(run_start("r"));
  store.add(entry_at("a", "1"));
  EXPECT_EQ(store.add(quick_entry_at("a", "2")), Arrival::lesser);
  RunCell cell = read_run(store.run_path()).cells.at(key_of("a"));
  EXPECT_EQ(cell.arrival, Arrival::lesser);
  EXPECT_EQ(cell.evidence.path, "runs/r/a/layer_norm_backward/cpu.json");
  EXPECT_TRUE(fs::exists(folder / cell.evidence.path));
  EXPECT_EQ(store.add(entry_at("a", "0")), Arrival::older);
  cell = read_run(store.run_path()).cells.at(key_of("a"));
  EXPECT_EQ(cell.arrival, Arrival::older);
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "1")));
  EXPECT_TRUE(problems().empty());
}

TEST_F(ResultStoreTest, NamesThatAreNotTextAreRefused) {
  ResultStore store(folder);
  store.start(run_start("r"));
  EXPECT_THAT(testing::error_of([&] { store.add(entry_at("m\xff", "1")); }),
              HasSubstr("'m\\xff' is not plain text"));
}

TEST_F(ResultStoreTest, AFolderThatCannotBeWrittenIsNamed) {
  write_file_atomically(folder / "file", "x");
  EXPECT_THAT(testing::error_of([&] { ResultStore store(folder / "file"); }),
              HasSubstr((folder / "file").string()));
}

// --- runs --------------------------------------------------------------------

TEST_F(ResultStoreTest, TheNewestUnfinishedRunIsResumed) {
  for (const char* id : {"1", "2", "3"}) {
    ResultStore store(folder);
    store.start(run_start(id));
    store.add(entry_at("a", id));
    if (id[0] == '3') store.finish();
  }
  ResultStore store(folder);
  const RunRecord& run = store.resume();
  EXPECT_EQ(run.start.run_id, "2");
  EXPECT_EQ(run.start.seed, 42u);
  EXPECT_EQ(run.start.options.at("models").at(0), "textbook");
  EXPECT_EQ(run.cells.size(), 1u);
  store.add(entry_at("b", "4"));
  store.finish();
  EXPECT_EQ(read_run(folder / "runs" / "2.jsonl").cells.size(), 2u);
}

TEST_F(ResultStoreTest, ARunThatIsRunningIsNotResumed) {
  ResultStore running(folder);
  running.start(run_start("1"));
  ResultStore other(folder);
  EXPECT_THAT(testing::error_of([&] { other.resume(20ms); }), HasSubstr("nothing to resume"));
}

TEST_F(ResultStoreTest, AChildOfAKilledRunDelaysItsResumeNoMoreThanAMoment) {
  ChildProcess run([&](const ChildProcess& self) {
    ResultStore store(folder);
    store.start(run_start("1"));
    if (::fork() == 0) {
      ::usleep(200000);
      ::_exit(0);
    }
    self.signal();
    ::pause();
  });
  ASSERT_TRUE(run.wait_for_signal());
  run.kill();
  ResultStore store(folder);
  EXPECT_EQ(testing::error_of([&] { store.resume(); }), "no error");
}

TEST_F(ResultStoreTest, TwoRunsOfTheSameSecondAndSeedHaveRecordsOfTheirOwn) {
  ResultStore a(folder), b(folder);
  a.start(run_start("1"));
  b.start(run_start("1"));
  a.add(entry_at("a", "1"));
  b.add(entry_at("b", "1"));
  EXPECT_NE(a.run_path(), b.run_path());
  EXPECT_TRUE(read_run(a.run_path()).cells.contains(key_of("a")));
  EXPECT_FALSE(read_run(a.run_path()).cells.contains(key_of("b")));
  EXPECT_EQ(read_run(b.run_path()).start.run_id, "1-2");
}

TEST_F(ResultStoreTest, ARunKilledBeforeItsFirstLineIsNoRun) {
  { ResultStore make_folders(folder); }
  write_file_atomically(folder / "runs" / "1.jsonl", "{\"schema\": 2, \"kin");
  ResultStore store(folder);
  EXPECT_THAT(testing::error_of([&] { store.resume(); }), HasSubstr("nothing to resume"));
}

TEST_F(ResultStoreTest, AnUnfinishedRunOfSchema1IsRefusedInWords) {
  ResultStore store(folder);
  const fs::path old = folder / "runs" / "1.json";
  write_file_atomically(old, R"({"schema": 1, "kind": "run", "finished": false})");
  const std::string error = testing::error_of([&] { store.resume(); });
  EXPECT_THAT(error, HasSubstr(old.string() + " was begun by an older assay"));
  write_file_atomically(old, R"({"schema": 1, "kind": "run", "finished": true})");
  EXPECT_THAT(testing::error_of([&] { store.resume(); }), HasSubstr("nothing to resume"));
}

// --- what a kill leaves ------------------------------------------------------

TEST_F(ResultStoreTest, EvidenceThatReachedNeitherBoardNorRecordIsAdopted) {
  {
    ResultStore store(folder);
    store.start(run_start("1"));
  }
  write_evidence(folder, evidence_path(key_of("a")), evidence_text({"1", entry_at("a", "5")}));
  write_evidence(folder, evidence_path(key_of("b")), evidence_text({"0", entry_at("b", "5")}));
  ResultStore store(folder);
  store.resume();
  EXPECT_TRUE(store.adopt(key_of("a")));
  EXPECT_FALSE(store.adopt(key_of("b")));  // of another run
  EXPECT_FALSE(store.adopt(key_of("c")));
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "5")));
  EXPECT_EQ(read_run(store.run_path()).cells.size(), 1u);
  EXPECT_FALSE(store.adopt(key_of("a")));
  EXPECT_EQ(read_lines(store.run_path()).lines.size(), 2u);
}

TEST_F(ResultStoreTest, ACellMeasuredAgainInTheSameRunIsAdopted) {
  {
    ResultStore store(folder);
    store.start(run_start("1"));
    store.add(entry_at("a", "5"));
  }
  write_evidence(folder, evidence_path(key_of("a")), evidence_text({"1", entry_at("a", "6")}));
  ResultStore store(folder);
  store.resume();
  EXPECT_TRUE(store.adopt(key_of("a")));
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "6")));
}

TEST_F(ResultStoreTest, LesserEvidenceIsAdoptedToo) {
  ResultStore(folder).start(run_start("0"));
  {
    ResultStore store(folder);
    store.start(run_start("1"));
    store.add(entry_at("a", "5"));
  }
  const std::string path = evidence_path(key_of("b"), "1");
  write_evidence(folder, path, evidence_text({"1", quick_entry_at("b", "6")}));
  ResultStore store(folder);
  store.resume();
  EXPECT_TRUE(store.adopt(key_of("b")));
}

// Stores the cells of a run, telling the parent about each once it is stored.
constexpr int kCells = 80;  // more than a board takes that is rewritten whole each time

std::string model(int i) { return "model" + std::to_string(i); }

void work(const fs::path& folder, const std::string& round, bool resume, const ChildProcess& self) {
  ResultStore store(folder);
  if (resume) {
    store.resume();
  } else {
    store.start(run_start(round));
  }
  for (int i = 0; i < kCells; ++i) {
    const CellKey key = key_of(model(i));
    if (store.run().cells.contains(key) || store.adopt(key)) continue;
    store.add(entry_at(model(i), round));
    self.signal();
  }
  store.finish();
}

// The evidence names its run. A run that was killed as it began does not pass on its name: the next
// one is "0007-2". problems() checks the hashes themselves.
std::string without_hashes(const Scoreboard& board) {
  static const std::regex hash(R"("sha256":"[0-9a-f]*")");
  return std::regex_replace(scoreboard_text(board), hash, "");
}

bool can_be_resumed(const fs::path& folder) {
  ResultStore store(folder);
  return testing::error_of([&] { store.resume(); }) == "no error";
}

// Kills hundreds of writers at random moments. After each kill every file is whole and nothing that
// was stored is missing. After each run, killed and resumed many times, all of its cells are there.
// In the end the board is the same as that of an undisturbed run.
TEST_F(ResultStoreTest, KillsAtAnyMomentLoseNothing) {
  constexpr int kKills = 300;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> microseconds(0, 20000);
  std::string round;
  for (int kills = 0, rounds = 1; kills < kKills; ++rounds) {
    round = fmt::format("{:04}", rounds);
    int stored = 0;
    for (bool begun = false, done = false; !done;) {
      ChildProcess writer([&](const ChildProcess& self) { work(folder, round, begun, self); });
      if (kills < kKills) {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
        writer.kill();
        ++kills;
      } else {
        ASSERT_EQ(writer.wait(), 0);
      }
      while (writer.wait_for_signal()) ++stored;
      const auto of_round = std::ranges::count(times(read_board(folder)), round,
                                               [](const auto& cell) { return cell.second; });
      ASSERT_GE(of_round, stored) << "cells that were stored are lost after kill " << kills;
      ASSERT_LE(problems().size(), 1u);  // the cell that was being replaced
      begun = can_be_resumed(folder);
      done = !begun && of_round > 0;
      if (!done) continue;
      ASSERT_EQ(of_round, kCells) << "a finished run lacks cells after kill " << kills;
    }
  }
  EXPECT_EQ(problems(), std::vector<std::string>{});
  const testing::TemporaryFolder calm;
  ChildProcess undisturbed([&](const ChildProcess& self) { work(calm.path, round, false, self); });
  EXPECT_EQ(undisturbed.wait(), 0);
  EXPECT_EQ(without_hashes(read_board(folder)), without_hashes(read_board(calm.path)));
  for (const auto& file : fs::recursive_directory_iterator(folder / "cells"))
    EXPECT_TRUE(file.is_directory() || file.path().extension() == ".json") << file.path();
}

TEST_F(ResultStoreTest, TwoRunsInOneFolderKeepEachOthersCells) {
  constexpr int kOwn = 24;
  const auto run = [&](const std::string& name) {
    return [&folder = folder, name](const ChildProcess&) {
      ResultStore store(folder);
      store.start(run_start(name));
      for (int i = 0; i < kOwn; ++i) {
        store.add(entry_at(name + std::to_string(i), "1"));
        if (i % 4 == 0) store.add(entry_at("both" + std::to_string(i), name));
      }
      store.finish();
    };
  };
  ChildProcess a(run("a")), b(run("b"));
  EXPECT_EQ(a.wait(), 0);
  EXPECT_EQ(b.wait(), 0);
  const Scoreboard board = read_board(folder);
  EXPECT_EQ(board.entries.size(), 2u * kOwn + kOwn / 4);
  for (const auto& [name, time] : times(board))
    EXPECT_EQ(time, name[0] == 'b' && name[1] == 'o' ? "b" : "1");
  EXPECT_TRUE(problems().empty());
}

// A limit on file sizes simulates a full disk.
TEST_F(ResultStoreTest, AFullDiskLosesNothing) {
  {
    ResultStore store(folder);
    store.start(run_start("1"));
    store.add(entry_at("a", "1"));
    store.finish();
  }
  ChildProcess full([&](const ChildProcess&) {
    ResultStore store(folder);
    store.start(run_start("2"));
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4000, 4000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error = testing::error_of([&] { store.add(entry_at("b", "2")); });
    if (error.find("File too large") == std::string::npos) ::_exit(3);
  });
  EXPECT_EQ(full.wait(), 0);
  EXPECT_THAT(times(read_board(folder)), UnorderedElementsAre(Pair("a", "1")));
  EXPECT_TRUE(problems().empty());
}

}  // namespace
}  // namespace assay::store
