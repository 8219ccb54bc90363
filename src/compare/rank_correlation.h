// How similarly two lists of numbers rank the same items. Ties must be handled: there are few
// distinct marks, and submissions that do not build all score the same.
#pragma once

#include <optional>
#include <span>

namespace assay::compare {

// Kendall's tau-b (1945): (concordant - discordant pairs) / sqrt(pairs not tied in the first *
// pairs not tied in the second). From -1 to 1; nothing if one list has no two different values.
// REQUIRES equal lengths and finite values; throws std::invalid_argument otherwise.
std::optional<double> kendall_tau_b(std::span<const double>, std::span<const double>);

// Spearman's rho: Pearson's correlation of the ranks; equal values share their mean rank. Otherwise
// as above.
std::optional<double> spearman_rho(std::span<const double>, std::span<const double>);

}  // namespace assay::compare
