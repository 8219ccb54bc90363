// The functions that a source defines, read without a compiler.
//
// Reads names and brackets, but not types: macros are taken literally, and input that is not C++
// gives arbitrary results. Lambdas and members of local classes belong to the function that
// contains them. Both branches of #if and #else are read, each as if it were alone; "#if 0" is not
// read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::sources {

struct Function {
  std::string name;        // qualified with visible enclosing classes, at most 200 characters
  std::int64_t line = 0;   // of the name
  std::int64_t lines = 0;  // from the start of its head, including template<> and attributes
  // McCabe: 1 plus 1 for each if, for, while, case, catch, ?:, && and || in its body.
  std::int64_t complexity = 1;
  // Deepest nesting of control statements and lambdas, with or without braces; an else if is no
  // deeper than its if.
  std::int64_t nesting = 0;
};

// In source order. Takes time linear in the source's length.
std::vector<Function> functions_of(std::string_view source);

}  // namespace assay::sources
