#include "mutate/mutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "assay/random.h"
#include "assay/secret.h"
#include "util/sha256.h"

namespace assay::mutate {
namespace {

constexpr std::size_t kIdDigits = 10;

std::string squeezed(std::string_view text) {
  std::string result;
  bool gap = false;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      gap = !result.empty();
      continue;
    }
    if (gap) result += ' ';
    gap = false;
    result += c;
  }
  return result;
}

// The lines that the edit touches, before and after it.
std::pair<std::string, std::string> touched(std::string_view source, const Edit& edit) {
  const std::size_t newline = source.rfind('\n', edit.begin == 0 ? 0 : edit.begin - 1);
  const std::size_t first = edit.begin == 0 || newline == std::string_view::npos ? 0 : newline + 1;
  const std::size_t after = edit.begin + edit.length;
  const std::size_t end = std::min(source.find('\n', after), source.size());
  const std::string_view head = source.substr(first, edit.begin - first);
  const std::string_view tail = source.substr(after, end - after);
  return {squeezed(source.substr(first, end - first)),
          squeezed(fmt::format("{}{}{}", head, edit.replacement, tail))};
}

}  // namespace

std::vector<Mutation> mutations_of(const std::vector<SourceFile>& sources,
                                   const std::string& scope) {
  std::vector<Mutation> all;
  for (std::size_t f = 0; f < sources.size(); ++f) {
    const std::string& text = sources[f].contents;
    std::set<std::pair<std::uint32_t, std::string>> seen;  // the line and its mutated text
    std::map<std::pair<std::string, std::string>, int> count;
    for (Edit& edit : edits_of(text)) {
      Mutation m;
      m.file = f;
      m.file_name = sources[f].name;
      m.line = 1 + static_cast<std::uint32_t>(std::count(
                       text.begin(), text.begin() + static_cast<std::ptrdiff_t>(edit.begin), '\n'));
      std::tie(m.before, m.after) = touched(text, edit);
      if (m.before == m.after || !seen.emplace(m.line, m.after).second) continue;
      m.nth = ++count[{m.before, m.after}];
      m.id = sha256_hex(
                 fmt::format("{}\n{}\n{}\n{}\n{}", scope, m.file_name, m.before, m.after, m.nth))
                 .substr(0, kIdDigits);
      m.edit = std::move(edit);
      all.push_back(std::move(m));
    }
  }
  return all;
}

std::vector<Mutation> in_drawing_order(std::vector<Mutation> mutations, std::uint64_t seed,
                                       const std::string& scope) {
  Random random(derive(seed, "mutants of " + scope));
  shuffle(mutations, random);
  return mutations;
}

std::string mutated(std::string_view source, const Edit& edit) {
  return fmt::format("{}{}{}", source.substr(0, edit.begin), edit.replacement,
                     source.substr(edit.begin + edit.length));
}

}  // namespace assay::mutate
