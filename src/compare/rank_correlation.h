// How far two lists of numbers order the same things alike. Ties are part of the matter: marks are
// few, and so are scores of answers that do not build.
#pragma once

#include <optional>
#include <span>

namespace assay::compare {

// Kendall's tau-b (1945): (concordant - discordant pairs) / sqrt(pairs not tied in the first *
// pairs not tied in the second). From -1 to 1; nothing where one list has no two different values.
// REQUIRES equal lengths and finite values; throws std::invalid_argument otherwise.
std::optional<double> kendall_tau_b(std::span<const double>, std::span<const double>);

// Spearman's rho: Pearson's correlation of the ranks, equal values sharing the mean of theirs. The
// same otherwise.
std::optional<double> spearman_rho(std::span<const double>, std::span<const double>);

}  // namespace assay::compare
