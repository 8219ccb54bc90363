#include "judge/opinion_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/error.h"
#include "store/cell_path.h"
#include "util/files.h"

namespace assay::judge {
namespace fs = std::filesystem;
namespace {

fs::path below(const std::string& judge, const CellKey& key) {
  return fs::path(store::path_part(judge)) / store::cell_path(key);
}

// `place` is a path below the folder of opinions.
Opinion read_at(const fs::path& folder, const fs::path& place) {
  const fs::path file = folder / place;
  Opinion opinion = parse_opinion(read_file(file), file.string());
  if (below(opinion.judge, opinion.key) == place) return opinion;
  throw Error(fmt::format("{} holds the opinion of {} on {}: move it to {}", file.string(),
                          opinion.judge, to_string(opinion.key),
                          (folder / below(opinion.judge, opinion.key)).string()));
}

}  // namespace

fs::path opinions_folder(const fs::path& results) { return results / "opinions"; }

fs::path opinion_path(const fs::path& results, const std::string& judge, const CellKey& key) {
  return opinions_folder(results) / below(judge, key);
}

std::optional<Opinion> read_opinion(const fs::path& results, const std::string& judge,
                                    const CellKey& key) {
  const fs::path place = below(judge, key);
  if (!fs::exists(opinions_folder(results) / place)) return {};
  return read_at(opinions_folder(results), place);
}

void write_opinion(const fs::path& results, const Opinion& opinion) {
  const fs::path file = opinion_path(results, opinion.judge, opinion.key);
  create_folder(file.parent_path());
  write_file_atomically(file, opinion_text(opinion));
}

std::vector<Opinion> read_opinions(const fs::path& results) {
  const fs::path folder = opinions_folder(results);
  std::vector<fs::path> places;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file() && entry.path().extension() == ".json")
        places.push_back(entry.path().lexically_relative(folder));
    }
  }
  std::ranges::sort(places);
  std::vector<Opinion> opinions;
  for (const fs::path& place : places) opinions.push_back(read_at(folder, place));
  return opinions;
}

std::vector<Opinion> read_opinions(const fs::path& results, const CellKey& key) {
  const fs::path folder = opinions_folder(results);
  std::vector<fs::path> places;
  if (fs::is_directory(folder)) {
    for (const auto& judge : fs::directory_iterator(folder)) {
      const fs::path place = judge.path().filename() / store::cell_path(key);
      if (judge.is_directory() && fs::is_regular_file(folder / place)) places.push_back(place);
    }
  }
  std::ranges::sort(places);
  std::vector<Opinion> opinions;
  for (const fs::path& place : places) opinions.push_back(read_at(folder, place));
  return opinions;
}

}  // namespace assay::judge
