// The table of every violation of the protocol between the harness and a worker: verdict PV.
//
// Verdict PV always comes from a row of this table, in the row's words: a ProtocolViolation is made
// only by violation(), which does not compile for a kind without a row. docs/verdicts.md explains
// each row to the authors of answers.
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
  std::string_view words;  // what the worker did, as an fmt format
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

// Throws if there is no row, which is a compile error in a constant expression.
constexpr std::string_view words_of(Violation violation) {
  for (const ViolationRow& row : kViolations) {
    if (row.violation == violation) return row.words;
  }
  throw "a violation that is not in the table";
}

// A violation that happened. Only Diagnosis (worker_diagnosis.h) may use its verdict.
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

// `args` fill in the row's format; they are checked against it at compile time.
template <Violation kind, class... Args>
ProtocolViolation violation(const Args&... args) {
  static constexpr std::string_view kWords = words_of(kind);
  return ProtocolViolation(fmt::format(kWords, args...));
}

}  // namespace assay::processes
