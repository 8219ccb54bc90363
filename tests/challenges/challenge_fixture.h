// Shared by the tests of challenges: a challenge with its spec, its cases filled, and expectations
// that hold for every challenge.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "assay/error.h"
#include "cases/challenge_registry.h"
#include "cases/fill_inputs.h"
#include "processes/layout.h"
#include "support/direct_call.h"
#include "support/direct_runner.h"
#include "support/paths.h"
#include "util/files.h"

namespace assay::testing {

struct ChallengeUnderTest {
  explicit ChallengeUnderTest(const std::string& challenge_name)
      : name(challenge_name), spec(spec_of(challenge_name)) {
    for (const auto& row : challenge_rows()) {
      if (row.name == name) challenge = &row.get();
    }
    if (challenge == nullptr) throw Error(name + " is not registered");
    draw_cases(spec, 1);
  }

  const CaseSpec& case_named(const std::string& case_name) const {
    for (const CaseSpec& c : spec.cases) {
      if (c.name == case_name) return c;
    }
    throw Error("no case " + case_name);
  }
  std::string file(const std::string& path) const {
    return source_dir() + "/challenges/" + name + "/" + path;
  }

  std::string name;
  ChallengeSpec spec;
  const Challenge* challenge = nullptr;
};

// A case's buffers, filled, with poisoned outputs; with its own server if the case calls back.
class Filled {
 public:
  Filled(const ChallengeUnderTest& subject, const std::string& name, std::uint64_t seed)
      : Filled(subject, subject.case_named(name), seed) {}
  // The case need not be one of spec.json's.
  Filled(const ChallengeUnderTest& subject, const CaseSpec& spec, std::uint64_t seed)
      : challenge_(*subject.challenge),
        case_(spec),
        plan_(challenge_.plan(case_)),
        layout_(processes::make_layout(plan_, challenge_.has_callbacks(case_))),
        input_(layout_.input_bytes),
        output_(layout_.output_bytes),
        windows_(layout_, input_.data(), output_.data()),
        buffers_(processes::views(layout_, input_.data(), output_.data(), nullptr, &windows_)) {
    processes::poison_gaps(plan_, layout_, input_.data(), seed);
    cases::fill_inputs(challenge_, case_, plan_, Seeds(seed), buffers_);
    processes::poison(plan_, layout_, output_.data(), seed);
    reference_ = challenge_.reference(case_, plan_, buffers_);
    server_ = challenge_.callbacks(case_, plan_, buffers_);
  }

  const CaseSpec& spec() const { return case_; }
  const CasePlan& plan() const { return plan_; }
  const Reference& reference() const { return *reference_; }
  template <class T>
  const T& reference_as() const {
    return static_cast<const T&>(*reference_);
  }
  CallbackServer* server() const { return server_.get(); }
  BufferViews buffers() const { return buffers_; }
  const BufferView& buffer(int handle) const { return buffers_[static_cast<std::size_t>(handle)]; }
  std::string bytes(int handle) const {
    std::string all;
    each_piece(handle, [&](unsigned char* data, std::size_t n) { all.append(data, data + n); });
    return all;
  }
  CheckResult check() const {
    return challenge_.check(case_, plan_, *reference_, buffers_, server_.get());
  }

  void overwrite(int handle, int byte) {
    each_piece(handle, [&](unsigned char* data, std::size_t n) {
      std::fill_n(data, n, static_cast<unsigned char>(byte));
    });
  }
  void overwrite_outputs(int byte) {
    for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].role == Role::output) overwrite(static_cast<int>(i), byte);
    }
  }

 private:
  // The existing parts of a buffer: all of it, or the pieces of a sparse one.
  template <class Body>
  void each_piece(int handle, Body body) const {
    const BufferPlan& planned = plan_.buffers[static_cast<std::size_t>(handle)];
    const BufferView& view = buffer(handle);
    if (planned.pieces.empty()) return body(view.as<unsigned char>(), view.bytes);
    const std::size_t size = size_of(planned.dtype);
    for (const Piece& piece : planned.pieces) {
      body(view.as<unsigned char>() + static_cast<std::size_t>(piece.first) * size,
           static_cast<std::size_t>(piece.count) * size);
    }
  }

  const Challenge& challenge_;
  CaseSpec case_;
  CasePlan plan_;
  processes::Layout layout_;
  Arena input_, output_;
  processes::Windows windows_;
  std::vector<BufferView> buffers_;
  std::unique_ptr<Reference> reference_;
  std::unique_ptr<CallbackServer> server_;
};

// A source of the challenge passes every untimed case for the seeds 1 .. seeds, and reports the
// capabilities in left_out as not supported.
inline void expect_passes(const ChallengeUnderTest& subject, const std::string& source,
                          std::uint64_t seeds, const std::set<std::string>& left_out = {}) {
  DirectRunner runner(subject.name, compile(subject.file(source), subject.name));
  for (const CaseSpec& c : subject.spec.cases) {
    if (c.group == CaseGroup::timed) continue;
    const Verdict expected = left_out.contains(c.capability) ? Verdict::unsupported : Verdict::ok;
    for (std::uint64_t seed = 1; seed <= (c.group == CaseGroup::resource ? 1 : seeds); ++seed) {
      const CaseResult result = runner.run(c, seed);
      EXPECT_EQ(result.verdict, expected)
          << source << ", " << c.name << " seed " << seed << ": " << result.detail;
    }
  }
}

// The cases named on the first lines of the examples.
inline std::vector<std::string> cases_of_examples(const ChallengeUnderTest& subject) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(subject.file("examples"))) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read_file(entry.path());
    std::istringstream words(text.substr(0, text.find('\n')));
    std::string slashes, verb;
    words >> slashes >> verb;
    for (std::string word; words >> word;) found.push_back(word);
  }
  return found;
}

// `assay selftest` checks what the examples do; this checks only that none is missing.
inline void expect_traps_covered(const ChallengeUnderTest& subject) {
  const std::vector<std::string> listed = cases_of_examples(subject);
  for (const CaseSpec& c : subject.spec.cases) {
    if (c.group != CaseGroup::trap || !c.uncaught_reason.empty()) continue;
    EXPECT_THAT(listed, ::testing::Contains(c.name));
  }
}

// A case whose `outputs` are not empty rejects the poison that they start with. Some drawn cases
// may accept it: poison is a NaN, and where only NaN is due it is right.
inline void expect_untouched_outputs_fail(const ChallengeUnderTest& subject,
                                          const std::vector<int>& outputs) {
  int accepted = 0, drawn = 0;
  for (const CaseSpec& c : subject.spec.cases) {
    if (c.group == CaseGroup::timed || c.group == CaseGroup::resource || c.expect_status != 0)
      continue;
    const Filled f(subject, c.name, 4);
    std::size_t bytes = 0;
    for (const int handle : outputs) bytes += f.buffer(handle).bytes;
    if (bytes == 0) continue;
    const bool accepts = f.check().pass;
    drawn += c.drawn ? 1 : 0;
    accepted += c.drawn && accepts ? 1 : 0;
    EXPECT_FALSE(accepts && !c.drawn) << c.name;
  }
  EXPECT_LE(accepted, drawn / 3);
}

// Outputs full of poison, zeros, NaN or large numbers are rejected, with a reason.
inline void expect_blank_outputs_fail(const ChallengeUnderTest& subject, const std::string& name) {
  Filled f(subject, name, 3);
  EXPECT_FALSE(f.check().pass) << name << ": poison";
  for (const int byte : {0x00, 0xff, 0x7f}) {
    f.overwrite_outputs(byte);
    const CheckResult result = f.check();
    EXPECT_FALSE(result.pass) << name << ": bytes " << byte;
    EXPECT_NE(result.detail, "") << name << ": bytes " << byte;
  }
}

// The same seed gives the same bytes; another seed gives others.
inline void expect_inputs_follow_from_seed(const ChallengeUnderTest& subject,
                                           const std::string& name,
                                           const std::vector<int>& inputs) {
  const Filled once(subject, name, 5), again(subject, name, 5), other(subject, name, 6);
  for (const int handle : inputs) {
    EXPECT_EQ(once.bytes(handle), again.bytes(handle)) << name << ", buffer " << handle;
    EXPECT_NE(once.bytes(handle), other.bytes(handle)) << name << ", buffer " << handle;
  }
}

// Every case has all the buffers that the adapter may ask for, absent ones as null.
inline void expect_every_handle_planned(const ChallengeUnderTest& subject, int handles) {
  for (const CaseSpec& c : subject.spec.cases) {
    EXPECT_EQ(subject.challenge->plan(c).buffers.size(), static_cast<std::size_t>(handles))
        << c.name;
  }
}

}  // namespace assay::testing
