// A chat answer -> source files.
//
// What a model replies is Markdown: prose, fenced blocks, names of files in or above them,
// thoughts. The blocks are those of CommonMark, with any indentation, in lists and in quotes; what
// stands within <think>...</think> is none. The answer is the blocks that names tell apart, or the
// only block that defines the challenge's entry points, or the only block with code. Where that
// does not decide, nothing is guessed.
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
  // Numbers of fenced blocks, as an Ambiguous lists them, counted from 1. Nothing else is taken
  // then: blocks that name a file are that file, the others, one after the other, the main file.
  std::vector<std::size_t> blocks{};
};

struct Extracted {
  // The main file first, named as a submission names it; test.cpp or test.cu among the others. Line
  // ends are '\n'. All names are plain and may be in a submission, whatever the answer says.
  std::vector<SourceFile> files;
  Language language = Language::cpp;
  std::string how;       // "the fenced block at line 12, named in the line above"
  bool cut_off = false;  // a block that was taken is not closed: the answer ends within it
};

// There is no code at all: the attempt gave no answer. The text says why, in a few words.
class NoAnswer : public Error {
 public:
  using Error::Error;
};

// Several blocks could be the answer. The text shows them, each with its number; untrusted parts
// are made printable.
class Ambiguous : public Error {
 public:
  using Error::Error;
};

// Without a language it is found out: by the name of the main file, the block's info string, or
// what only CUDA has. Throws NoAnswer, Ambiguous, or Error when the text is larger than 16 MiB, a
// file would be larger than a submission's may be, or a chosen block does not exist.
Extracted extract(std::string_view markdown, std::optional<Language>, const ExtractOptions&);

}  // namespace assay::intake
