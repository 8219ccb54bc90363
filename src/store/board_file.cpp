#include "store/board_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "assay/error.h"
#include "records/documents.h"
#include "records/evidence.h"
#include "records/scoreboard.h"
#include "spec/json_schema.h"
#include "store/cell_path.h"
#include "store/evidence_file.h"
#include "store/folder_lock.h"
#include "store/line_file.h"
#include "util/files.h"

namespace assay::store {
namespace fs = std::filesystem;
namespace {

// Every evidence file has exactly one valid place. A board that names another was not written by
// this program, and following it would read a file of the author's choice.
void require_own_evidence(const BoardRow& row, const std::string& file) {
  const std::string expected = evidence_path(row.key);
  if (row.evidence.path == expected) return;
  throw Error(fmt::format("{}: the evidence of {} {} should lie in {}, not in {}", file,
                          row.key.model, row.key.challenge, expected, row.evidence.path));
}

Scoreboard converted(const nlohmann::json& j, const std::string& file) {
  Scoreboard board;
  for (BoardEntry& e : read_scoreboard_1(j, file)) {
    const Evidence evidence{"", std::move(e)};
    merge(board, row_of(evidence, evidence_path(evidence.entry.cell.key)));
  }
  return board;
}

Scoreboard read_scoreboard(const fs::path& path) {
  if (!fs::exists(path)) return {};
  const std::string file = path.string();
  if (!fs::is_regular_file(path)) throw Error(file + " is not a file");
  const nlohmann::json j = parse_json(read_file(path), file);
  if (schema_of(j) == 1) return converted(j, file);
  Scoreboard board = board_from_json(j, file);
  for (const auto& [key, row] : board.entries) require_own_evidence(row, file);
  return board;
}

// `before`: how many journal lines came before these.
void merge_lines(Scoreboard& board, const Lines& journal, const fs::path& path,
                 std::size_t before = 0) {
  for (std::size_t i = 0; i < journal.lines.size(); ++i) {
    const std::string place = fmt::format("{}:{}", path.string(), before + i + 1);
    try {
      BoardRow row = parse_row(journal.lines[i], place);
      require_own_evidence(row, place);
      merge(board, std::move(row));
    } catch (const Error& e) {
      throw Error(fmt::format("{}; without that line the board lacks that cell", e.what()));
    }
  }
}

}  // namespace

fs::path board_path(const fs::path& folder) { return folder / "scoreboard.json"; }

fs::path journal_path(const fs::path& folder) { return folder / "scoreboard.journal"; }

Scoreboard read_board(const fs::path& folder) {
  const Lines journal = read_lines(journal_path(folder));
  Scoreboard board = read_scoreboard(board_path(folder));
  merge_lines(board, journal, journal_path(folder));
  return board;
}

BoardFile::BoardFile(fs::path folder) : folder_(std::move(folder)) { read(); }

BoardFile::Identity BoardFile::identity(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) fail_with_errno("look at", path);
    return {};
  }
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size = static_cast<std::uint64_t>(info.st_size),
          .modified_ns = info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec};
}

void BoardFile::read() {
  read_from_ = identity(board_path(folder_));
  board_ = read_scoreboard(board_path(folder_));
  journal_end_ = journal_lines_ = 0;
  replay();
}

void BoardFile::replay() {
  const Lines journal = read_lines(journal_path(folder_), journal_end_);
  merge_lines(board_, journal, journal_path(folder_), journal_lines_);
  journal_lines_ += journal.lines.size();
  journal_end_ = journal.end;
}

void BoardFile::refresh() {
  std::error_code missing;
  const auto journal_size = fs::file_size(journal_path(folder_), missing);
  const bool cut = (missing ? 0 : journal_size) < journal_end_;
  if (cut || identity(board_path(folder_)) != read_from_) {
    read();
  } else {
    replay();
  }
}

void BoardFile::append(BoardRow row) {
  journal_end_ = append_line(journal_path(folder_), row_text(row));
  ++journal_lines_;
  merge(board_, std::move(row));
}

void BoardFile::write(const Scoreboard& board) {
  write_file_alone(board_path(folder_), scoreboard_text(board));
  fs::remove(journal_path(folder_));  // harmless if a power cut brings it back
  if (&board != &board_) board_ = board;
  read_from_ = identity(board_path(folder_));
  journal_end_ = journal_lines_ = 0;
}

void describe_models(const fs::path& folder, const std::map<std::string, ModelInfo>& today) {
  const FolderLock lock(folder);
  BoardFile file(folder);
  Scoreboard board = file.board();
  if (describe(board, today)) file.write(board);
}

}  // namespace assay::store
