#include "agent/solve.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "agent/session_log.h"
#include "spec/spec.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/plain_file.h"
#include "util/temporary_folder.h"
#include "util/text.h"

namespace assay::agent {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kShownLines = 5;

Submission rejected(std::string why) {
  Submission none;
  none.rejected = std::move(why);
  return none;
}

// The answer in a folder: files that may belong to one, without build products (submission.so) and
// links.
Submission answer_in(const fs::path& folder, Language language, const std::string& challenge) {
  const TemporaryFolder sources("assay-answer-");
  std::error_code ec;
  fs::directory_iterator entries(folder, ec);
  if (ec) return rejected(fmt::format("its folder cannot be read: {}", ec.message()));
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename();
    if (!is_source_name(name) || entry.symlink_status(ec).type() != fs::file_type::regular)
      continue;
    if (const std::string objection = objection_to_name(name); !objection.empty())
      return rejected(fmt::format("{}: {}", printable(name, 1, 80), objection));
    const PlainFile file = read_plain_file(fd.get(), name, kLargestSource);
    if (!file.objection.empty())
      return rejected(fmt::format("{}: {}", printable(name, 1), file.objection));
    write_file_alone(sources.path() / name, file.contents);
  }
  std::vector<Submission> found = read_submissions(sources.path(), "", challenge, "");
  for (Submission& s : found)
    if (s.language == language && s.rejected.empty()) return s;
  Submission none = found.front();
  none.sources.clear();
  if (none.rejected.empty() || !fs::exists(sources.path() / main_file(language)))
    none.rejected = fmt::format("{} is missing", main_file(language));
  return none;
}

}  // namespace

std::string Solution::ending() const {
  const std::string after = fmt::format(" after {:.1f} s", ended.seconds);
  switch (ended.how) {
    case Ended::How::exited: return fmt::format("exited with {}{}", ended.status, after);
    case Ended::How::killed: {
      const char* name = ::sigabbrev_np(ended.status);
      return fmt::format("killed by SIG{}{}", name != nullptr ? name : "?", after);
    }
    case Ended::How::timed_out: return "ended at the time limit" + after;
    case Ended::How::stopped: return "stopped" + after;
  }
  return {};
}

std::vector<std::string> with_places(
    std::vector<std::string> words,
    const std::vector<std::pair<std::string, std::string>>& places) {
  for (std::string& word : words) {
    std::string text;
    for (std::size_t at = 0; at < word.size();) {
      const auto place = std::ranges::find_if(
          places, [&](const auto& p) { return word.compare(at, p.first.size(), p.first) == 0; });
      if (place == places.end()) {
        text += word[at++];
      } else {
        text += place->second;
        at += place->first.size();
      }
    }
    word = std::move(text);
  }
  return words;
}

Solution solve(const Assignment& a, const Redactor& redactor) {
  const task::Handout handout{{a.language}, a.hints};
  Solution solution;
  solution.prompt_sha256 = task::deploy(a.source, handout, a.folder, a.check);
  const std::string challenge = a.source.spec.name;
  const Submission before = answer_in(a.folder, a.language, challenge);
  const fs::path folder = fs::absolute(a.folder), prompt = folder / "PROMPT.md";
  const std::string language = a.language == Language::cpp ? "cpp" : "cuda";

  Program program;
  program.command = with_places(a.command, {{"{prompt}", prompt.string()},
                                            {"{dir}", folder.string()},
                                            {"{challenge}", challenge},
                                            {"{language}", language}});
  program.folder = folder;
  if (a.prompt_as_input) program.input = prompt;
  program.variables = {{"ASSAY_PROMPT", prompt.string()},
                       {"ASSAY_CHALLENGE", challenge},
                       {"ASSAY_LANGUAGE", language},
                       {"PWD", folder.string()}};
  program.time_limit = a.time_limit;
  program.grace = a.grace;

  SessionLog log(a.log, redactor);
  solution.ended = run_program(program, [&](std::string_view output) { log.add(output); });
  log.close();
  solution.output_bytes = log.size();
  solution.last_output = log.last_lines(kShownLines);
  if (!fs::is_directory(fs::symlink_status(folder))) {
    solution.no_answer = "the command removed its folder";
    solution.touched = true;
    return solution;
  }
  Submission after = answer_in(folder, a.language, challenge);
  solution.touched = source_hash(after) != source_hash(before);
  if (!after.rejected.empty()) {
    solution.no_answer = after.rejected;
  } else if (!solution.touched) {
    solution.no_answer = "the skeleton is as it was";
  } else {
    solution.files = std::move(after.sources);
    if (!after.test_source.empty())
      solution.files.push_back({tests_file(a.language), std::move(after.test_source)});
  }
  return solution;
}

}  // namespace assay::agent
