// How much one request may ask for.
#pragma once

#include <cstddef>

namespace assay::serve {

inline constexpr std::size_t kLargestBody = 32u << 20;  // bytes
inline constexpr int kDeepestJson = 8;                  // objects and lists within each other
inline constexpr std::size_t kMostInBatch = 256;
inline constexpr std::size_t kLongestClientName = 64;
inline constexpr double kLongestWait = 60;          // seconds of one long poll
inline constexpr double kLongestDeadline = 86'400;  // seconds
inline constexpr int kHighestPriority = 9;

}  // namespace assay::serve
