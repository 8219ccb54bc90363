// Finds the answers at a path, and the challenge that they answer, for commands that look at one
// answer wherever it is. Nothing there is written to.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"
#include "submission/submission.h"

namespace assay {

// The answers at a path: one source file (read_source_file), or a folder laid out as in
// submissions/ (read_submissions), C++ before CUDA. They have no model and no challenge yet. Throws
// Error if there is nothing, or if it is a folder without submission.cpp and submission.cu.
std::vector<Submission> read_answers(const std::filesystem::path&);

// Which challenge, and how that was determined.
struct Recognised {
  std::string challenge;
  std::string how;  // "its folder says so"
};

// From the name of the folder or its parent, if one is a challenge's; else from the functions that
// the sources define. Throws an Error that names the candidates if that leaves none or several.
// `path` need not be absolute.
Recognised recognise_challenge(const std::filesystem::path& path, std::span<const Submission>,
                               std::span<const ChallengeSpec>);

// Which of these functions C++ text defines, declares or calls, outside comments and literals.
std::vector<std::string> functions_named(std::string_view source,
                                         std::span<const std::string> functions);

}  // namespace assay
