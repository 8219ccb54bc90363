// The same sources as read by pmccabe, an independent program. It reads C and C++, but gets lost in
// some CUDA and after some braces: only functions that both name on the same line are compared.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "code/functions.h"
#include "support/paths.h"
#include "util/files.h"

namespace assay::sources {
namespace {

namespace fs = std::filesystem;

struct Figures {
  std::int64_t complexity = 0, lines = 0;
};
using Place = std::pair<std::string, std::int64_t>;  // file, line

std::vector<fs::path> sources() {
  std::vector<fs::path> found;
  for (const char* folder : {"submissions", "challenges"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(testing::source_dir()) / folder)) {
      const std::string name = entry.path().filename();
      if (name == "submission.cpp" || name == "submission.cu" || name == "naive.cu" ||
          name == "par.cpp")
        found.push_back(entry.path());
    }
  }
  return found;
}

// "modified, traditional, statements, first line, lines, file(line): name", with tabs between.
std::map<Place, Figures> witnessed(const std::vector<fs::path>& files) {
  std::string command = "pmccabe";
  for (const fs::path& file : files) command += " '" + file.string() + "'";
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  std::map<Place, Figures> figures;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    std::istringstream in(line);
    std::int64_t modified, traditional, statements, first, lines;
    std::string place;
    in >> modified >> traditional >> statements >> first >> lines >> place;
    const std::size_t open = place.rfind('('), close = place.rfind(')');
    if (!in || open == std::string::npos || close < open) continue;
    figures[{place.substr(0, open), std::stoll(place.substr(open + 1))}] = {traditional, lines};
  }
  ::pclose(pipe);
  return figures;
}

TEST(Witness, PmccabeFindsTheSame) {
  if (std::system("command -v pmccabe >/dev/null") != 0)
    GTEST_SKIP() << "pmccabe is not installed: apt-get install pmccabe";
  const std::vector<fs::path> files = sources();
  std::map<Place, Figures> witness = witnessed(files);
  std::size_t both = 0, complexity = 0, lines = 0;
  std::string differences;
  for (const fs::path& file : files) {
    for (const Function& f : functions_of(read_file(file))) {
      const auto seen = witness.find({file.string(), f.line});
      if (seen == witness.end()) continue;
      ++both;
      complexity += seen->second.complexity == f.complexity ? 1 : 0;
      lines += seen->second.lines == f.lines ? 1 : 0;
      if (seen->second.complexity == f.complexity && seen->second.lines == f.lines) continue;
      differences +=
          fmt::format("{}:{} {}: {}/{}, pmccabe {}/{}\n", file.string(), f.line, f.name,
                      f.complexity, f.lines, seen->second.complexity, seen->second.lines);
    }
  }
  // pmccabe does not count catch, and counts extern "C" and the first of several #if branches
  // differently.
  EXPECT_GE(both, witness.size() * 9 / 10);
  EXPECT_GE(complexity, both * 98 / 100) << differences;
  EXPECT_GE(lines, both * 98 / 100) << differences;
}

}  // namespace
}  // namespace assay::sources
