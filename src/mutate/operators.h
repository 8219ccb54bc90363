// The mutation operators: where and how a source may be changed in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::mutate {

enum class Operator : std::uint8_t {
  arithmetic,  // + and -, * and /, their assignments, shifts and bits
  bound,       // < and <=, > and >=
  relational,  // < and >, == and !=
  logical,     // && and ||
  constant,    // n to n + 1 and n - 1, true and false
  type,        // 64 bits to 32, double to float
  statement,   // removed
  arguments,   // two neighbours swapped
  condition,   // of if and while, negated
};

const char* to_string(Operator);

// Replaces `length` bytes at `begin`.
struct Edit {
  Operator op = Operator::arithmetic;
  std::size_t begin = 0, length = 0;
  std::string replacement;
};

// Every edit, sorted by place, then by operator. Assumes a formatted source, in which binary
// operators have spaces around them. Mutants may fail to compile.
std::vector<Edit> edits_of(std::string_view source);

}  // namespace assay::mutate
