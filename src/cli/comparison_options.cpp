#include "cli/comparison_options.h"

#include <CLI/CLI.hpp>

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

}  // namespace assay::cli
