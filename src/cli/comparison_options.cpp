#include "cli/comparison_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "assay/error.h"
#include "cli/boards.h"

namespace assay::cli {

void add_figure_option(CLI::App& command, std::string& by) {
  command
      .add_option("--by", by,
                  "which figure of a model's attempts at a challenge counts: their mean, the\n"
                  "best or the first")
      ->check(CLI::IsMember({"mean", "best", "first"}))
      ->capture_default_str();
}

compare::By figure_named(const std::string& name) { return compare::by_from(name).value(); }

std::filesystem::path results_folder(const Context& context, const std::string& named) {
  if (named.empty()) return context.results();
  if (!has_board(named)) {
    throw Error(fmt::format("no {}: `assay run --results {}` writes it",
                            store::board_path(named).string(), named));
  }
  return named;
}

}  // namespace assay::cli
