// The processor for which C++ submissions and their baselines are compiled: a name the compiler
// accepts after -march=.
#pragma once

#include <set>
#include <string>

namespace assay {

// "AVX2", "FMA" ...: the instruction sets that code for the target may use, as the compiler's
// macros name them. Throws Error with the remedy if the compiler does not know the target.
std::set<std::string> instruction_sets(const std::string& compiler, const std::string& target);

// Throws Error, naming what is missing, if code for the target does not run on this machine.
void require_target(const std::string& compiler, const std::string& target);

}  // namespace assay
