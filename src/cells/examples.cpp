#include "cells/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "assay/error.h"
#include "spec/spec.h"
#include "util/files.h"

namespace assay::cells {
namespace fs = std::filesystem;
namespace {

constexpr const char* kBaselines = "baselines";

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

struct Prefix {
  const char* file;
  const char* line;
  Example::Kind kind;
};
constexpr Prefix kPrefixes[] = {{"wrong_", "// fails:", Example::Kind::wrong},
                                {"cheat_", "// caught:", Example::Kind::cheat},
                                {"slow_", "// slow:", Example::Kind::slow}};

bool runs_in(Language language, const CaseSpec& c) {
  return language == Language::cpp || c.on_simulator;
}

Example load_example(const ChallengeSpec& spec, const fs::path& path, Language language) {
  Example example;
  example.language = language;
  example.name = path.stem();
  example.source = {path.filename(), read_file(path)};
  const std::string first = example.source.contents.substr(0, example.source.contents.find('\n'));
  for (const Prefix& prefix : kPrefixes) {
    if (!example.name.starts_with(prefix.file)) continue;
    if (!first.starts_with(prefix.line)) {
      throw Error(
          fmt::format("{}:1: the first line must be '{} CASE...'", path.string(), prefix.line));
    }
    example.kind = prefix.kind;
    example.targets = words(first.substr(std::string_view(prefix.line).size()));
  }
  if (example.targets.empty()) {
    throw Error(
        fmt::format("{}: an example is named wrong_*, cheat_* or slow_* and names its cases "
                    "on the first line",
                    path.string()));
  }
  for (const std::string& target : example.targets) {
    const CaseSpec* const named = find_case(spec, target);
    if (named == nullptr)
      throw Error(fmt::format("{}:1: {} has no case '{}'", path.string(), spec.name, target));
    if (!runs_in(language, *named))
      throw Error(
          fmt::format("{}:1: the case '{}' of {} is not run on the simulator: name one that is",
                      path.string(), target, spec.name));
  }
  return example;
}

// The files of a folder with that extension, sorted.
std::vector<fs::path> files_in(const fs::path& folder, const char* extension) {
  if (!fs::exists(folder)) return {};
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

std::vector<fs::path> files_of(const ChallengeSpec& spec, const fs::path& subfolder,
                               const char* extension) {
  return files_in(fs::path(spec.directory) / subfolder, extension);
}

fs::path kernels_folder(const ChallengeSpec& spec) {
  return fs::path(spec.directory).parent_path().parent_path() / "kernels";
}

template <class Property>
bool names_a_case(const ChallengeSpec& spec, const Example& example, Property property) {
  return std::ranges::any_of(example.targets, [&](const std::string& target) {
    return property(*find_case(spec, target));
  });
}

}  // namespace

SourceFile challenge_file(const ChallengeSpec& spec, const std::string& file) {
  return {file, read_file(fs::path(spec.directory) / file)};
}

fs::path baseline_path(const ChallengeSpec& spec, const std::string& file) {
  return fs::path(spec.directory) / kBaselines / file;
}

SourceFile baseline_file(const ChallengeSpec& spec, const std::string& file) {
  return {file, read_file(baseline_path(spec, file))};
}

std::vector<Example> load_examples(const ChallengeSpec& spec, Language language) {
  std::vector<Example> examples;
  const char* const ending = language == Language::cpp ? ".cpp" : ".cu";
  for (const fs::path& path : files_of(spec, "examples", ending))
    examples.push_back(load_example(spec, path, language));
  return examples;
}

std::vector<SourceFile> baseline_headers(const ChallengeSpec& spec) {
  std::vector<SourceFile> headers{challenge_file(spec, "abi.h")};
  const fs::path shared = fs::path("shared") / kBaselines;
  for (const fs::path& path : files_in(fs::path(spec.directory).parent_path() / shared, ".h"))
    headers.push_back({shared / path.filename(), read_file(path)});
  for (const char* folder : {"common", "naive", "par"}) {
    for (const char* extension : {".h", ".cuh"}) {
      for (const fs::path& path : files_of(spec, fs::path(kBaselines) / folder, extension))
        headers.push_back({folder / path.filename(), read_file(path)});
    }
  }
  return headers;
}

fs::path kernel_path(const ChallengeSpec& spec) {
  return kernels_folder(spec) / (spec.name + ".cu");
}

std::vector<SourceFile> kernel_headers(const ChallengeSpec& spec) {
  std::vector<SourceFile> headers{challenge_file(spec, "abi.h")};
  for (const fs::path& path : files_in(kernels_folder(spec) / "common", ".h"))
    headers.push_back({"common" / path.filename(), read_file(path)});
  return headers;
}

std::vector<SourceFile> example_headers(const ChallengeSpec& spec, Language language) {
  const bool cuda = language == Language::cuda;
  std::vector<SourceFile> headers = baseline_headers(spec);
  headers.push_back(baseline_file(spec, cuda ? "naive.cu" : "naive.cpp"));
  for (const fs::path& path : files_of(spec, "examples", cuda ? ".cuh" : ".h"))
    headers.push_back({path.filename(), read_file(path)});
  return headers;
}

bool breaks_what_is_required(const ChallengeSpec& spec, const Example& example) {
  return names_a_case(spec, example, [](const CaseSpec& c) { return in_correctness(c.group); });
}

bool needs_timing(const ChallengeSpec& spec, const Example& example) {
  return names_a_case(spec, example,
                      [](const CaseSpec& c) { return c.group == CaseGroup::timed || c.exclusive; });
}

}  // namespace assay::cells
