// How the code of an answer reads, in figures. They are shown beside a score, never part of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// A function, and the figure for which it stands here.
struct CodePlace {
  std::string name;  // with its classes, as far as the source shows them: "Searcher::allocate"
  std::string file;
  std::int64_t line = 0;  // of the name
  std::int64_t value = 0;

  bool operator==(const CodePlace&) const = default;
};

// What the compiler warns of under -Wall -Wextra.
struct CompilerWarnings {
  std::int64_t count = 0;            // of different ones
  std::vector<std::string> first{};  // a printable line each, in the compiler's order
  bool cut = false;                  // the compiler said more than is read: there may be others

  bool operator==(const CompilerWarnings&) const = default;
};

// Of the answer's files, headers included; its own tests are no part of it. A line with code and a
// comment is a line of code.
struct CodeFacts {
  std::int64_t files = 0, code_lines = 0, comment_lines = 0, blank_lines = 0;
  std::int64_t duplicated_lines = 0;  // see code/lines.h
  std::int64_t functions = 0;
  // In lines, control statements inside each other, and McCabe's cyclomatic complexity: see
  // code/functions.h. The first of equals. Absent: there is no function.
  std::optional<CodePlace> longest{}, deepest{}, most_complex{};
  std::optional<CompilerWarnings> warnings{};  // absent: not known, for it did not compile

  bool operator==(const CodeFacts&) const = default;
};

}  // namespace assay
