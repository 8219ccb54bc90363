#include "report/code_facts.h"

#include <fmt/format.h>

#include "report/figures.h"

namespace assay::report {
namespace {

std::string counted(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string place(const CodePlace& p, const std::string& figure) {
  return fmt::format("{}: {} ({}:{})", figure, one_line(p.name), one_line(p.file), p.line);
}

std::string size(const CodeFacts& c) {
  return fmt::format("{} of code, {} of comments, {} blank, in {}; {} duplicated",
                     counted(c.code_lines, "line", "lines"), c.comment_lines, c.blank_lines,
                     counted(c.files, "file", "files"), c.duplicated_lines);
}

std::string warnings(const std::optional<CompilerWarnings>& w) {
  if (!w) return "not known: it did not compile";
  return fmt::format("{}{} under -Wall -Wextra", w->cut ? "at least " : "", w->count);
}

}  // namespace

std::vector<CodeFact> code_facts(const std::optional<CodeFacts>& known) {
  if (!known)
    return {{"size", "not known: the answer is longer than is read, or older than these facts"}};
  const CodeFacts& c = *known;
  std::vector<CodeFact> facts{{"size", size(c)}, {"functions", fmt::format("{}", c.functions)}};
  if (c.longest)
    facts.push_back({"longest", place(*c.longest, counted(c.longest->value, "line", "lines"))});
  if (c.deepest)
    facts.push_back({"deepest", place(*c.deepest, counted(c.deepest->value, "level", "levels"))});
  if (c.most_complex)
    facts.push_back(
        {"complexity", place(*c.most_complex, fmt::format("up to {}", c.most_complex->value))});
  facts.push_back({"warnings", warnings(c.warnings)});
  if (!c.warnings) return facts;
  for (const std::string& line : c.warnings->first) facts.push_back({"", one_line(line)});
  const auto left = c.warnings->count - static_cast<std::int64_t>(c.warnings->first.size());
  if (left > 0) facts.push_back({"", fmt::format("and {} more", left)});
  return facts;
}

}  // namespace assay::report
