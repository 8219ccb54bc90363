#include "submission/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "assay/error.h"
#include "util/text.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kPathShown = 256;

std::string shown_path(const fs::path& path) { return printable(path.string(), 1, kPathShown); }

bool part_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The end of the comment or literal that begins at `at`, or `at` if none begins there.
std::size_t end_of_no_code(std::string_view text, std::size_t at) {
  const auto behind = [&](std::string_view mark, std::size_t from) {
    const std::size_t found = text.find(mark, from);
    return found == std::string_view::npos ? text.size() : found + mark.size();
  };
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return behind("\n", at);
  if (rest.starts_with("/*")) return behind("*/", at + 2);
  const char quote = rest.front();
  const bool separates_digits = quote == '\'' && at > 0 && part_of_a_name(text[at - 1]);
  if ((quote != '"' && quote != '\'') || separates_digits) return at;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote || text[i] == '\n') {
      return i + 1;
    }
  }
  return text.size();
}

// The names that are followed by an opening parenthesis.
std::set<std::string_view> called_or_defined(std::string_view text) {
  std::set<std::string_view> names;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t end = end_of_no_code(text, at); end != at) {
      at = end;
      continue;
    }
    if (!part_of_a_name(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && part_of_a_name(text[end])) ++end;
    std::size_t next = end;
    while (next < text.size() && std::isspace(static_cast<unsigned char>(text[next])) != 0) ++next;
    if (next < text.size() && text[next] == '(') names.insert(text.substr(at, end - at));
    at = end;
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<std::string> names_of(std::span<const ChallengeSpec> specs) {
  std::vector<std::string> names;
  for (const ChallengeSpec& spec : specs) names.push_back(spec.name);
  return names;
}

// How many of a challenge's functions an answer has.
struct Match {
  const ChallengeSpec* spec = nullptr;
  std::vector<std::string> functions{};
  bool complete = false;  // has all required functions
};

Match match(const ChallengeSpec& spec, std::span<const Submission> answers) {
  std::vector<std::string> all = spec.required_symbols;
  all.insert(all.end(), spec.optional_symbols.begin(), spec.optional_symbols.end());
  std::set<std::string> found;
  for (const Submission& answer : answers) {
    for (const SourceFile& file : answer.sources) {
      for (std::string& name : functions_named(file.contents, all)) found.insert(std::move(name));
    }
  }
  const auto is_there = [&](const std::string& name) { return found.contains(name); };
  std::erase_if(all, [&](const std::string& name) { return !is_there(name); });
  return {&spec, all, std::ranges::all_of(spec.required_symbols, is_there)};
}

Recognised recognise_by_functions(const fs::path& path, std::span<const Submission> answers,
                                  std::span<const ChallengeSpec> specs) {
  std::vector<Match> matches;
  for (const ChallengeSpec& spec : specs) {
    Match m = match(spec, answers);
    if (!m.functions.empty()) matches.push_back(std::move(m));
  }
  // One challenge's functions can be another's optional ones, so the best match has all required
  // functions, and the most functions in total.
  const auto better = [](const Match& a, const Match& b) {
    return std::pair(a.complete, a.functions.size()) > std::pair(b.complete, b.functions.size());
  };
  std::ranges::stable_sort(matches, better);
  if (matches.empty()) {
    throw Error(
        fmt::format("{} defines no function of any challenge: name the one that it answers with "
                    "--challenge: {}",
                    shown_path(path), joined(names_of(specs))));
  }
  if (matches.size() > 1 && !better(matches[0], matches[1])) {
    std::vector<std::string> candidates;
    for (const Match& m : matches) {
      if (!better(matches[0], m)) candidates.push_back(m.spec->name);
    }
    throw Error(fmt::format("{} could answer {}: say which with --challenge", shown_path(path),
                            joined(candidates)));
  }
  return {matches[0].spec->name, "it has " + matches[0].functions.front() + "()"};
}

}  // namespace

std::vector<std::string> functions_named(std::string_view source,
                                         std::span<const std::string> functions) {
  const std::set<std::string_view> names = called_or_defined(source);
  std::vector<std::string> found;
  for (const std::string& name : functions) {
    if (names.contains(name)) found.push_back(name);
  }
  return found;
}

std::vector<Submission> read_answers(const fs::path& path) {
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (!fs::exists(status)) {
    throw Error(fmt::format("{}: no such file or folder: name an answer's folder, or its source",
                            shown_path(path)));
  }
  if (!fs::is_directory(status)) return {read_source_file(path, "")};
  bool has_main_file = false;
  for (const Language language : {Language::cpp, Language::cuda}) {
    has_main_file |= fs::exists(fs::symlink_status(path / main_file(language), ec));
  }
  if (!has_main_file) {
    throw Error(
        fmt::format("{} holds no submission.cpp and no submission.cu: name the source itself, or "
                    "the folder of one attempt",
                    shown_path(path)));
  }
  // Resolves the path first, because the folder that a user names may be reached through links.
  return read_submissions(fs::canonical(path), "", "", "");
}

Recognised recognise_challenge(const fs::path& path, std::span<const Submission> answers,
                               std::span<const ChallengeSpec> specs) {
  std::error_code ec;
  fs::path folder = fs::weakly_canonical(fs::absolute(path), ec);
  if (!fs::is_directory(folder, ec)) folder = folder.parent_path();
  for (const fs::path& place : {folder, folder.parent_path()}) {
    const std::string name = place.filename();
    if (std::ranges::find(specs, name, &ChallengeSpec::name) != specs.end())
      return {name, "its folder says so"};
  }
  return recognise_by_functions(path, answers, specs);
}

}  // namespace assay
