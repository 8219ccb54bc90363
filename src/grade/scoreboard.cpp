#include "grade/scoreboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "grade/documents.h"
#include "grade/grade.h"
#include "grade/reason.h"
#include "grade/results_json.h"
#include "grade/strict_json.h"
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
  return {{"model", row.key.model},         {"challenge", row.key.challenge},
          {"attempt", row.key.attempt},     {"device", to_string(row.key.device)},
          {"spec_hash", row.spec_hash},     {"source_hash", row.source_hash},
          {"isolation", row.isolation},     {"seed", std::to_string(row.seed)},
          {"finished_at", row.finished_at}, {"seconds", row.seconds}};
}

Json assay_json(const BoardRow& row) {
  return {{"version", row.assay_version}, {"commit", row.assay_commit}};
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
  return fmt::format(
      "  {{\"cell\": {},\n   \"score\": {},\n   \"reason\": {},\n   \"assay\": {}, \"machine\": "
      "{}, "
      "\"evidence\": {}}}",
      line(cell_json(row)), score_text(row.score), line(row.reason), line(assay_json(row)),
      line(machine_id(row.machine)), line(evidence_json(row.evidence)));
}

// --- reading -----------------------------------------------------------------

Machine machine_from(const json& j, const std::string& place) {
  const StrictObject o(j, place,
                       {"cpu", "kernel", "os", "compiler", "cores", "memory_bytes", "l3_bytes",
                        "copy_bytes_per_s", "fma_flops_per_s"});
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
  return m;
}

Dimension dimension_from(const json& j, const std::string& place) {
  const StrictObject o(j, place, {"name", "points", "max", "interval", "why"});
  return {o.text("name"), o.number_or_null("points"), o.number("max"), o.interval("interval"),
          o.text("why")};
}

ShapeSpeed speed_from(const json& j, const std::string& place) {
  const StrictObject o(j, place,
                       {"case", "ratio_to_par", "ratio_interval", "ratio_to_naive", "points"});
  return {o.text("case"), o.number("ratio_to_par"), o.interval("ratio_interval"),
          o.number("ratio_to_naive"), o.number("points")};
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
      {"modelled_on"});
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
  return s;
}

void read_cell(const StrictObject& entry, BoardRow& row) {
  const StrictObject o =
      entry.object("cell", {"model", "challenge", "attempt", "device", "spec_hash", "source_hash",
                            "isolation", "seed", "finished_at", "seconds"});
  row.key = {o.name("model"), o.name("challenge"), o.text("attempt"), o.device("device")};
  row.spec_hash = o.text("spec_hash");
  row.source_hash = o.text("source_hash");
  row.isolation = o.text("isolation");
  row.seed = o.seed("seed");
  row.finished_at = o.text("finished_at");
  row.seconds = o.number("seconds");
  if (!std::isfinite(row.seconds)) o.fail("seconds", "expected a finite number");
}

// All but the machine, which the two kinds of document keep differently.
BoardRow row_from(const StrictObject& entry) {
  BoardRow row;
  read_cell(entry, row);
  row.score = score_from(entry);
  row.reason = entry.text("reason");
  const StrictObject assay = entry.object("assay", {"version", "commit"});
  row.assay_version = assay.text("version");
  row.assay_commit = assay.text("commit");
  const StrictObject evidence = entry.object("evidence", {"path", "sha256"});
  row.evidence = {evidence.text("path"), evidence.text("sha256")};
  return row;
}

constexpr StrictObject::Keys kEntryKeys{"cell", "score", "reason", "assay", "machine", "evidence"};

std::map<std::string, Machine> machines_from(const StrictObject& board) {
  const json& all = board.value("machines");
  if (!all.is_object()) board.fail("machines", "expected an object");
  std::map<std::string, Machine> machines;
  for (const auto& [id, machine] : all.items())
    machines.emplace(id, machine_from(machine, board.place("machines") + '/' + id));
  return machines;
}

Scoreboard board_from(const json& j) {
  const StrictObject o(j, "", {"schema", "kind", "machines", "entries"});
  if (o.text("kind") != "scoreboard") o.fail("kind", "expected \"scoreboard\"");
  const auto machines = machines_from(o);
  Scoreboard board;
  o.each("entries", [&](const json& e, const std::string& place) {
    const StrictObject entry(e, place, kEntryKeys);
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
  row.spec_hash = e.cell.spec_hash;
  row.source_hash = e.cell.build.source_hash;
  row.isolation = e.cell.isolation;
  row.seed = e.cell.seed;
  row.finished_at = e.cell.finished_at;
  for (const CaseResult& c : e.cell.cases) {
    if (std::isfinite(c.seconds)) row.seconds += c.seconds;
  }
  row.assay_version = e.assay_version;
  row.assay_commit = e.assay_commit;
  row.machine = e.machine;
  row.evidence = std::move(evidence);
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
      "{{\n \"schema\": {},\n \"kind\": \"scoreboard\",\n \"machines\": {{{}}},\n \"entries\": "
      "[{}]\n}}\n",
      Scoreboard::kSchema, table, entries);
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
  return line(Json{{"schema", Scoreboard::kSchema},
                   {"cell", cell_json(row)},
                   {"score", to_json(row.score)},
                   {"reason", row.reason},
                   {"assay", assay_json(row)},
                   {"machine", to_json(row.machine)},
                   {"evidence", evidence_json(row.evidence)}});
}

BoardRow parse_row(const std::string& text, const std::string& place) {
  return reading(place, [&] {
    const json j = parse_json(text, place);
    require_schema(j, Scoreboard::kSchema);
    const StrictObject entry(j, "", kEntryKeys, {"schema"});
    BoardRow row = row_from(entry);
    row.machine = machine_from(entry.value("machine"), entry.place("machine"));
    return row;
  });
}

Arrival arrival(const Scoreboard& board, const BoardRow& row) {
  const auto found = board.entries.find(row.key);
  if (found == board.entries.end()) return Arrival::added;
  const BoardRow& there = found->second;
  if (there.evidence.sha256 == row.evidence.sha256) return Arrival::same;
  if (same_subject(there, row) && is_full(there) != is_full(row))
    return is_full(row) ? Arrival::replaced : Arrival::lesser;
  return there.finished_at > row.finished_at ? Arrival::older : Arrival::replaced;
}

Arrival merge(Scoreboard& board, BoardRow row) {
  const Arrival what = arrival(board, row);
  if (!is_placed(what)) return what;
  const CellKey key = row.key;
  board.entries.insert_or_assign(key, std::move(row));
  return what;
}

}  // namespace assay
