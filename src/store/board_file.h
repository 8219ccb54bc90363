// The board on disk: scoreboard.json, and a journal of the cells that came later.
//
// A cell is appended to the journal, which costs the same however large the board is. From time to
// time the whole board is written and the journal removed. A kill in between leaves cells in both;
// merging them again changes nothing. A reader needs no lock: it reads the journal first, so a cell
// that moves from the journal to the board is found in at least one of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "assay/results.h"

namespace assay::store {

std::filesystem::path board_path(const std::filesystem::path& folder);    // scoreboard.json
std::filesystem::path journal_path(const std::filesystem::path& folder);  // scoreboard.journal

// The board of a results folder, empty if there is none. Throws Error naming the file. A board of
// schema 1 is converted in memory, with no evidence stored yet: see migrate.h.
Scoreboard read_board(const std::filesystem::path& folder);

// The board as one writer holds it in memory while others write too.
class BoardFile {
 public:
  explicit BoardFile(std::filesystem::path folder);  // reads it

  const Scoreboard& board() const { return board_; }

  // The functions below REQUIRE that the folder is locked.

  void refresh();                  // reads what others wrote; cheap if they did not
  void append(BoardRow);           // a row that is_placed
  void write() { write(board_); }  // whole
  void write(const Scoreboard&);   // replaces everything that was there

 private:
  // Distinguishes one scoreboard.json from the next.
  struct Identity {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  static Identity identity(const std::filesystem::path&);
  void read();
  void replay();

  std::filesystem::path folder_;
  Scoreboard board_;
  Identity read_from_;
  std::uintmax_t journal_end_ = 0;  // how much of the journal is in the board
  std::size_t journal_lines_ = 0;
};

// Runs describe() on the board of a folder, and writes the board if that changed it.
void describe_models(const std::filesystem::path& folder,
                     const std::map<std::string, ModelInfo>& today);

}  // namespace assay::store
