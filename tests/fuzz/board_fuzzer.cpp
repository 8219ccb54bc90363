// libFuzzer target of scoreboard.json and of its journal's lines, which `assay merge` accepts from
// anybody: any text is refused, or is a board that survives being written and shows only text.
#include "compare/board_diff.h"
#include "fuzz/promises.h"
#include "grade/board_row.h"
#include "records/documents.h"
#include "records/evidence.h"
#include "records/scoreboard.h"
#include "report/analysis.h"
#include "report/rankings.h"
#include "report/terminal.h"
#include "spec/json_schema.h"

namespace {

using namespace assay;

std::vector<ChallengeSpec> specs_of(const Scoreboard& board) {
  std::vector<ChallengeSpec> specs;
  for (const auto& [key, row] : board.entries) {
    if (specs.size() == 3) break;
    ChallengeSpec spec;
    spec.name = key.challenge;
    spec.title = "A challenge";
    spec.difficulty = "hard";
    specs.push_back(spec);
  }
  return specs;
}

// The program writes comments and no other HTML.
void require_no_html(std::string_view text) {
  constexpr std::string_view kComment = "<!-- ";
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string_view::npos; ++at)
    fuzz::require(text.substr(at).starts_with(kComment), "names make no HTML", text);
}

void check(const Scoreboard& board) {
  const std::string text = scoreboard_text(board);
  fuzz::require(scoreboard_text(parse_scoreboard(text, "again")) == text,
                "boards survive being written", text);
  const std::vector<ChallengeSpec> specs = specs_of(board);
  for (const std::string& shown :
       {ranking_section(board, specs), rankings_document(board, specs)}) {
    fuzz::require_safe(shown, "rankings are plain text");
    require_no_html(shown);
  }
  for (const auto& [path, page] : report::analysis_pages(board, specs)) {
    fuzz::require_safe(page, "pages are plain text");
    require_no_html(page);
    fuzz::require(path.find("..") == std::string::npos && !path.starts_with('/'),
                  "pages stay in their folder", path);
  }
  compare::diff_boards(board, {});
  for (const auto& [key, row] : board.entries) {
    fuzz::require(parse_row(row_text(row), "again").key == key, "rows survive being written");
    if (!specs.empty()) fuzz::require_safe(explain(row, specs.front()), "rows are shown as text");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  fuzz::accepts([&] { check(parse_scoreboard(text, "scoreboard.json")); });
  fuzz::accepts([&] {
    Scoreboard board;
    merge(board, parse_row(text, "scoreboard.journal:1"));
    check(board);
  });
  fuzz::accepts([&] {
    const nlohmann::json document = parse_json(text, "scoreboard.json");
    Scoreboard board;
    for (const BoardEntry& entry : read_scoreboard_1(document, "scoreboard.json"))
      merge(board, board_row(entry, {"cells/a.json", "00"}));
    check(board);
  });
  return 0;
}
