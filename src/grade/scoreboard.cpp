#include "grade/scoreboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "grade/documents.h"
#include "grade/grade.h"
#include "grade/reason.h"
#include "grade/results_json.h"
#include "grade/strict_json.h"
#include "results/entrant_json.h"
#include "results/lookup.h"
#include "spec/json_schema.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

std::string line(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// --- writing -----------------------------------------------------------------

Json cell_json(const BoardRow& row) {
  Json j{{"model", row.key.model},
         {"challenge", row.key.challenge},
         {"attempt", row.key.attempt},
         {"device", to_string(row.key.device)},
         {"spec_hash", row.spec_hash},
         {"source_hash", row.source_hash},
         {"revision", row.revision},
         {"isolation", row.isolation},
         {"seed", std::to_string(row.seed)},
         {"finished_at", row.finished_at},
         {"seconds", row.seconds}};
  if (row.target != kNativeTarget) j["target"] = row.target;
  return j;
}

Json assay_json(const BoardRow& row) {
  return {{"version", row.assay_version}, {"commit", row.assay_commit}};
}

// By verdict, for names are many and verdicts few.
Json failed_json(const std::vector<FailedCase>& failed) {
  Json j = Json::object();
  for (const FailedCase& f : failed) j[code(f.verdict)].push_back(f.name);
  return j;
}

Json evidence_json(const EvidenceRef& e) { return {{"path", e.path}, {"sha256", e.sha256}}; }

// Many cells were measured on the same machine: they name it, and it stands in the file once.
std::string machine_id(const Machine& m) {
  constexpr std::size_t kDigits = 12;
  return sha256_hex(line(to_json(m))).substr(0, kDigits);
}

// On a few lines, so that a diff shows which part changed.
std::string score_text(const Score& s) {
  const Json score = to_json(s);
  std::string text;
  for (const auto& [key, value] : score.items()) {
    const bool long_one = key == "dimensions" || key == "speeds";
    text += (text.empty() ? "{" : long_one ? ",\n    " : ", ") + line(key) + ": " + line(value);
  }
  return text + "}";
}

std::string entry_text(const BoardRow& row) {
  const std::string failed =
      row.failed ? fmt::format("   \"failed\": {},\n", line(failed_json(*row.failed))) : "";
  const Json attempt = board_json(row.attempt);
  return fmt::format(
      "  {{\"cell\": {},\n   \"score\": {},\n   \"reason\": {},\n{}   \"assay\": {}, "
      "\"machine\": {}, \"evidence\": {}{}}}",
      line(cell_json(row)), score_text(row.score), line(row.reason), failed, line(assay_json(row)),
      line(machine_id(row.machine)), line(evidence_json(row.evidence)),
      attempt.empty() ? "" : ",\n   \"attempt\": " + line(attempt));
}

// Those that have results, a line each; nothing where nothing is said of any.
std::string models_text(const Scoreboard& board) {
  std::set<std::string_view> measured;
  for (const auto& [key, row] : board.entries) measured.insert(key.model);
  std::string text;
  for (const auto& [model, about] : board.models) {
    if (about.empty() || !measured.contains(model)) continue;
    text +=
        fmt::format("{}  {}: {}", text.empty() ? "\n" : ",\n", line(model), line(to_json(about)));
  }
  return text.empty() ? "" : " \"models\": {" + text + "},\n";
}

// --- reading -----------------------------------------------------------------

// What entrant_json.h reads, at that place of the document.
template <class Facts>
Facts facts_from(const json& j, const std::string& place, Facts (*from_json)(const json&)) {
  try {
    return from_json(j);
  } catch (const FactError& e) {
    throw Error(fmt::format("at {}: {}", place, e.what()));
  }
}

GpuMachine gpu_from(const StrictObject& machine) {
  const StrictObject o =
      machine.object("gpu",
                     {"name", "driver", "compute_capability", "multiprocessors", "memory_bytes",
                      "ecc", "copy_bytes_per_s", "bf16_flops_per_s", "isolation"},
                     {"driver_release", "max_sm_mhz", "mig"});
  GpuMachine g;
  g.name = o.name("name");
  g.driver = o.text("driver");
  g.compute_capability = o.text("compute_capability");
  g.multiprocessors = static_cast<int>(o.count("multiprocessors"));
  g.memory_bytes = o.number("memory_bytes");
  g.ecc = o.flag("ecc");
  g.copy_bytes_per_s = o.number("copy_bytes_per_s");
  g.bf16_flops_per_s = o.number("bf16_flops_per_s");
  g.isolation = o.text("isolation");
  if (o.has("driver_release")) g.driver_release = o.text("driver_release");
  if (o.has("max_sm_mhz")) g.max_sm_mhz = o.number("max_sm_mhz");
  if (o.has("mig")) g.mig = o.flag("mig");
  return g;
}

Machine machine_from(const json& j, const std::string& place) {
  const StrictObject o(j, place,
                       {"cpu", "kernel", "os", "compiler", "cores", "memory_bytes", "l3_bytes",
                        "copy_bytes_per_s", "fma_flops_per_s"},
                       {"gpu"});
  Machine m;
  m.cpu = o.text("cpu");
  m.kernel = o.text("kernel");
  m.os = o.text("os");
  m.compiler = o.text("compiler");
  m.cores = static_cast<int>(o.count("cores"));
  m.memory_bytes = o.count("memory_bytes");
  m.l3_bytes = o.count("l3_bytes");
  m.copy_bytes_per_s = o.number("copy_bytes_per_s");
  m.fma_flops_per_s = o.number("fma_flops_per_s");
  if (o.has("gpu")) m.gpu = gpu_from(o);
  return m;
}

Dimension dimension_from(const json& j, const std::string& place) {
  const StrictObject o(j, place, {"name", "points", "max", "interval", "why"});
  return {.name = o.text("name"),
          .points = o.number_or_null("points"),
          .max = o.number("max"),
          .interval = o.interval("interval"),
          .why = o.text("why")};
}

ShapeSpeed speed_from(const json& j, const std::string& place) {
  const StrictObject o(j, place,
                       {"case", "ratio_to_par", "ratio_interval", "ratio_to_naive", "points"},
                       {"ratio_to_floor"});
  return {.case_name = o.text("case"),
          .ratio_to_par = o.number("ratio_to_par"),
          .ratio_interval = o.interval("ratio_interval"),
          .ratio_to_naive = o.number("ratio_to_naive"),
          .points = o.number("points"),
          .ratio_to_floor = o.has("ratio_to_floor") ? o.number("ratio_to_floor") : 0};
}

Note note_from(const json& j, const std::string& place) {
  const StrictObject o(j, place, {"kind", "text"});
  const auto kind = note_kind_from_code(o.text("kind"));
  if (!kind) o.fail("kind", fmt::format("unknown \"{}\"", o.text("kind")));
  return {*kind, o.text("text")};
}

constexpr std::array<std::string_view, 10> kLetters{"A",  "A-", "B+", "B", "B-",
                                                    "C+", "C",  "D",  "F", ""};

Score score_from(const StrictObject& entry) {
  const StrictObject o = entry.object(
      "score",
      {"verdict", "total", "interval", "letter", "capped", "dimensions", "speeds", "flags"},
      {"modelled_on", "gpu_sheet"});
  Score s;
  s.verdict = o.verdict("verdict");
  s.total = o.number_or_null("total");
  s.interval = o.interval("interval");
  s.letter = o.text("letter");
  if (std::ranges::find(kLetters, s.letter) == kLetters.end())
    o.fail("letter", fmt::format("unknown \"{}\"", s.letter));
  s.capped = o.flag("capped");
  o.each("dimensions", [&](const json& d, const std::string& place) {
    s.dimensions.push_back(dimension_from(d, place));
  });
  o.each("speeds", [&](const json& p, const std::string& place) {
    s.speeds.push_back(speed_from(p, place));
  });
  o.each("flags",
         [&](const json& n, const std::string& place) { s.flags.push_back(note_from(n, place)); });
  s.modelled_on = o.optional_text("modelled_on");
  s.gpu_sheet = o.optional_text("gpu_sheet");
  return s;
}

void read_cell(const StrictObject& entry, BoardRow& row) {
  const StrictObject o =
      entry.object("cell",
                   {"model", "challenge", "attempt", "device", "spec_hash", "source_hash",
                    "isolation", "seed", "finished_at", "seconds"},
                   {"revision", "target"});
  row.key = {.model = o.name("model"),
             .challenge = o.name("challenge"),
             .attempt = o.text("attempt"),
             .device = o.device("device")};
  row.spec_hash = o.text("spec_hash");
  row.source_hash = o.text("source_hash");
  row.revision = o.revision("revision");
  row.isolation = o.text("isolation");
  if (const std::string target = o.optional_text("target"); !target.empty()) row.target = target;
  row.seed = o.seed("seed");
  row.finished_at = o.text("finished_at");
  row.seconds = o.number("seconds");
  if (!std::isfinite(row.seconds)) o.fail("seconds", "expected a finite number");
}

std::vector<FailedCase> failed_from(const StrictObject& entry) {
  std::vector<FailedCase> failed;
  const json& by_verdict = entry.value("failed");
  if (!by_verdict.is_object()) entry.fail("failed", "expected an object");
  for (const auto& [verdict, names] : by_verdict.items()) {
    const auto known = verdict_from_code(verdict);
    const std::string place = fmt::format("at {}/{}", entry.place("failed"), verdict);
    if (!known) throw Error(place + ": unknown");
    if (!names.is_array()) throw Error(place + ": expected a list of names");
    for (const json& name : names) {
      if (!name.is_string()) throw Error(place + ": expected a list of names");
      failed.push_back({name, *known});
    }
  }
  return failed;
}

// All but the machine, which the two kinds of document keep differently.
BoardRow row_from(const StrictObject& entry) {
  BoardRow row;
  read_cell(entry, row);
  row.score = score_from(entry);
  row.reason = entry.text("reason");
  if (entry.has("failed")) row.failed = failed_from(entry);
  const StrictObject assay = entry.object("assay", {"version", "commit"});
  row.assay_version = assay.text("version");
  row.assay_commit = assay.text("commit");
  const StrictObject evidence = entry.object("evidence", {"path", "sha256"});
  row.evidence = {.path = evidence.text("path"), .sha256 = evidence.text("sha256")};
  if (entry.has("attempt")) {
    row.attempt = facts_from(entry.value("attempt"), entry.place("attempt"), &attempt_record_from);
  }
  return row;
}

constexpr StrictObject::Keys kEntryKeys{"cell", "score", "reason", "assay", "machine", "evidence"};
constexpr StrictObject::Keys kOptionalKeys{"failed", "attempt"},
    kOptionalLineKeys{"schema", "failed", "attempt", "model"};

std::map<std::string, Machine> machines_from(const StrictObject& board) {
  const json& all = board.value("machines");
  if (!all.is_object()) board.fail("machines", "expected an object");
  std::map<std::string, Machine> machines;
  for (const auto& [id, machine] : all.items())
    machines.emplace(id, machine_from(machine, board.place("machines") + '/' + id));
  return machines;
}

std::map<std::string, ModelInfo> models_from(const StrictObject& board) {
  const json& all = board.value("models");
  if (!all.is_object()) board.fail("models", "expected an object");
  std::map<std::string, ModelInfo> models;
  for (const auto& [model, about] : all.items())
    models.emplace(model, facts_from(about, board.place("models") + '/' + model, &model_info_from));
  return models;
}

Scoreboard board_from(const json& j) {
  const StrictObject o(j, "", {"schema", "kind", "machines", "entries"}, {"models"});
  if (o.text("kind") != "scoreboard") o.fail("kind", "expected \"scoreboard\"");
  const auto machines = machines_from(o);
  Scoreboard board;
  if (o.has("models")) board.models = models_from(o);
  o.each("entries", [&](const json& e, const std::string& place) {
    const StrictObject entry(e, place, kEntryKeys, kOptionalKeys);
    BoardRow row = row_from(entry);
    const auto machine = machines.find(entry.text("machine"));
    if (machine == machines.end()) entry.fail("machine", "is not among the machines");
    row.machine = machine->second;
    const CellKey key = row.key;
    if (!board.entries.emplace(key, std::move(row)).second) {
      throw Error(fmt::format("at {}: a second entry for {} {} {} on {}", place, key.model,
                              key.challenge, key.attempt, to_string(key.device)));
    }
  });
  return board;
}

// --- merging -----------------------------------------------------------------

bool is_full(const BoardRow& r) { return r.score.total && !is_quick(r.score); }

bool same_subject(const BoardRow& a, const BoardRow& b) {
  return a.source_hash == b.source_hash && a.spec_hash == b.spec_hash;
}

}  // namespace

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

std::string scoreboard_text(const Scoreboard& board) {
  std::map<std::string, std::string> machines;
  std::string entries;
  for (const auto& [key, row] : board.entries) {
    machines.try_emplace(machine_id(row.machine), line(to_json(row.machine)));
    entries += (entries.empty() ? "\n" : ",\n") + entry_text(row);
  }
  std::string table;
  for (const auto& [id, machine] : machines)
    table += fmt::format("{}  {}: {}", table.empty() ? "\n" : ",\n", line(id), machine);
  return fmt::format(
      "{{\n \"schema\": {},\n \"kind\": \"scoreboard\",\n \"machines\": {{{}}},\n{} \"entries\": "
      "[{}]\n}}\n",
      Scoreboard::kSchema, table, models_text(board), entries);
}

Scoreboard parse_scoreboard(const std::string& text, const std::string& file) {
  return board_from_json(parse_json(text, file), file);
}

Scoreboard board_from_json(const json& j, const std::string& file) {
  return reading(file, [&] {
    require_schema(j, Scoreboard::kSchema);
    return board_from(j);
  });
}

std::string row_text(const BoardRow& row) {
  Json j{{"schema", Scoreboard::kSchema},
         {"cell", cell_json(row)},
         {"score", to_json(row.score)},
         {"reason", row.reason}};
  if (row.failed) j["failed"] = failed_json(*row.failed);
  j["assay"] = assay_json(row);
  j["machine"] = to_json(row.machine);
  j["evidence"] = evidence_json(row.evidence);
  if (const Json attempt = board_json(row.attempt); !attempt.empty()) j["attempt"] = attempt;
  if (!row.about.empty()) j["model"] = to_json(row.about);
  return line(j);
}

BoardRow parse_row(const std::string& text, const std::string& place) {
  return reading(place, [&] {
    const json j = parse_json(text, place);
    require_schema(j, Scoreboard::kSchema);
    const StrictObject entry(j, "", kEntryKeys, kOptionalLineKeys);
    BoardRow row = row_from(entry);
    row.machine = machine_from(entry.value("machine"), entry.place("machine"));
    if (entry.has("model"))
      row.about = facts_from(entry.value("model"), entry.place("model"), &model_info_from);
    return row;
  });
}

bool describe(Scoreboard& board, const std::map<std::string, ModelInfo>& today) {
  std::set<std::string_view> measured;
  for (const auto& [key, row] : board.entries) measured.insert(key.model);
  bool changed = false;
  for (const auto& [model, about] : today) {
    if (!measured.contains(model)) continue;
    const auto known = board.models.find(model);
    if (known == board.models.end() ? about.empty() : known->second == about) continue;
    changed = true;
    if (about.empty()) {
      board.models.erase(known);
    } else {
      board.models.insert_or_assign(model, about);
    }
  }
  return changed;
}

Arrival arrival(const Scoreboard& board, const BoardRow& row) {
  const auto found = board.entries.find(row.key);
  if (found == board.entries.end()) return Arrival::added;
  const BoardRow& there = found->second;
  if (there.evidence.sha256 == row.evidence.sha256) return Arrival::same;
  if (there.revision != row.revision)
    return there.revision > row.revision ? Arrival::older : Arrival::replaced;
  if (same_subject(there, row) && is_full(there) != is_full(row))
    return is_full(row) ? Arrival::replaced : Arrival::lesser;
  return there.finished_at > row.finished_at ? Arrival::older : Arrival::replaced;
}

void put(Scoreboard& board, BoardRow row) {
  if (!row.about.empty()) board.models.insert_or_assign(row.key.model, std::move(row.about));
  row.about = {};
  const CellKey key = row.key;
  board.entries.insert_or_assign(key, std::move(row));
}

Arrival merge(Scoreboard& board, BoardRow row) {
  const Arrival what = arrival(board, row);
  if (!is_placed(what)) return what;
  put(board, std::move(row));
  return what;
}

}  // namespace assay
