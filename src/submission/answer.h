// PATH -> the answers there, and the challenge that they answer: for commands that look at one
// answer wherever it lies. Nothing there is written to.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"
#include "submission/submission.h"

namespace assay {

// The answers at a path: one source file (read_source_file), or a folder as in submissions/
// (read_submissions), C++ before CUDA. They have no model and no challenge yet. Throws Error when
// there is nothing, or a folder without submission.cpp and submission.cu.
std::vector<Submission> read_answers(const std::filesystem::path&);

// Which challenge, and how that is known.
struct Recognised {
  std::string challenge;
  std::string how;  // "its folder says so"
};

// From the name of the folder or of that above it, where one is a challenge's; else from the
// functions that the sources define. Throws Error that names the candidates where that leaves none
// or several. `path` need not be absolute.
Recognised recognise_challenge(const std::filesystem::path& path, std::span<const Submission>,
                               std::span<const ChallengeSpec>);

// Those of these functions that C++ text defines, declares or calls, outside comments and literals.
std::vector<std::string> functions_named(std::string_view source,
                                         std::span<const std::string> functions);

}  // namespace assay
