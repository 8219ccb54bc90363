#include "store/migrate.h"

#include <fmt/format.h>

#include <fstream>
#include <string_view>

#include "records/documents.h"
#include "records/evidence.h"
#include "records/lookup.h"
#include "spec/json_schema.h"
#include "store/board_file.h"
#include "store/cell_path.h"
#include "store/evidence_file.h"
#include "store/folder_lock.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::store {
namespace {

// Whether the file begins as this program writes it. Most do, and this avoids parsing a large file
// just for its schema number.
bool is_of_today(const std::filesystem::path& path) {
  const std::string start = fmt::format("{{\n \"schema\": {},\n", Scoreboard::kSchema);
  std::string begins(start.size(), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(begins.data(), static_cast<std::streamsize>(begins.size()));
  return begins == start;
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size())
    ++count;
  return count;
}

// Whether cells of the file lack their failed cases, which older boards did not keep. In files
// written by this program, each cell begins like this and each list has its own line.
bool lacks_failed_cases(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  return count_of(text, "\n  {\"cell\": ") > count_of(text, "\n   \"failed\": ");
}

// Takes the missing lists from the stored evidence. For cells without evidence they stay unknown.
std::size_t complete_failed_cases(const std::filesystem::path& folder) {
  const FolderLock lock(folder);
  BoardFile file(folder);
  Scoreboard board = file.board();
  std::size_t completed = 0;
  for (auto& [key, row] : board.entries) {
    if (row.failed) continue;
    check_stop();
    const FoundEvidence found = find_evidence(folder, row.evidence);
    if (!found.problem.empty()) continue;
    const std::string name = (folder / row.evidence.path).string();
    row.failed = failed_cases(parse_evidence(found.text, name).entry.cell);
    ++completed;
  }
  if (completed > 0) file.write(board);
  return completed;
}

std::string migrate_schema_1(const std::filesystem::path& folder) {
  const std::filesystem::path path = board_path(folder);
  const auto document = [&] { return parse_json(read_file(path), path.string()); };
  if (is_of_today(path) || schema_of(document()) != 1) return "";
  const FolderLock lock(folder);
  const nlohmann::json j = document();
  if (schema_of(j) != 1) return "";  // another process was faster
  BoardFile board(folder);
  const std::vector<BoardEntry> entries = read_scoreboard_1(j, path.string());
  for (const BoardEntry& e : entries) {
    check_stop();
    write_evidence(folder, evidence_path(e.cell.key), evidence_text({"", e}));
  }
  board.write();
  return fmt::format(
      "{} was of schema 1: rewritten as schema {}, the evidence of its {} cells now lies in {}\n",
      path.string(), Scoreboard::kSchema, entries.size(), (folder / "cells").string());
}

}  // namespace

std::string migrate(const std::filesystem::path& folder) {
  const std::filesystem::path path = board_path(folder);
  if (!std::filesystem::exists(path)) return "";
  std::string done = migrate_schema_1(folder);
  if (!done.empty() || !is_of_today(path) || !lacks_failed_cases(path)) return done;
  const std::size_t completed = complete_failed_cases(folder);
  if (completed == 0) return "";
  return fmt::format("{}: took the failed cases of {} cells from their evidence\n", path.string(),
                     completed);
}

}  // namespace assay::store
