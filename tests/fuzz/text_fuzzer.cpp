// libFuzzer target of the handling of text from submissions and compilers: on a terminal it moves
// nothing, in Markdown it is only text, and names taken from logs and sources really occur in them.
#include <cctype>
#include <sstream>

#include "build/nvcc.h"
#include "fuzz/promises.h"
#include "report/figures.h"
#include "report/markdown_text.h"
#include "submission/answer.h"
#include "util/text.h"

namespace {

using namespace assay;

void check_printable(std::string_view text, std::size_t lines, std::size_t columns) {
  const std::string shown = printable(text, lines, columns);
  fuzz::require_safe(shown, "printable text is safe, and stays what it is");
  std::size_t count = 1, width = 0;
  for (const char c : shown) {
    count += c == '\n' ? 1 : 0;
    width = c == '\n' ? 0 : width + 1;
    // An escape or a character may begin before the limit; then comes an ellipsis.
    fuzz::require(width <= columns + 64, "lines are cut");
  }
  fuzz::require(count <= lines + 1, "texts are cut");
}

// Every character that could have a meaning is escaped or an entity.
void check_markdown(std::string_view text, std::size_t bytes) {
  const std::string shown = report::markdown_text(text, bytes);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto c = static_cast<unsigned char>(shown[i]);
    fuzz::require(c >= 0x20 && c != 0x7f, "Markdown holds no control bytes", shown);
    if (c == '\\') {
      fuzz::require(i + 1 < shown.size() && std::ispunct(static_cast<unsigned char>(shown[i + 1])),
                    "a backslash escapes something", shown);
      ++i;
      continue;
    }
    fuzz::require(std::string_view("<>|`*[]{}#!~$^@").find(shown[i]) == std::string_view::npos,
                  "markup is escaped", shown);
    if (c != '&') continue;
    const std::string_view entity = std::string_view(shown).substr(i);
    fuzz::require(
        entity.starts_with("&lt;") || entity.starts_with("&gt;") || entity.starts_with("&amp;"),
        "ampersands are entities", shown);
  }
  fuzz::require_safe(shown, "Markdown is safe on a terminal too");
}

void check_link(std::string_view path) {
  for (const char c : report::link_target(path)) {
    const auto byte = static_cast<unsigned char>(c);
    fuzz::require(
        std::isalnum(byte) || std::string_view("/._-~%").find(c) != std::string_view::npos,
        "links hold nothing that ends them");
  }
}

void check_log(const std::string& log) {
  const std::string kept = without_linker_warnings(log);
  fuzz::require(kept.size() <= log.size() + 1, "warnings are taken away, not added");
  std::istringstream symbols(foreign_symbols(log));
  for (std::string line; std::getline(symbols, line);)
    fuzz::require(log.find(line) != std::string::npos, "symbols are of the log", line);
  lacks_features(log);
}

void check_table(std::string_view text) {
  TextTable table({"a", "b"});
  const std::size_t half = text.size() / 2;
  table.add({report::one_line(std::string(text.substr(0, half))),
             report::one_line(std::string(text.substr(half)))});
  fuzz::require_safe(table.str(), "tables of safe text are safe");
}

// Functions found in an answer's source are really there.
void check_functions(std::string_view source) {
  const std::vector<std::string> kNames{"sum", "a", "kvc_attend"};
  for (const std::string& name : functions_named(source, kNames))
    fuzz::require(source.find(name) != std::string_view::npos, "functions are in the source", name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const std::size_t lines = in.take<std::uint8_t>() % 40 + 1u,
                    columns = in.take<std::uint8_t>() + 1u;
  const std::string text(in.rest());
  check_printable(text, lines, columns);
  check_markdown(text, columns);
  check_link(text);
  check_log(text);
  check_table(text);
  check_functions(text);
  nearest(text.substr(0, 64), {"textbook", "tuned", "flawed"});
  return 0;
}
