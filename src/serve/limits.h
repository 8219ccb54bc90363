// Limits on one request.
#pragma once

#include <cstddef>

namespace assay::serve {

inline constexpr std::size_t kLargestBody = 32u << 20;  // bytes
inline constexpr int kDeepestJson = 8;                  // nesting depth of objects and lists
inline constexpr std::size_t kMostInBatch = 256;
inline constexpr std::size_t kMostKeys = 256;  // of a JSON object: an answer has 64 files at most
inline constexpr std::size_t kLongestClientName = 64;
inline constexpr double kLongestWait = 60;          // seconds of one long poll
inline constexpr double kLongestDeadline = 86'400;  // seconds
inline constexpr int kHighestPriority = 9;

}  // namespace assay::serve
