// How every attention challenge treats recorded calls that are not valid cases.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "challenges/recorded_case.h"
#include "shared/attention.h"

namespace assay::testing {

// Forged numbers: none makes the harness compute or allocate without bounds. `Params` are the
// adapter's parameters; their `p` are the fa_params.
template <class Params>
void expect_forged_arguments_refused(const ChallengeUnderTest& subject) {
  const Filled filled(subject, "causal_64", 1);
  const auto refused = [&](auto change) {
    RecordedCase recorded(filled);
    cases::GivenInputs given(*subject.challenge);
    EXPECT_TRUE(given.take(recorded.call));
    recorded.with<Params>([&](Params& params) { change(params.p); });
    return !given.take(recorded.call);
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_TRUE(refused([](fa_params& p) { p.B = -1; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.Nq = kHuge; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.Nk = 1 << 20; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.Hkv = 0; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.D = kHuge; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.dtype = 77; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.scale = NAN; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.so.n = 1; })) << "rows overlap";
  EXPECT_TRUE(refused([](fa_params& p) { p.so.n = -p.so.n; }));
  EXPECT_TRUE(refused([](fa_params& p) { p.sq.n = kHuge; }));
  EXPECT_TRUE(refused([](fa_params& p) { --p.Nk; })) << "the array is longer than that";
}

// `cu_k` is the handle of the buffer with the ends of the key sequences.
inline void expect_only_ascending_lengths(const ChallengeUnderTest& subject, int cu_k) {
  CaseSpec spec = subject.case_named("causal_64");
  spec.params = {{"q_len", {3, 4}}, {"k_len", {5, 6}}, {"D", 32}};
  const Filled filled(subject, spec, 1);
  for (const std::vector<std::int64_t>& ends : std::vector<std::vector<std::int64_t>>{
           {0, 5, 11}, {0, 12, 11}, {0, -1, 11}, {1, 5, 11}, {0, 5, 10}, {0, 0, 11}}) {
    RecordedCase recorded(filled);
    recorded.array(cu_k).bytes = std::as_bytes(std::span(ends));
    const bool taken = cases::GivenInputs(*subject.challenge).take(recorded.call).has_value();
    EXPECT_EQ(taken, ends[1] == 5 && ends[0] == 0 && ends[2] == 11) << ends[1];
  }
}

}  // namespace assay::testing
