// What a model is given to answer a challenge: one text, or a folder to work in.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/challenge.h"
#include "spec/public_cases.h"
#include "submission/submission.h"

namespace assay::task {

// Where the files of a challenge lie, and what is compiled in of it.
struct Source {
  std::filesystem::path root;  // holds challenges/ and include/
  const ChallengeSpec& spec;
  const Challenge& challenge;
  const PublicCases& published;
};

// How check.sh calls assay, words as a shell takes them: the program, and the options before its
// command.
struct CheckProgram {
  std::string program, options;
};

// All that is handed out of a challenge as one text: the task, the rules, the grading, the public
// cases, the whole interface, how it is compiled. Throws Error when a file of the challenge is missing.
std::string prompt_of(const Source&, Language);

// Makes `folder` with PROMPT.md, abi.h, build.sh, check.sh and the skeletons of these languages.
// check.sh calls `assay check`: that of the variable ASSAY, else this one. Throws Error, and changes
// nothing, when the folder holds anything already.
void deploy(const Source&, const std::vector<Language>& languages,
            const std::filesystem::path& folder, const CheckProgram&);

}  // namespace assay::task
