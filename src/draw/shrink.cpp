#include "draw/shrink.h"

#include "draw/space.h"

namespace assay::draw {

nlohmann::json shrink(const RandomSpace& space, nlohmann::json draw, const Fails& fails, int most) {
  const auto simplify = [&](const Axis& axis) {
    if (!draw.contains(axis.name)) return false;
    for (const nlohmann::json& value : simpler(axis, draw.at(axis.name))) {
      if (most-- <= 0) return false;
      nlohmann::json candidate = draw;
      candidate[axis.name] = value;
      if (!fails(candidate)) continue;
      draw = std::move(candidate);
      return true;
    }
    return false;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Axis& axis : space.axes) {
      while (simplify(axis)) changed = true;
    }
  }
  return draw;
}

}  // namespace assay::draw
