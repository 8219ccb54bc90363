// Towards the simplest draw that still fails. Pure: what it means to fail is the caller's affair.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "assay/case.h"

namespace assay::draw {

// Whether a draw fails in the way that is looked for.
using Fails = std::function<bool(const nlohmann::json& draw)>;

// Greedy: axis by axis, the simplest value with which the draw still fails, until no axis has one.
// Asks at most `most` times; a draw that fails is never left for a simpler one that does not.
nlohmann::json shrink(const RandomSpace&, nlohmann::json draw, const Fails&, int most);

}  // namespace assay::draw
