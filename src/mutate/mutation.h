// One-place mutants of a correct answer: enumeration, naming and sampling.
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
  std::uint32_t line = 1;     // the first changed line
  std::string before, after;  // the changed lines, with white space collapsed
  int nth = 1;                // among those in this file with the same before and after
  Edit edit;
};

// All mutants of the sources, file by file in source order; two edits with the same result count
// once. `scope` identifies the answer, such as "textbook/CHALLENGE".
std::vector<Mutation> mutations_of(const std::vector<SourceFile>& sources,
                                   const std::string& scope);

// The mutants in sampling order: a larger sample begins with the same mutants.
std::vector<Mutation> in_drawing_order(std::vector<Mutation>, std::uint64_t seed,
                                       const std::string& scope);

std::string mutated(std::string_view source, const Edit&);

}  // namespace assay::mutate
