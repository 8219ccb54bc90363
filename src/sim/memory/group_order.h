// What the members of a group (the warps of a block, the lanes of a warp) know of one another:
// vector clocks, with a compact form for the usual state, after all have met.
//
// Time is a number that only grows. Every act of a member is stamped with it. A member knows an act
// if a chain of meetings after the act leads to the member. After each meeting the caller advances
// time for the participants, so that a stamp tells whether an act came before or after it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

namespace assay::sim {

class GroupOrder {
 public:
  static constexpr unsigned kMembers = 32;
  using Row = std::array<std::uint32_t, kMembers>;

  // All members know everything up to `now`, and none has acted since.
  void reset(std::uint32_t now) {
    floor_.fill(now);
    common_ = now;
    acted_ = 0;
    rows_.reset();
  }

  void act(std::uint32_t members) { acted_ |= members; }
  std::uint32_t acted() const { return acted_; }

  // Whether `a` knows what `b` did at `time`.
  bool knows(std::uint32_t a, std::uint32_t b, std::uint32_t time) const {
    return time <= floor_[a] || (rows_ != nullptr && time <= (*rows_)[a][b]);
  }
  // `a` knows everything that any member did up to that time; it may know more of some.
  std::uint32_t floor(std::uint32_t a) const { return floor_[a]; }
  // The lowest floor of all members.
  std::uint32_t common() const { return common_; }
  // Whether floors are all there is to know.
  bool simple() const { return rows_ == nullptr; }

  // `a` learns what each member did up to the time in `row`.
  void learn(std::uint32_t a, const Row& row);
  // Joins into `row` up to when `a` knows each member.
  void tell(std::uint32_t a, Row& row) const;
  // `members` meet: each then knows what any of them knew, what they did up to `now`, and `also`.
  void meet(std::uint32_t members, std::uint32_t now, const Row* also = nullptr);

 private:
  Row floor_{};
  std::uint32_t common_ = 0;
  std::uint32_t acted_ = 0;
  std::unique_ptr<std::array<Row, kMembers>> rows_;  // once only part of the group has met
};

}  // namespace assay::sim
