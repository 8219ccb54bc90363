// Attempts on disk: submissions/<model>/<challenge>/<n>/ with
//
//   submission.cpp ...   what is graded
//   original/            what was received, byte for byte
//   attempt.json         what is known of it: AttemptRecord
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/entrant.h"
#include "submission/submission.h"

namespace assay::intake {

struct Answer {
  std::vector<SourceFile> files;  // what is graded; none: AttemptRecord::no_answer says why
  // What was received, and whatever else belongs to the attempt (exchanges, logs). Names may be
  // below folders ("logs/a.txt"); those that would lead elsewhere are refused.
  std::vector<SourceFile> original{};
};

// Stores an answer as the next attempt and returns its folder. `n` is one more than the highest
// number there; an answer that lies unnumbered in the challenge's folder is the first. The attempt
// appears whole or not at all: it is written beside the models, in a folder that nobody takes for
// one, and moved into its place, where the move fails if the number is taken. So several processes
// may store at once, and a kill leaves a folder ".adding-..." that the next call removes. On disk
// when it returns. `date` is set if it is empty, texts of the record are made short and printable.
// Throws Error, and leaves nothing, when the model's name may not be a folder of results, a file's
// name may not be in a submission, there are neither files nor a reason, or the disk is full.
std::filesystem::path store_attempt(const std::filesystem::path& submissions,
                                    const std::string& model, const std::string& challenge,
                                    const Answer&, const AttemptRecord&);

}  // namespace assay::intake
