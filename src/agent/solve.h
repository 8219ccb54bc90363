// Gives one task to an agent's command line: deploys a folder, runs the command in it, and reads
// the answer it left there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "agent/process_tree.h"
#include "submission/submission.h"
#include "task/task.h"
#include "util/redact.h"

namespace assay::agent {

struct Assignment {
  task::Source source;
  task::CheckProgram check;  // for the folder's check.sh
  Language language = Language::cpp;
  bool hints = false;                  // whether the prompt includes hints
  std::vector<std::string> command{};  // may contain {prompt}, {dir}, {challenge}, {language}
  bool prompt_as_input = false;        // standard input is the prompt; else empty
  double time_limit = 0, grace = 10;   // seconds
  std::filesystem::path folder{};      // work folder: empty, or does not exist yet
  std::filesystem::path log{};         // file for its output
};

struct Solution {
  Ended ended;
  std::string prompt_sha256;      // the version of the prompt
  std::vector<SourceFile> files;  // main file first, tests among the others; or
  std::string no_answer;          // why there are no files
  bool touched = false;           // the folder's sources have changed
  std::uint64_t output_bytes = 0;
  std::string last_output;  // the last lines, without secrets, safe to print

  // "exited with 1 after 3.2 s"
  std::string ending() const;
};

// The words with {prompt} and the other placeholders replaced; other braces stay.
std::vector<std::string> with_places(
    std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& places);

// Deploys, runs, and reads the answer: only the plain source files in the folder. The command gets
// ASSAY_PROMPT (the path of the prompt), ASSAY_CHALLENGE and ASSAY_LANGUAGE in its environment.
// Throws Error if the folder is not empty, or the command cannot be started.
Solution solve(const Assignment&, const Redactor&);

}  // namespace assay::agent
