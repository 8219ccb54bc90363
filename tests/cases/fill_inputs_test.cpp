#include "cases/fill_inputs.h"

#include <gtest/gtest.h>

#include <array>

#include "support/bare_challenge.h"

namespace assay::cases {
namespace {

enum Handle { kX, kState, kY, kSparse, kLack };

// Keeps the sizes of the views that fill() was given, and writes to all of them.
class Recording final : public BareChallenge {
 public:
  CasePlan plan(const CaseSpec&) const override {
    CasePlan plan;
    plan.buffers = {{.name = "x", .shape = {3}},
                    {.name = "state", .shape = {2}, .role = Role::inout},
                    {.name = "y", .shape = {1}, .role = Role::output},
                    {.name = "sparse", .shape = {1LL << 40}, .pieces = {{0, 1}}},
                    {.name = "lack", .shape = {4}, .null = true}};
    plan.pass_as_null({"x", "state", "y", "sparse"});
    return plan;
  }
  void fill(const CaseSpec&, const CasePlan&, const Seeds&, BufferViews buffers) const override {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = buffers[i].bytes;
      for (float& value : buffers[i].span<float>()) value += 1;
    }
  }
  mutable std::array<std::size_t, 5> bytes{};
};

TEST(FillInputs, WhatACaseWithholdsIsFilled) {
  const Recording challenge;
  const CaseSpec spec;
  const std::array<BufferView, 5> none{};
  fill_inputs(challenge, spec, challenge.plan(spec), Seeds(1), none);
  EXPECT_EQ(challenge.bytes[kX], 12u);
  EXPECT_EQ(challenge.bytes[kState], 8u);
  EXPECT_EQ(challenge.bytes[kY], 0u) << "nobody fills outputs";
  EXPECT_EQ(challenge.bytes[kSparse], 0u) << "four terabytes";
  EXPECT_EQ(challenge.bytes[kLack], 0u) << "the case has no such array";
}

}  // namespace
}  // namespace assay::cases
