#include "cli/boards.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/error.h"
#include "cli/output.h"
#include "grade/currency.h"
#include "grade/gpu.h"
#include "store/migrate.h"
#include "util/files.h"
#include "util/shell.h"
#include "util/text.h"

namespace assay::cli {
namespace fs = std::filesystem;

Scoreboard open_board(const fs::path& folder) {
  try {
    tell(store::migrate(folder));
  } catch (const Error& e) {
    tell(fmt::format("the board stays as it is: {}\n", e.what()));
  }
  return store::read_board(folder);
}

Scoreboard open_board_to_change(const fs::path& folder) {
  require_writable_directory(folder);
  tell(store::migrate(folder));
  return store::read_board(folder);
}

bool has_board(const fs::path& folder) {
  return fs::exists(store::board_path(folder)) || fs::exists(store::journal_path(folder));
}

fs::path results_folder(const Context& context, const std::string& named) {
  if (named.empty()) return context.results();
  if (!has_board(named)) {
    throw Error(fmt::format("no {}: `assay run --results {}` writes it",
                            store::board_path(named).string(), quoted(named)));
  }
  return named;
}

std::string where_the_site_is(const fs::path& results, const std::string& named) {
  const std::string command = "assay board" + (named.empty() ? "" : " --results " + quoted(named));
  const fs::path index = results / "site" / "index.html";
  if (!fs::exists(index)) return fmt::format("As a site: {}\n", command);
  return fmt::format("The site: {}, as it was when `{}` wrote it\n", index.string(), command);
}

std::string data_sheet_of(const Scoreboard& board) {
  const std::string name = gpu_of(board, Device::sim);
  for (const std::string& file : gpu_names()) {
    if (gpu_named(file).name == name) return file;
  }
  return kDefaultGpu;
}

std::vector<std::string> models_of(const Scoreboard& board) {
  std::set<std::string> models;
  for (const auto& [key, row] : board.entries) models.insert(key.model);
  return {models.begin(), models.end()};
}

void require_on_board(const std::vector<std::string>& models, const Scoreboard& board) {
  const std::vector<std::string> known = models_of(board);
  for (const std::string& model : models) {
    if (!std::ranges::binary_search(known, model))
      throw Error("on the board: " + unknown_name("model", model, known));
  }
}

}  // namespace assay::cli
