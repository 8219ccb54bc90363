// The processor that answers in C++, and what they are measured against, are compiled for: a name
// that the compiler takes after -march=.
#pragma once

#include <set>
#include <string>

namespace assay {

// "AVX2", "FMA" ...: the instruction sets that code for the target may use, as the compiler's
// macros name them. Throws Error with the remedy when the compiler does not know the target.
std::set<std::string> instruction_sets(const std::string& compiler, const std::string& target);

// Throws Error when code for the target does not run on this machine, with what it lacks.
void require_target(const std::string& compiler, const std::string& target);

}  // namespace assay
