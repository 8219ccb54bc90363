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

// Where a challenge's files are, and the parts of it that are compiled in.
struct Source {
  std::filesystem::path root;  // holds challenges/ and include/
  const ChallengeSpec& spec;
  const Challenge& challenge;
  const PublicCases& published;
};

// How check.sh calls assay, quoted for a shell: the program, and the options before its command.
struct CheckProgram {
  std::string program, options;
};

// What to hand out.
struct Handout {
  std::vector<Language> languages;  // whose rules, grading, public cases and commands are included
  bool hints = false;               // include the challenge's hints.md: what experts know
};

// Everything that is handed out of a challenge, as one text: the task, hints if wanted, the rules,
// the grading, the public cases, the whole interface, and how it is compiled. Throws Error if a
// file of the challenge is missing.
std::string prompt_of(const Source&, const Handout&);

// The version of a prompt, as recorded in attempt.json: the SHA-256 of its text.
std::string version_of(const std::string& prompt);
// Whether one of the current prompts has this version, in any languages, with or without hints.
bool is_current(const Source&, const std::string& version);

// Makes `folder` with PROMPT.md, abi.h, build.sh, check.sh, skeletons for these languages, and an
// attempt.json with the prompt's version. check.sh calls `assay check`: the program in the variable
// ASSAY, else this one. Throws Error, and changes nothing, if the folder is not empty. Returns that
// version.
std::string deploy(const Source&, const Handout&, const std::filesystem::path& folder,
                   const CheckProgram&);

}  // namespace assay::task
