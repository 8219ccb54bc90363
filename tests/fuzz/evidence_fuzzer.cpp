// libFuzzer target of evidence files: any text is refused, or is a cell that survives being
// written, can be graded again, and is shown as text.
#include "fuzz/promises.h"
#include "grade/grade.h"
#include "records/evidence.h"
#include "report/terminal.h"
#include "spec/spec.h"

namespace {

using namespace assay;

ChallengeSpec spec_of(const CellResult& cell) {
  ChallengeSpec spec;
  spec.name = cell.key.challenge;
  spec.title = "A challenge";
  spec.correctness_shares = {
      {CaseGroup::core, 0.4}, {CaseGroup::edge, 0.2}, {CaseGroup::trap, 0.4}};
  for (const CaseResult& result : cell.cases) {
    CaseSpec c;
    c.name = result.name;
    c.group = result.group;
    spec.cases.push_back(c);
  }
  return spec;
}

void check(const Evidence& evidence) {
  const std::string text = evidence_text(evidence);
  fuzz::require(text.starts_with(evidence_start(evidence.run_id)), "evidence names its run first");
  fuzz::require(evidence_text(parse_evidence(text, "again")) == text,
                "evidence survives being written", text);
  const CellResult& cell = evidence.entry.cell;
  const ChallengeSpec spec = spec_of(cell);
  grade(spec_for(cell.key.device, spec), cell);
  fuzz::require_safe(explain(evidence.entry, spec), "cells are shown as text");
  fuzz::require_safe(summary({evidence.entry}, {spec}), "cells are summed up as text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepts([&] { check(parse_evidence(fuzz::text_of(data, size), "cell.json")); });
  return 0;
}
