// Attempts on disk: submissions/<model>/<challenge>/<n>/ with
//
//   submission.cpp ...   the graded files
//   original/            the files as received, byte for byte
//   attempt.json         the facts about the attempt: AttemptRecord
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/entrant.h"
#include "submission/submission.h"

namespace assay::intake {

struct Answer {
  std::vector<SourceFile> files;  // the graded files; if none, AttemptRecord::no_answer says why
  // The files as received, and anything else that belongs to the attempt (exchanges, logs). Names
  // may contain folders ("logs/a.txt"); names that would lead elsewhere are refused.
  std::vector<SourceFile> original{};
};

// Stores an answer as the next attempt and returns its folder. `n` is one more than the highest
// existing number; an unnumbered answer in the challenge's folder counts as the first. The attempt
// appears whole or not at all: it is written to a folder beside the models that is not mistaken for
// one, and then moved into place; the move fails if the number is taken. So several processes may
// store at once, and a kill leaves only a folder ".adding-..." that the next call removes. The
// attempt is on disk when the call returns. `date` is set if it is empty; texts in the record are
// made short and printable. Throws Error and leaves nothing behind if the model's name is not
// allowed as a results folder, a file's name is not allowed in a submission, there are neither
// files nor a reason, or the disk is full.
std::filesystem::path store_attempt(const std::filesystem::path& submissions,
                                    const std::string& model, const std::string& challenge,
                                    const Answer&, const AttemptRecord&);

}  // namespace assay::intake
