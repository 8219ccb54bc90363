// Turns submitted input into an answer: a chat answer, source files, or a work folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intake/attempt.h"
#include "intake/markdown.h"
#include "submission/submission.h"

namespace assay::intake {

struct Received {
  Answer answer;
  Language language = Language::cpp;  // of the main file; C++ if a folder has both
  std::string how;                    // for AttemptRecord, like cut_off and not_kept
  bool cut_off = false;
  std::vector<std::string> not_kept;  // files of a folder that are too large or not plain
  std::vector<std::string> ignored;   // files of a folder outside the answer, worth mentioning
  // The prompt it answers, according to a deployed folder's attempt.json; for AttemptRecord.
  std::string prompt_sha256{};
  std::optional<bool> prompt_hints{};
};

// Takes a chat answer, which is stored as original/`name`.
Received take_chat(std::string_view text, const std::string& name, std::optional<Language>,
                   const ExtractOptions&);

// Takes one chat answer, one folder, or source files. A file is a chat answer if its name ends in
// .md, .txt or .markdown or is not a source's, or if it begins with a fence or a thought. Source
// files and folders need a main file: submission.cpp or .cu, else the only .cpp or .cu besides
// tests, else the only one that defines the entry points. With a language, files in the other one
// are left out. A whole folder is stored as received, up to 64 MiB in total, 4 MiB per file and
// 1000 files; links are not followed. Throws NoAnswer, Ambiguous, or Error naming the path; files
// not allowed in a submission are refused by name.
Received take_paths(const std::vector<std::filesystem::path>&, std::optional<Language>,
                    const ExtractOptions&);

}  // namespace assay::intake
