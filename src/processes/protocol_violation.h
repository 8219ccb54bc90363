// The table of all that violates the protocol between the harness and a worker: the verdict PV.
//
// Only a row of the table makes that verdict, in the words of the row: a ProtocolViolation is made
// by violation() alone, and that does not compile without a row. docs/verdicts.md tells the authors
// of answers what each row means.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "assay/results.h"

namespace assay::processes {

enum class Violation : std::uint8_t {
  unasked_reply,
  unread_requests,
  several_replies,
  early_reply,
  unexpected_callback,
  many_callbacks,
  slow_callbacks,
  many_cores,
  no_stop,
  case_not_readied,
  busy_while_readied,
};

struct ViolationRow {
  Violation violation;
  std::string_view words;  // what the worker did, as a format of fmt
};

inline constexpr ViolationRow kViolations[] = {
    {Violation::unasked_reply, "answered before it was asked"},
    {Violation::unread_requests, "forged replies: it has not read its requests"},
    {Violation::several_replies, "forged a reply: answered more than once"},
    {Violation::early_reply, "forged a reply: the call had not ended"},
    {Violation::unexpected_callback, "called back although the case has no callbacks"},
    {Violation::many_callbacks, "called back more than {} times"},
    {Violation::slow_callbacks, "its callbacks took more than {:.0f} s to answer"},
    {Violation::many_cores, "kept {:.1f} cores busy where {} are allowed"},
    {Violation::no_stop, "it did not stop when it was told to"},
    {Violation::case_not_readied, "kept the worker from readying a case: {}"},
    {Violation::busy_while_readied, "used {:.2f} s of processor time while a case was readied"},
};

// Throws, and so does not compile where it is to be a constant, without a row.
constexpr std::string_view words_of(Violation violation) {
  for (const ViolationRow& row : kViolations) {
    if (row.violation == violation) return row.words;
  }
  throw "a violation that is not in the table";
}

// A violation that happened. Its verdict is for Diagnosis (worker_diagnosis.h) only.
class ProtocolViolation {
 public:
  const std::string& detail() const { return detail_; }

 private:
  friend struct Diagnosis;
  static constexpr Verdict kVerdict = Verdict::protocol_violation;

  explicit ProtocolViolation(std::string detail) : detail_(std::move(detail)) {}
  template <Violation kind, class... Args>
  friend ProtocolViolation violation(const Args&... args);

  std::string detail_;
};

// `args` fill in the words of the row; both are compared when this is compiled.
template <Violation kind, class... Args>
ProtocolViolation violation(const Args&... args) {
  static constexpr std::string_view kWords = words_of(kind);
  return ProtocolViolation(fmt::format(kWords, args...));
}

}  // namespace assay::processes
