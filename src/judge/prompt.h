// What a judge is told of one answer: the task, the answer's files as data that is not to be
// obeyed, the rubric, the form of the reply. Nothing that was measured is in it, nor whose answer
// it is.
#pragma once

#include <string>
#include <vector>

#include "judge/rubric.h"
#include "submission/submission.h"

namespace assay::judge {

// An answer with more source than this is not judged: no judge would read it.
inline constexpr std::size_t kLargestAnswer = std::size_t{256} << 10;  // bytes

struct Prompt {
  std::string system, user;

  std::string sha256() const;  // of both
  std::size_t bytes() const { return system.size() + user.size(); }
  bool operator==(const Prompt&) const = default;
};

// `task` is what the answer's author was given. A function of its arguments alone. Every line of
// the files stands between two lines with a marker that none of them holds. Bytes that are not
// UTF-8 become U+FFFD.
Prompt prompt_of(const Rubric&, const std::string& task, const std::vector<SourceFile>& files);

}  // namespace assay::judge
