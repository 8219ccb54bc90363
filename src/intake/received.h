// What is handed in -> an answer: a chat answer, source files, or a folder that somebody worked in.
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
  Language language = Language::cpp;  // of the main file; C++ where a folder has both
  std::string how;                    // for AttemptRecord, as are cut_off and not_kept
  bool cut_off = false;
  std::vector<std::string> not_kept;  // what of a folder is too large, or no plain file
  std::vector<std::string> ignored;   // what of a folder is no part of the answer, and worth a word
  // Which prompt it answers, as attempt.json of a deployed folder says: for AttemptRecord.
  std::string prompt_sha256{};
  std::optional<bool> prompt_hints{};
};

// A chat answer; it is kept as original/`name`.
Received take_chat(std::string_view text, const std::string& name, std::optional<Language>,
                   const ExtractOptions&);

// One chat answer, one folder, or source files. A file is a chat answer where its name ends in .md,
// .txt or .markdown or is no source's, or where it begins with a fence or a thought. Source files
// and folders need a main file: submission.cpp or .cu, else the only .cpp or .cu besides tests,
// else the only one that defines the entry points. With a language, what is of the other is left
// out. All of a folder is kept as received, up to 64 MiB, 4 MiB a file and 1000 files; links are
// not followed. Throws NoAnswer, Ambiguous, or Error that names the path: what may not be in a
// submission is refused by name.
Received take_paths(const std::vector<std::filesystem::path>&, std::optional<Language>,
                    const ExtractOptions&);

}  // namespace assay::intake
