// The fields of a run's lines; see records/record_json.h.
#pragma once

#include <string>

#include "records/record_fields.h"
#include "store/run_record.h"

namespace assay {

nlohmann::ordered_json value_json(Arrival);
void read_value(const StrictObject&, const char* key, Arrival& to);

}  // namespace assay

namespace assay::store {

void fields(auto& f, Is<RunStart> auto& run) {
  int schema = Scoreboard::kSchema;
  std::string kind = "run";
  f.required("schema", schema);
  f.required("kind", kind);
  f.required("run_id", run.run_id, not_empty);
  f.required("started_at", run.started_at);
  f.required("options", run.options);
  f.required("seed", run.seed);
  f.required("machine", run.machine);
  assay_field(f, run);
}

void fields(auto& f, Is<RunCell> auto& cell) {
  key_fields(f, cell.key);
  f.required("spec_hash", cell.spec_hash);
  f.required("source_hash", cell.source_hash);
  f.added("revision", cell.revision, 0);
  f.required("verdict", cell.verdict);
  f.required("total", cell.total);
  f.required("evidence", cell.evidence);
  f.required("arrival", cell.arrival);
}

}  // namespace assay::store
