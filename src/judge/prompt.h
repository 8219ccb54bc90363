// The prompt for judging one answer: the task, the answer's files as data that must not be obeyed,
// the rubric, and the reply format. It contains no measurements and does not name the author.
#pragma once

#include <string>
#include <vector>

#include "judge/rubric.h"
#include "submission/submission.h"

namespace assay::judge {

// Larger answers are not judged: no judge would read them.
inline constexpr std::size_t kLargestAnswer = std::size_t{256} << 10;  // bytes

struct Prompt {
  std::string system, user;

  std::string sha256() const;  // over both parts
  std::size_t bytes() const { return system.size() + user.size(); }
  bool operator==(const Prompt&) const = default;
};

// `task` is the prompt of the challenge. Pure. The lines of the files are enclosed in two
// marker lines; no file contains the marker. Bytes that are not UTF-8 become U+FFFD.
Prompt prompt_of(const Rubric&, const std::string& task, const std::vector<SourceFile>& files);

}  // namespace assay::judge
