// A chat answer -> source files.
//
// A model replies in Markdown: prose, fenced blocks with file names in or above them, and thoughts.
// Blocks are CommonMark's, with any indentation, in lists and in quotes; anything within
// <think>...</think> is ignored. The answer is the blocks distinguished by names, or the only block
// that defines the challenge's entry points, or the only block with code. If that does not decide,
// nothing is guessed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/error.h"
#include "submission/submission.h"

namespace assay::intake {

struct ExtractOptions {
  std::vector<std::string> entry_points;  // ChallengeSpec::required_symbols
  // Numbers of fenced blocks, from 1, as listed by an Ambiguous. Only these are then taken: blocks
  // that name a file become that file, the others, concatenated, the main file.
  std::vector<std::size_t> blocks{};
};

struct Extracted {
  // The main file first, under its standard name; test.cpp or test.cu may be among the others. Line
  // ends are '\n'. All names are plain and allowed in a submission, whatever the answer says.
  std::vector<SourceFile> files;
  Language language = Language::cpp;
  std::string how;       // "the fenced block at line 12, named in the line above"
  bool cut_off = false;  // a block taken is not closed: the answer ends within it
};

// There is no code at all, so the attempt has no answer. The text states briefly why.
class NoAnswer : public Error {
 public:
  using Error::Error;
};

// Several blocks could be the answer. The text lists them by number; untrusted parts are made
// printable.
class Ambiguous : public Error {
 public:
  using Error::Error;
};

// If no language is given, it is derived from the main file's name, the block's info string, or
// CUDA-only constructs. Throws NoAnswer, Ambiguous, or Error if the text is larger than 16 MiB, a
// file would exceed the limit for submissions, or a chosen block does not exist.
Extracted extract(std::string_view markdown, std::optional<Language>, const ExtractOptions&);

}  // namespace assay::intake
