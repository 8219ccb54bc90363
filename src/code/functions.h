// The functions that a source defines, read without a compiler.
//
// Names and brackets are read, types are not: macros stay what they look like, and of what is not
// C++ something is made. A lambda, and what a local class has, belong to the function in which they
// stand. Both branches of #if and #else are read, each as if it were alone; "#if 0" is not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::sources {

struct Function {
  std::string name;        // with the classes that are seen around it, at most 200 characters
  std::int64_t line = 0;   // of the name
  std::int64_t lines = 0;  // from the first of its head, template<> and attributes included
  // McCabe: 1, and 1 for each if, for, while, case, catch, ?:, && and || of its body.
  std::int64_t complexity = 1;
  // The most control statements and lambdas inside each other, with braces or without; else if is
  // no deeper than its if.
  std::int64_t nesting = 0;
};

// In their order. Takes time linear in the source's length.
std::vector<Function> functions_of(std::string_view source);

}  // namespace assay::sources
