#include "build/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <vector>

#include "assay/error.h"
#include "assay/results.h"
#include "util/files.h"
#include "util/shell.h"
#include "util/text.h"

namespace assay {
namespace {

// The target becomes a word in a shell command.
bool is_plain(const std::string& target) {
  return !target.empty() && std::ranges::all_of(target, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '+';
  });
}

std::string macros_of(const std::string& compiler, const std::string& target) {
  const std::string command =
      fmt::format("{} -march={} -dM -E -x c++ /dev/null 2>/dev/null", quoted(compiler), target);
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) fail_with_errno("start", compiler);
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  return ::pclose(pipe) == 0 ? text : "";
}

}  // namespace

std::set<std::string> instruction_sets(const std::string& compiler, const std::string& target) {
  const std::string macros = is_plain(target) ? macros_of(compiler, target) : "";
  if (macros.empty()) {
    throw Error(fmt::format(
        "{} does not know the target '{}': --march takes what follows -march=, such as native, "
        "x86-64-v3 or znver4",
        compiler, printable(target, 1, 60)));
  }
  // "#define __AVX2__ 1"; lower-case names are processors.
  std::set<std::string> sets;
  std::istringstream lines(macros);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string define, name, value;
    words >> define >> name >> value;
    const bool flag =
        value == "1" && name.size() > 4 && name.starts_with("__") && name.ends_with("__") &&
        std::ranges::none_of(name, [](unsigned char c) { return std::islower(c) != 0; });
    if (flag) sets.insert(name.substr(2, name.size() - 4));
  }
  return sets;
}

void require_target(const std::string& compiler, const std::string& target) {
  if (target == kNativeTarget) return;
  const std::set<std::string> wanted = instruction_sets(compiler, target),
                              here = instruction_sets(compiler, kNativeTarget);
  std::vector<std::string> missing;
  std::ranges::set_difference(wanted, here, std::back_inserter(missing));
  if (missing.empty()) return;
  throw Error(
      fmt::format("this machine cannot run code for --march {}: it lacks {}; choose a target that "
                  "it has, or grade on another machine",
                  target, fmt::join(missing, ", ")));
}

}  // namespace assay
