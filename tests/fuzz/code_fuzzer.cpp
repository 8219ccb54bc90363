// libFuzzer target of the code that reads an answer's sources and the compiler's messages about
// them: whatever they are, the figures are possible for a text, and what is kept of them is
// printable.
#include <algorithm>

#include "build/warnings.h"
#include "code/facts.h"
#include "code/functions.h"
#include "code/lines.h"
#include "code/pieces.h"
#include "fuzz/promises.h"

namespace {

using namespace assay;

void check_pieces(std::string_view text) {
  std::string together;
  for (const sources::Piece& piece : sources::pieces_of(text)) {
    fuzz::require(!piece.text.empty(), "no piece is empty");
    together += piece.text;
  }
  fuzz::require(together == text, "pieces make up the text");
}

void check_functions(std::string_view text, std::int64_t lines) {
  for (const sources::Function& f : sources::functions_of(text)) {
    fuzz::require(!f.name.empty() && f.name.size() <= 200, "functions have names");
    fuzz::require_safe(f.name, "names are printable");
    fuzz::require(f.line >= 1 && f.line <= lines, "functions stand in the text");
    fuzz::require(f.lines >= 1 && f.lines <= lines, "functions are no longer than the text");
    const auto most = static_cast<std::int64_t>(text.size()) + 1;
    fuzz::require(f.complexity >= 1 && f.complexity <= most, "decisions are in the text");
    fuzz::require(f.nesting >= 0 && f.nesting <= most, "levels are in the text");
  }
}

void check_facts(std::string_view text) {
  const auto lines = std::ranges::count(text, '\n') + 1;
  check_functions(text, lines);
  const auto facts = sources::facts_of({{"submission.cpp", text}});
  fuzz::require(facts.has_value() == (text.size() <= sources::kMostBytes), "short texts are read");
  if (!facts) return;
  const auto all = facts->code_lines + facts->comment_lines + facts->blank_lines;
  fuzz::require(all == lines || all == lines - 1, "every line is counted once");
  fuzz::require(facts->duplicated_lines <= facts->code_lines, "copies are code");
  fuzz::require(facts->longest.has_value() == (facts->functions > 0), "one is the longest");
}

void check_warnings(std::string_view log) {
  const CompilerWarnings warnings = warnings_in(log, false);
  for (const std::string& line : warnings.first) fuzz::require_safe(line, "warnings are printable");
  fuzz::require(warnings_from(warnings_text(warnings)) == warnings, "the cache keeps warnings");
  fuzz::require(without_warnings(log).size() <= log.size(), "nothing is added to a log");
  warnings_from(log);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_pieces(text);
  check_facts(text);
  check_warnings(text);
  return 0;
}
