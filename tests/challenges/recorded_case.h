// How challenges turn recorded calls into cases: the cases of a spec, recorded as a witness does,
// come back as cases with the same inputs.
#pragma once

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cases/given_inputs.h"
#include "challenges/challenge_fixture.h"

namespace assay::testing {

// The call that a case makes, in separate memory.
class RecordedCase {
 public:
  explicit RecordedCase(const Filled& filled) : params_(filled.plan().params) {
    const CasePlan& plan = filled.plan();
    arrays_.reserve(plan.buffers.size());
    call.entry = plan.entry;
    call.params = params_;
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const auto handle = static_cast<std::int32_t>(i);
      const bool output = plan.buffers[i].role == Role::output;
      arrays_.push_back(output || plan.buffers[i].null ? "" : filled.bytes(handle));
      call.arrays.push_back(
          {handle, plan.buffers[i].null, std::as_bytes(std::span(arrays_.back()))});
    }
  }
  RecordedCase(const RecordedCase&) = delete;

  // Changes the adapter's parameters.
  template <class Params, class Change>
  void with(Change change) {
    Params params;
    std::memcpy(&params, params_.data(), sizeof params);
    change(params);
    std::memcpy(params_.data(), &params, sizeof params);
  }
  RecordedCall::Array& array(int handle) {
    return call.arrays.at(static_cast<std::size_t>(handle));
  }

  RecordedCall call;

 private:
  std::vector<std::byte> params_;
  std::vector<std::string> arrays_;
};

// Whether the case comes back. If so, its inputs must be those of the call, except for the handles
// that only the adapter knows.
inline bool comes_back(const ChallengeUnderTest& subject, const CaseSpec& c,
                       const std::set<int>& of_the_adapter) {
  const Filled filled(subject, c, 3);
  const RecordedCase recorded(filled);
  cases::GivenInputs given(*subject.challenge);
  const auto spec = given.take(recorded.call);
  if (!spec) return false;
  EXPECT_EQ(given.shape(*spec), subject.challenge->shape(c)) << c.name;
  const CasePlan plan = given.plan(*spec);
  std::vector<std::vector<std::byte>> memory;
  std::vector<BufferView> views;
  for (const BufferPlan& buffer : plan.buffers) {
    memory.emplace_back(buffer.null ? 0 : buffer.bytes());
    views.push_back({memory.back().data(), memory.back().size()});
  }
  given.fill(*spec, plan, Seeds(1), views);
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const auto handle = static_cast<int>(i);
    if (plan.buffers[i].role != Role::input || of_the_adapter.contains(handle)) continue;
    const std::string expected = filled.bytes(handle);
    EXPECT_EQ(views[i].bytes, expected.size()) << c.name << " " << plan.buffers[i].name;
    if (views[i].bytes != expected.size() || expected.empty()) continue;
    EXPECT_EQ(std::memcmp(views[i].data, expected.data(), expected.size()), 0)
        << c.name << " " << plan.buffers[i].name;
  }
  return true;
}

// The names of the cases with a right answer that do not come back; a case without one must never
// come back. Drawn, timed, sparse and resource cases are not tried.
inline std::set<std::string> not_recorded(const ChallengeUnderTest& subject,
                                          const std::set<int>& of_the_adapter = {}) {
  std::set<std::string> names;
  for (const CaseSpec& c : subject.spec.cases) {
    if (c.drawn || c.name.starts_with("random_") || c.group == CaseGroup::timed ||
        c.group == CaseGroup::resource)
      continue;
    const CasePlan plan = subject.challenge->plan(c);
    if (std::ranges::any_of(plan.buffers, [](const auto& b) { return !b.pieces.empty(); }))
      continue;
    const bool back = comes_back(subject, c, of_the_adapter);
    if (c.expect_status != 0) {
      EXPECT_FALSE(back) << c.name << " must fail";
    } else if (!back) {
      names.insert(c.name);
    }
  }
  return names;
}

}  // namespace assay::testing
