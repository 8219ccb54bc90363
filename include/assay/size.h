// Signed counts and positions as containers take them.
#pragma once

#include <concepts>
#include <cstddef>

namespace assay {

// Shapes and positions of challenges are signed, so that their differences are; std::vector and
// std::span take std::size_t. `n` must not be negative.
constexpr std::size_t to_size(std::integral auto n) { return static_cast<std::size_t>(n); }

}  // namespace assay
