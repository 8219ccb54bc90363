#include "code/facts.h"

#include "code/functions.h"
#include "code/lines.h"
#include "util/text.h"

namespace assay::sources {
namespace {

// Keeps the largest value; of equal ones, the first.
void keep_larger(std::optional<CodePlace>& kept, const Function& f, std::string_view file,
                 std::int64_t value) {
  constexpr std::size_t kLongestName = 200;
  if (kept && kept->value >= value) return;
  kept = CodePlace{f.name, printable(file, 1, kLongestName), f.line, value};
}

}  // namespace

std::optional<CodeFacts> facts_of(const std::vector<NamedSource>& sources) {
  std::size_t bytes = 0;
  for (const NamedSource& source : sources) bytes += source.text.size();
  if (sources.empty() || bytes > kMostBytes) return std::nullopt;

  CodeFacts facts;
  std::vector<std::string_view> texts;
  for (const NamedSource& source : sources) {
    texts.push_back(source.text);
    ++facts.files;
    const LineCounts lines = line_counts(source.text);
    facts.code_lines += lines.code;
    facts.comment_lines += lines.comment;
    facts.blank_lines += lines.blank;
    for (const Function& f : functions_of(source.text)) {
      ++facts.functions;
      keep_larger(facts.longest, f, source.name, f.lines);
      keep_larger(facts.deepest, f, source.name, f.nesting);
      keep_larger(facts.most_complex, f, source.name, f.complexity);
    }
  }
  facts.duplicated_lines = duplicated_lines(texts);
  return facts;
}

}  // namespace assay::sources
