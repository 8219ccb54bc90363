#include "build/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <set>

#include "util/text.h"

namespace assay {
namespace {

constexpr std::size_t kMostKept = 5, kLongestKept = 240;
constexpr std::string_view kSources = "/src/";  // the submission's folder inside the sandbox

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// "FILE:3:7: warning: " of g++, "FILE(3): warning #177-D: " of nvcc. Quoted source is indented.
// Linker messages about symbols look much the same, but are not compiler warnings.
bool warns_as_gcc(std::string_view line) {
  const std::size_t at = line.find(": warning: ");
  return !line.starts_with(' ') && at != std::string_view::npos && at > 0 && line[at - 1] >= '0' &&
         line[at - 1] <= '9' && line.find("undefined reference to") == std::string_view::npos;
}
bool warns_as_nvcc(std::string_view line) {
  return !line.starts_with(' ') && line.find("): warning #") != std::string_view::npos;
}

// "In function 'f':", "In file included from", "FILE:3:7: required from here": lines that precede a
// warning or an error.
bool leads_to_another(std::string_view line) {
  return line.starts_with("In ") || line.find(": In ") != std::string_view::npos ||
         line.find(": At ") != std::string_view::npos ||
         line.starts_with("                 from ") ||
         line.find(":   required ") != std::string_view::npos ||
         line.find(": required ") != std::string_view::npos ||
         line.find("inlined from ") != std::string_view::npos;
}

bool goes_on(std::string_view line) {
  return line.empty() || line.starts_with(' ') ||
         line.starts_with("Remark: The warnings can be ") ||
         line.find(": note: ") != std::string_view::npos;
}

}  // namespace

CompilerWarnings warnings_in(std::string_view log, bool cut) {
  CompilerWarnings warnings;
  warnings.cut = cut;
  std::set<std::string_view> seen;
  while (!log.empty()) {
    std::string_view line = take_line(log);
    if (!warns_as_gcc(line) && !warns_as_nvcc(line)) continue;
    if (!seen.insert(line).second) continue;
    if (line.starts_with(kSources)) line.remove_prefix(kSources.size());
    if (warnings.first.size() < kMostKept)
      warnings.first.push_back(printable(line, 1, kLongestKept));
  }
  warnings.count = static_cast<std::int64_t>(seen.size());
  return warnings;
}

std::string without_warnings(std::string_view log) {
  std::string kept, leading;
  bool after_leading = false, dropping = false;
  while (!log.empty()) {
    const std::string_view whole = log;
    const std::string_view line = take_line(log);
    const std::string_view with_end = whole.substr(0, whole.size() - log.size());
    if (leads_to_another(line)) {
      if (!after_leading) leading.clear();  // they belong to a dropped warning
      leading += with_end;
      after_leading = true;
      continue;
    }
    after_leading = false;
    if (warns_as_gcc(line) || warns_as_nvcc(line)) {
      dropping = true;
    } else if (!dropping || !goes_on(line)) {
      dropping = false;
      kept += leading;
      leading.clear();
      kept += with_end;
    }
  }
  return dropping ? kept : kept + leading;
}

std::string warnings_text(const CompilerWarnings& warnings) {
  std::string text = fmt::format("{} {}\n", warnings.count, warnings.cut ? 1 : 0);
  for (const std::string& line : warnings.first) text += line + "\n";
  return text;
}

std::optional<CompilerWarnings> warnings_from(std::string_view text) {
  CompilerWarnings warnings;
  const std::string_view head = take_line(text);
  const char* end = head.data() + head.size();
  const auto [stop, error] = std::from_chars(head.data(), end, warnings.count);
  if (error != std::errc() || warnings.count < 0 || end - stop != 2 || *stop != ' ' ||
      (stop[1] != '0' && stop[1] != '1'))
    return std::nullopt;
  warnings.cut = stop[1] == '1';
  while (!text.empty()) warnings.first.emplace_back(take_line(text));
  const auto kept = static_cast<std::int64_t>(warnings.first.size());
  if (kept != std::min(warnings.count, static_cast<std::int64_t>(kMostKept))) return std::nullopt;
  return warnings;
}

}  // namespace assay
