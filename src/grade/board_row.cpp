#include "grade/board_row.h"

#include <cmath>
#include <utility>

#include "grade/reason.h"
#include "records/lookup.h"

namespace assay {

BoardRow board_row(const BoardEntry& e, EvidenceRef evidence) {
  BoardRow row;
  row.key = e.cell.key;
  row.score = e.score;
  row.reason = main_reason(e.cell, e.score);
  row.failed = failed_cases(e.cell);
  row.spec_hash = e.cell.spec_hash;
  row.revision = e.cell.revision;
  row.source_hash = e.cell.build.source_hash;
  row.isolation = e.cell.isolation;
  row.target = e.cell.target;
  row.seed = e.cell.seed;
  row.finished_at = e.cell.finished_at;
  for (const CaseResult& c : e.cell.cases) {
    if (std::isfinite(c.seconds)) row.seconds += c.seconds;
  }
  row.assay_version = e.assay_version;
  row.assay_commit = e.assay_commit;
  row.machine = e.machine;
  row.evidence = std::move(evidence);
  row.attempt = e.attempt;
  row.about = e.about;
  return row;
}

}  // namespace assay
