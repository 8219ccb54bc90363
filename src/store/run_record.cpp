#include "store/run_record.h"

#include <fmt/format.h>

#include <array>

#include "grade/documents.h"
#include "grade/results_json.h"
#include "grade/strict_json.h"
#include "spec/json_schema.h"
#include "store/folder_lock.h"
#include "store/line_file.h"

namespace assay::store {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<Arrival, const char*>, 5> kArrivals{{{Arrival::added, "added"},
                                                                    {Arrival::replaced, "replaced"},
                                                                    {Arrival::same, "same"},
                                                                    {Arrival::lesser, "lesser"},
                                                                    {Arrival::older, "older"}}};

std::string line(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string start_line(const RunStart& run) {
  return line(Json{{"schema", Scoreboard::kSchema},
                   {"kind", "run"},
                   {"run_id", run.run_id},
                   {"started_at", run.started_at},
                   {"options", Json::parse(run.options.dump())},
                   {"seed", std::to_string(run.seed)},
                   {"machine", to_json(run.machine)},
                   {"assay", {{"version", run.assay_version}, {"commit", run.assay_commit}}}});
}

std::string arrival_name(Arrival arrival) {
  for (const auto& [value, name] : kArrivals) {
    if (value == arrival) return name;
  }
  throw Error("an arrival without a name");
}

std::string cell_line(const RunCell& c) {
  return line(Json{{"model", c.key.model},
                   {"challenge", c.key.challenge},
                   {"attempt", c.key.attempt},
                   {"device", to_string(c.key.device)},
                   {"spec_hash", c.spec_hash},
                   {"source_hash", c.source_hash},
                   {"revision", c.revision},
                   {"verdict", code(c.verdict)},
                   {"total", c.total ? Json(*c.total) : Json(nullptr)},
                   {"evidence", {{"path", c.evidence.path}, {"sha256", c.evidence.sha256}}},
                   {"arrival", arrival_name(c.arrival)}});
}

RunStart start_from(const json& j) {
  require_schema(j, Scoreboard::kSchema);
  const StrictObject o(
      j, "", {"schema", "kind", "run_id", "started_at", "options", "seed", "machine", "assay"});
  RunStart run;
  run.run_id = o.name("run_id");
  run.started_at = o.text("started_at");
  run.options = o.value("options");
  run.seed = o.seed("seed");
  run.machine = machine_from_json(o.value("machine"));
  const StrictObject assay = o.object("assay", {"version", "commit"});
  run.assay_version = assay.text("version");
  run.assay_commit = assay.text("commit");
  return run;
}

RunCell cell_from(const json& j) {
  const StrictObject o(j, "",
                       {"model", "challenge", "attempt", "device", "spec_hash", "source_hash",
                        "verdict", "total", "evidence", "arrival"},
                       {"revision"});
  RunCell c;
  c.key = {.model = o.name("model"),
           .challenge = o.name("challenge"),
           .attempt = o.text("attempt"),
           .device = o.device("device")};
  c.spec_hash = o.text("spec_hash");
  c.source_hash = o.text("source_hash");
  c.revision = o.revision("revision");
  c.verdict = o.verdict("verdict");
  c.total = o.number_or_null("total");
  const StrictObject evidence = o.object("evidence", {"path", "sha256"});
  c.evidence = {.path = evidence.text("path"), .sha256 = evidence.text("sha256")};
  for (const auto& [arrival, name] : kArrivals) {
    if (o.text("arrival") != name) continue;
    c.arrival = arrival;
    return c;
  }
  o.fail("arrival", fmt::format("unknown \"{}\"", o.text("arrival")));
}

}  // namespace

RunCell run_cell(const BoardRow& row, Arrival arrival) {
  return {.key = row.key,
          .spec_hash = row.spec_hash,
          .source_hash = row.source_hash,
          .verdict = row.score.verdict,
          .total = row.score.total,
          .evidence = row.evidence,
          .arrival = arrival,
          .revision = row.revision};
}

RunRecord read_run(const fs::path& path) { return run_from(read_lines(path).lines, path.string()); }

RunRecord run_from(const std::vector<std::string>& lines, const std::string& file) {
  RunRecord run;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    reading(fmt::format("{}:{}", file, i + 1), [&] {
      const json j = parse_json(lines[i], file);
      if (i == 0) {
        run.start = start_from(j);
      } else if (j.is_object() && j.contains("finished")) {
        run.finished = StrictObject(j, "", {"finished"}).flag("finished");
      } else {
        RunCell cell = cell_from(j);
        run.cells.insert_or_assign(cell.key, cell);
      }
    });
  }
  return run;
}

RunLog RunLog::begin(const fs::path& runs, RunStart start, Writers writers) {
  const std::string id = start.run_id;
  fs::path path = runs / (id + ".jsonl");
  Fd fd;
  for (int n = 2; !fd; ++n) {
    fd = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd) break;
    if (errno != EEXIST) fail_with_errno("create", path);
    start.run_id = fmt::format("{}-{}", id, n);
    path = runs / (start.run_id + ".jsonl");
  }
  if (writers == Writers::many && !try_lock(fd.get(), path, kRunPatience))
    throw Error(fmt::format("{} is in use", path.string()));
  RunLog log(path, std::move(fd));
  append_line(path, start_line(start));
  log.record_.start = std::move(start);
  return log;
}

std::optional<RunLog> RunLog::resume(const fs::path& path, std::chrono::milliseconds patience,
                                     Writers writers) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) fail_with_errno("open", path);
  if (writers == Writers::many && !try_lock(fd.get(), path, patience)) return std::nullopt;
  RunLog log(path, std::move(fd));
  log.record_ = read_run(path);
  if (log.record_.start.run_id.empty()) return std::nullopt;
  return log;
}

void RunLog::add(const RunCell& cell) {
  append_line(path_, cell_line(cell));
  record_.cells.insert_or_assign(cell.key, cell);
}

void RunLog::finish() {
  append_line(path_, line(Json{{"finished", true}}));
  record_.finished = true;
}

}  // namespace assay::store
