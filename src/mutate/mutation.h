// One-place mutants of a right answer: which there are, how they are named, which are sampled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mutate/operators.h"
#include "submission/submission.h"

namespace assay::mutate {

struct Mutation {
  std::string id;        // ten hexadecimal digits; edits elsewhere in the answer do not change it
  std::size_t file = 0;  // index of the source
  std::string file_name;
  std::uint32_t line = 1;     // the first that is changed
  std::string before, after;  // the changed lines, white space squeezed
  int nth = 1;                // of those in this file with the same before and after
  Edit edit;
};

// All mutants of the sources, file by file in the order of their places; what two edits give alike
// counts once. `scope` tells answers apart, such as "textbook/CHALLENGE".
std::vector<Mutation> mutations_of(const std::vector<SourceFile>& sources,
                                   const std::string& scope);

// The mutants in the order in which they are drawn: a longer list begins with the same ones.
std::vector<Mutation> in_drawing_order(std::vector<Mutation>, std::uint64_t seed,
                                       const std::string& scope);

std::string mutated(std::string_view source, const Edit&);

}  // namespace assay::mutate
