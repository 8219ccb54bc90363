#include "sim/memory/group_order.h"

#include "sim/memory/lane_pattern.h"

namespace assay::sim {

void GroupOrder::tell(std::uint32_t a, Row& row) const {
  for (unsigned m = 0; m < kMembers; ++m) {
    row[m] = std::max(row[m], rows_ == nullptr ? floor_[a] : std::max(floor_[a], (*rows_)[a][m]));
  }
}

void GroupOrder::meet(std::uint32_t members, std::uint32_t now, const Row* also) {
  std::uint32_t floor = now;
  if ((acted_ & ~members) != 0) {
    if (rows_ == nullptr) rows_ = std::make_unique<std::array<Row, kMembers>>();
    Row joined{};
    if (also != nullptr) joined = *also;
    for_lanes(members, [&](std::uint32_t m) { tell(m, joined); });
    for_lanes(members, [&](std::uint32_t m) { joined[m] = std::max(joined[m], now); });
    for_lanes(members, [&](std::uint32_t m) { (*rows_)[m] = joined; });
    // Members that never acted have nothing to know.
    for_lanes(acted_, [&](std::uint32_t m) { floor = std::min(floor, joined[m]); });
  }
  for_lanes(members, [&](std::uint32_t m) { floor_[m] = std::max(floor_[m], floor); });
  common_ = *std::min_element(floor_.begin(), floor_.end());
}

void GroupOrder::learn(std::uint32_t a, const Row& row) {
  if (rows_ == nullptr) {
    if (*std::max_element(row.begin(), row.end()) <= floor_[a]) return;
    rows_ = std::make_unique<std::array<Row, kMembers>>();
  }
  Row& known = (*rows_)[a];
  for (unsigned m = 0; m < kMembers; ++m) known[m] = std::max({known[m], floor_[a], row[m]});
  if (acted_ == 0) return;
  std::uint32_t floor = ~std::uint32_t{0};
  for_lanes(acted_, [&](std::uint32_t m) { floor = std::min(floor, known[m]); });
  floor_[a] = std::max(floor_[a], floor);
  common_ = *std::min_element(floor_.begin(), floor_.end());
}

}  // namespace assay::sim
