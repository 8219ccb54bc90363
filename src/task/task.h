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

// What is asked for.
struct Handout {
  std::vector<Language> languages;  // whose rules and commands are told; graded as the first
  bool hints = false;               // with hints.md of the challenge: what experts know
};

// All that is handed out of a challenge as one text: the task, hints where they are wanted, the
// rules, the grading, the public cases, the whole interface, how it is compiled. Throws Error when
// a file of the challenge is missing.
std::string prompt_of(const Source&, const Handout&);

// The version of a prompt, as it stands in attempt.json: SHA-256 of its text.
std::string version_of(const std::string& prompt);
// Whether one of today's prompts has this version, in whichever languages, with hints or without.
bool is_current(const Source&, const std::string& version);

// Makes `folder` with PROMPT.md, abi.h, build.sh, check.sh, the skeletons of these languages and an
// attempt.json that says which version of the prompt this is. check.sh calls `assay check`: that of
// the variable ASSAY, else this one. Throws Error, and changes nothing, when the folder holds
// anything already. Returns that version.
std::string deploy(const Source&, const Handout&, const std::filesystem::path& folder,
                   const CheckProgram&);

}  // namespace assay::task
