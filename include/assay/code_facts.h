// Readability figures of an answer's code. They are shown beside a score, never part of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// A function, and its value of the figure in question.
struct CodePlace {
  std::string name;  // with its classes, as far as the source shows them: "Searcher::allocate"
  std::string file;
  std::int64_t line = 0;  // where the name is
  std::int64_t value = 0;

  bool operator==(const CodePlace&) const = default;
};

// Warnings of the compiler under -Wall -Wextra.
struct CompilerWarnings {
  std::int64_t count = 0;            // of distinct warnings
  std::vector<std::string> first{};  // one printable line each, in the compiler's order
  bool cut = false;                  // the compiler's output was longer than what is read; there
                                     // may be more

  bool operator==(const CompilerWarnings&) const = default;
};

// Counts over the answer's files, headers included but not its own tests. A line with code and a
// comment counts as a line of code.
struct CodeFacts {
  std::int64_t files = 0, code_lines = 0, comment_lines = 0, blank_lines = 0;
  std::int64_t duplicated_lines = 0;  // see code/lines.h
  std::int64_t functions = 0;
  // The maximum in lines, in nesting depth of control statements, and in McCabe's cyclomatic
  // complexity: see code/functions.h. The first among equals. Absent if there is no function.
  std::optional<CodePlace> longest{}, deepest{}, most_complex{};
  std::optional<CompilerWarnings> warnings{};  // absent: unknown, because it did not compile

  bool operator==(const CodeFacts&) const = default;
};

}  // namespace assay
