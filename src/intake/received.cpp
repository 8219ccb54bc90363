#include "intake/received.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "intake/code.h"
#include "records/entrant_json.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/plain_file.h"
#include "util/text.h"

namespace assay::intake {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLargestChat = 16u << 20, kLargestKept = 64u << 20, kMostKept = 1000;

std::string shown(const fs::path& path) { return printable(path.string(), 1, 200); }

Fd folder_at(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_with_errno("open folder", path);
  return fd;
}

// Reads a file named by the user; follows links, because the user chose it.
std::string named_file(const fs::path& path, std::size_t limit) {
  if (!fs::exists(path))
    throw Error(fmt::format("cannot read {}: there is no such file", shown(path)));
  const fs::path real = fs::canonical(path);
  const Fd folder = folder_at(real.parent_path());
  PlainFile file = read_plain_file(folder.get(), real.filename(), limit);
  // Hard links are harmless here.
  if (file.objection.find("hard link") != std::string::npos) return read_file(real);
  if (!file.objection.empty()) throw Error(fmt::format("{} {}", shown(path), file.objection));
  return std::move(file.contents);
}

bool begins_like_chat(const std::string& text) {
  const std::string_view start = trimmed(std::string_view(text).substr(0, 4096));
  return start.starts_with("```") || start.starts_with("~~~") || start.starts_with("<think");
}

bool is_translation_unit(const std::string& name) {
  return !is_tests_file(name) &&
         (name.ends_with(".cpp") || name.ends_with(".cc") || name.ends_with(".cu"));
}

Language language_of_name(const std::string& name) {
  return name.ends_with(".cu") ? Language::cuda : Language::cpp;
}

bool defines_any(const SourceFile& file, const ExtractOptions& options) {
  const std::string bare = without_comments_and_literals(file.contents);
  return !functions_defined(bare, options.entry_points).empty();
}

// Determines the main file if none has its name. Throws NoAnswer, Ambiguous or Error.
SourceFile& main_among(std::vector<SourceFile>& files, const ExtractOptions& options) {
  std::vector<SourceFile*> units;
  for (SourceFile& file : files) {
    if (is_translation_unit(file.name)) units.push_back(&file);
  }
  if (units.size() > 1) {
    std::vector<SourceFile*> defining;
    std::ranges::copy_if(units, std::back_inserter(defining),
                         [&](const SourceFile* f) { return defines_any(*f, options); });
    if (defining.size() == 1) units = defining;
  }
  if (units.size() == 1) return *units.front();
  std::string names;
  for (const SourceFile& file : files) names += (names.empty() ? "" : ", ") + file.name;
  if (units.empty()) {
    throw NoAnswer(fmt::format("no source file could be the answer{}{}",
                               names.empty() ? "" : "; there is only ", names));
  }
  throw Ambiguous(fmt::format(
      "which of {} is the answer? Name the main file submission.cpp or submission.cu", names));
}

// Chooses the main file, names it so, and says how.
void settle_main(Received& received, std::optional<Language> language,
                 const ExtractOptions& options) {
  std::vector<SourceFile>& files = received.answer.files;
  if (language) {
    std::erase_if(files, [&](const SourceFile& f) { return !is_of(f.name, *language); });
  }
  const auto has = [&](Language l) {
    return std::ranges::find(files, main_file(l), &SourceFile::name) != files.end();
  };
  if (has(Language::cpp) || has(Language::cuda)) {
    received.language = has(Language::cpp) ? Language::cpp : Language::cuda;
    return;
  }
  SourceFile& main = main_among(files, options);
  received.language = language_of_name(main.name);
  received.how += fmt::format("; {} is {}", main.name, main_file(received.language));
  main.name = main_file(received.language);
}

Received take_sources(const std::vector<fs::path>& paths, std::optional<Language> language,
                      const ExtractOptions& options) {
  Received received;
  for (const fs::path& path : paths) {
    const std::string name = path.filename();
    if (const std::string objection = objection_to_name(name); !objection.empty())
      throw Error(fmt::format("{}: {}", shown(path), objection));
    if (!is_source_name(name))
      throw Error(
          fmt::format("{} is no source file: several files are those of one answer; add a "
                      "chat answer or a folder alone",
                      shown(path)));
    received.answer.files.push_back({name, named_file(path, kLargestSource)});
  }
  received.answer.original = received.answer.files;
  received.how = paths.size() == 1 ? "a file, as it is" : "files, as they are";
  settle_main(received, language, options);
  return received;
}

class FolderReader {
 public:
  explicit FolderReader(const fs::path& root, Received& received)
      : root_(root), received_(received) {}

  void run() {
    std::vector<fs::path> names;
    std::error_code ec;
    auto it = fs::recursive_directory_iterator(root_, ec);
    if (ec) throw Error(fmt::format("cannot read folder {}: {}", shown(root_), ec.message()));
    for (const auto end = fs::recursive_directory_iterator(); it != end; it.increment(ec)) {
      if (ec) throw Error(fmt::format("cannot read all of {}: {}", shown(root_), ec.message()));
      names.push_back(it->path().lexically_relative(root_));
      if (names.size() > kMostLookedAt)
        throw Error(fmt::format("{} holds more than {} files: add the folder of the answer alone",
                                shown(root_), kMostLookedAt));
    }
    // Top-level files first, so that limits cut off the deepest ones.
    std::ranges::stable_sort(names, {}, [](const fs::path& p) {
      return std::pair(std::distance(p.begin(), p.end()), p);
    });
    for (const fs::path& name : names) take(name);
  }

 private:
  static constexpr std::size_t kMostLookedAt = 100'000;
  static constexpr char kRecord[] = "attempt.json";

  void take(const fs::path& name) {
    const bool top = !name.has_parent_path();
    if (fs::symlink_status(root_ / name).type() == fs::file_type::directory) {
      if (top) ignore(name);
      return;
    }
    const bool source = top && is_source_name(name);
    if (source) require_name(name);
    if (top && !source) ignore(name);
    const Fd folder = folder_at((root_ / name).parent_path());
    PlainFile file = read_plain_file(folder.get(), name.filename(), kLargestSource);
    if (!file.objection.empty()) {
      if (source) throw Error(fmt::format("{} {}", shown(root_ / name), file.objection));
      return leave_out(name);
    }
    if (name == kRecord) read_record(file.contents);
    if (source) {
      received_.answer.files.push_back({name, file.contents});
      if (received_.answer.files.size() > kMostSources)
        throw Error(fmt::format("{}: more than {} source files", shown(root_), kMostSources));
    }
    kept_bytes_ += file.contents.size();
    if (kept_bytes_ > kLargestKept || received_.answer.original.size() >= kMostKept) {
      kept_bytes_ -= file.contents.size();
      return leave_out(name);
    }
    received_.answer.original.push_back({name, std::move(file.contents)});
  }

  void require_name(const fs::path& name) const {
    if (const std::string objection = objection_to_name(name); !objection.empty())
      throw Error(fmt::format("{}: {}", shown(root_ / name), objection));
  }
  // A record that cannot be parsed is treated like any other file.
  void read_record(const std::string& text) {
    try {
      const AttemptRecord record = attempt_record_from(nlohmann::json::parse(text));
      received_.prompt_sha256 = record.prompt_sha256;
      received_.prompt_hints = record.prompt_hints;
    } catch (const nlohmann::json::exception&) {
      received_.ignored.emplace_back(kRecord);
    } catch (const FactError&) {
      received_.ignored.emplace_back(kRecord);
    }
  }
  void leave_out(const fs::path& name) { received_.not_kept.push_back(name); }
  // Does not mention files put there by `assay deploy` or built by its script.
  void ignore(const fs::path& name) {
    for (const char* known :
         {"PROMPT.md", "abi.h", "build.sh", "check.sh", "submission.so", kRecord}) {
      if (name == known) return;
    }
    received_.ignored.push_back(name);
  }

  const fs::path& root_;
  Received& received_;
  std::size_t kept_bytes_ = 0;
};

Received take_folder(const fs::path& folder, std::optional<Language> language,
                     const ExtractOptions& options) {
  Received received;
  FolderReader(folder, received).run();
  received.how = "a folder, its source files as they are";
  settle_main(received, language, options);
  return received;
}

}  // namespace

Received take_chat(std::string_view text, const std::string& name, std::optional<Language> language,
                   const ExtractOptions& options) {
  Extracted extracted = extract(text, language, options);
  Received received;
  received.answer.files = std::move(extracted.files);
  received.answer.original.push_back({name, std::string(text)});
  received.language = extracted.language;
  received.how = std::move(extracted.how);
  received.cut_off = extracted.cut_off;
  return received;
}

Received take_paths(const std::vector<fs::path>& paths, std::optional<Language> language,
                    const ExtractOptions& options) {
  if (paths.size() != 1) return take_sources(paths, language, options);
  const fs::path& path = paths.front();
  if (fs::is_directory(path)) {
    if (!options.blocks.empty())
      throw Error("--block chooses among the blocks of a chat answer; this is a folder");
    return take_folder(path, language, options);
  }
  const std::string name = path.filename();
  if (is_source_name(name) && objection_to_name(name).empty()) {
    if (options.blocks.empty() && !begins_like_chat(named_file(path, kLargestChat)))
      return take_sources(paths, language, options);
  }
  // The name comes from the user, not the model, but must still be allowed as a stored file's name.
  return take_chat(named_file(path, kLargestChat),
                   objection_to_name(name).empty() ? name : "answer.md", language, options);
}

}  // namespace assay::intake
