// Shrinks a draw to the simplest one that still fails. Pure: the caller defines failure.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "assay/case.h"

namespace assay::draw {

// Whether a draw fails in the way of interest.
using Fails = std::function<bool(const nlohmann::json& draw)>;

// Greedy: axis by axis, takes the simplest value with which the draw still fails, until no axis
// improves. Calls `Fails` at most `most` times; never replaces a failing draw by one that passes.
nlohmann::json shrink(const RandomSpace&, nlohmann::json draw, const Fails&, int most);

}  // namespace assay::draw
