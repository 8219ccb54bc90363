#include "cli/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "run/challenge_registry.h"
#include "spec/spec.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::cli {
namespace fs = std::filesystem;
namespace {

bool is_root(const fs::path& folder) {
  return fs::exists(folder / "challenges" / "spec.schema.json") &&
         fs::exists(folder / "include" / "assay" / "abi.h");
}

}  // namespace

Context find_context(const std::string& root_option) {
  if (!root_option.empty()) {
    const fs::path root = fs::absolute(root_option);
    if (is_root(root)) return {root};
    throw Error(
        fmt::format("{} holds no challenges/spec.schema.json and include/assay/abi.h: --root "
                    "names the folder of assay's sources",
                    root.string()));
  }
  for (fs::path folder = fs::current_path();; folder = folder.parent_path()) {
    if (is_root(folder)) return {folder};
    if (folder == folder.root_path()) break;
  }
  if (is_root(ASSAY_SOURCE_DIR)) return {ASSAY_SOURCE_DIR};
  throw Error(
      "no challenges/ here, above here or where assay was built: name assay's folder with --root");
}

std::vector<ChallengeSpec> load_specs(const Context& context, const std::vector<std::string>& names,
                                      const ExternalFiles& files) {
  std::vector<std::string> known;
  for (const ChallengeRow& row : challenge_rows()) known.emplace_back(row.name);
  std::vector<ChallengeSpec> specs;
  for (const std::string& name : names.empty() ? known : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(unknown_name("challenge", name, known));
    }
    specs.push_back(load_spec(context.challenges() / name));
    provide_files(specs.back(), files);
  }
  return specs;
}

}  // namespace assay::cli
