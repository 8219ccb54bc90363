// One task, given to an agent's command line: a deployed folder, the command in it, and what it
// left there as an answer.
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
  bool hints = false;                  // in the prompt
  std::vector<std::string> command{};  // with {prompt}, {dir}, {challenge}, {language} in it
  bool prompt_as_input = false;        // its standard input is the prompt; else nothing
  double time_limit = 0, grace = 10;   // seconds
  std::filesystem::path folder{};      // to work in: empty, or not there yet
  std::filesystem::path log{};         // of its output
};

struct Solution {
  Ended ended;
  std::string prompt_sha256;      // the version of the prompt
  std::vector<SourceFile> files;  // the main file first, its tests among the others; or
  std::string no_answer;          // why there are none
  bool touched = false;           // the folder's sources are not what they were
  std::uint64_t output_bytes = 0;
  std::string last_output;  // some lines, without secrets, safe to print

  // "exited with 1 after 3.2 s"
  std::string ending() const;
};

// The words with what stands for {prompt} and so on; other braces stay.
std::vector<std::string> with_places(
    std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& places);

// Deploys, runs, and reads the answer: the plain source files of the folder, nothing else that lies
// there. The command finds ASSAY_PROMPT (the path of the prompt), ASSAY_CHALLENGE and
// ASSAY_LANGUAGE in its environment. Throws Error when the folder holds anything, or the command
// cannot be started.
Solution solve(const Assignment&, const Redactor&);

}  // namespace assay::agent
