#include "cli/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "assay/error.h"
#include "cases/challenge_registry.h"
#include "spec/spec.h"
#include "util/process_limits.h"
#include "util/text.h"

namespace assay::cli {
namespace fs = std::filesystem;
namespace {

bool is_root(const fs::path& folder) {
  return fs::exists(folder / "challenges" / "spec.schema.json") &&
         fs::exists(folder / "include" / "assay" / "abi.h");
}

std::optional<fs::path> root_above(fs::path folder) {
  for (;; folder = folder.parent_path()) {
    if (is_root(folder)) return folder;
    if (folder == folder.root_path()) return {};
  }
}

fs::path program_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

// The root of an installed program.
fs::path shared_folder() { return program_folder().parent_path() / "share" / "assay"; }

fs::path find_root(const std::string& option) {
  if (!option.empty()) {
    fs::path root = fs::absolute(option);
    if (is_root(root)) return root;
    throw Error(
        fmt::format("{} holds no challenges/spec.schema.json and include/assay/abi.h: --root "
                    "names the folder of assay's sources",
                    root.string()));
  }
  if (const auto root = root_above(fs::current_path())) return *root;
  if (const auto root = root_above(program_folder())) return *root;
  if (is_root(shared_folder())) return shared_folder();
  throw Error(
      fmt::format("no challenges/ here, above here, above {} or in {}: name assay's folder with "
                  "--root",
                  program_folder().string(), shared_folder().string()));
}

// The variable's value if it is an absolute path; the XDG standard says to ignore relative ones.
std::optional<fs::path> folder_in_environment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || !fs::path(value).is_absolute()) return {};
  return value;
}

fs::path user_cache() {
  if (const auto cache = folder_in_environment("XDG_CACHE_HOME")) return *cache / "assay";
  if (const auto home = folder_in_environment("HOME")) return *home / ".cache" / "assay";
  throw Error("no folder for the cache: set HOME or XDG_CACHE_HOME to an absolute path");
}

}  // namespace

Context find_context(const std::string& root_option) {
  require_proc();
  const fs::path root = find_root(root_option);
  std::error_code ignored;
  if (fs::equivalent(root, shared_folder(), ignored)) {
    return {root, fs::current_path(), user_cache(), root_option};
  }
  return {root, root, root / ".cache", root_option};
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
    if (std::ranges::find(specs, name, &ChallengeSpec::name) != specs.end())
      continue;  // named twice
    specs.push_back(load_spec(context.challenges() / name));
    provide_files(specs.back(), files);
  }
  return specs;
}

}  // namespace assay::cli
