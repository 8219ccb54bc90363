#include "store/migrate.h"

#include <fmt/format.h>

#include <fstream>

#include "grade/documents.h"
#include "grade/evidence.h"
#include "spec/json_schema.h"
#include "store/board_file.h"
#include "store/cell_path.h"
#include "store/evidence_file.h"
#include "store/folder_lock.h"
#include "util/stop.h"

namespace assay::store {
namespace {

// Whether the file begins as this program writes it: most do, and a large one is not parsed for its
// number alone.
bool is_of_today(const std::filesystem::path& path) {
  const std::string start = fmt::format("{{\n \"schema\": {},\n", Scoreboard::kSchema);
  std::string begins(start.size(), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(begins.data(), static_cast<std::streamsize>(begins.size()));
  return begins == start;
}

}  // namespace

std::string migrate(const std::filesystem::path& folder) {
  const std::filesystem::path path = board_path(folder);
  if (!std::filesystem::exists(path)) return "";
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

}  // namespace assay::store
