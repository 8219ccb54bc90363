#include "records/scoreboard.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "records/documents.h"
#include "records/entrant_json.h"
#include "records/lookup.h"
#include "records/record_fields.h"
#include "records/record_json.h"
#include "records/strict_json.h"
#include "spec/json_schema.h"
#include "util/sha256.h"

namespace assay {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

std::string line(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// --- writing -----------------------------------------------------------------

// Many cells are measured on the same machine, so cells refer to it by id and the file holds it
// once.
std::string machine_id(const Machine& m) {
  constexpr std::size_t kDigits = 12;
  return sha256_hex(line(record_json(m))).substr(0, kDigits);
}

// Spread over a few lines, so that a diff shows which part changed.
std::string score_text(const Json& score) {
  std::string text;
  for (const auto& [key, value] : score.items()) {
    const bool long_one = key == "dimensions" || key == "speeds";
    text += (text.empty() ? "{" : long_one ? ",\n    " : ", ") + line(key) + ": " + line(value);
  }
  return text + "}";
}

std::string entry_text(const BoardRow& row, const std::string& machine) {
  const Json entry = object_json([&](auto& f) { row_fields(f, row, machine); });
  std::string text;
  for (const auto& [key, value] : entry.items()) {
    const bool on_same_line = key == "machine" || key == "evidence";
    text += text.empty() ? "  {" : on_same_line ? ", " : ",\n   ";
    text += line(key) + ": " + (key == "score" ? score_text(value) : line(value));
  }
  return text + "}";
}

// The models that have results, one per line; "" if nothing is said of any.
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

std::map<std::string, Machine> machines_from(const StrictObject& board) {
  const json& all = board.value("machines");
  if (!all.is_object()) board.fail("machines", "expected an object");
  std::map<std::string, Machine> machines;
  for (const auto& [id, machine] : all.items())
    machines.emplace(id, record_from<Machine>(machine, board.place("machines") + '/' + id));
  return machines;
}

std::map<std::string, ModelInfo> models_from(const StrictObject& board) {
  const json& all = board.value("models");
  if (!all.is_object()) board.fail("models", "expected an object");
  std::map<std::string, ModelInfo> models;
  for (const auto& [model, about] : all.items())
    models.emplace(model, model_info_at(about, board.place("models") + '/' + model));
  return models;
}

BoardRow entry_from(const json& j, const std::string& place,
                    const std::map<std::string, Machine>& machines) {
  BoardRow row;
  std::string id;
  read_object(j, place, [&](auto& f) { row_fields(f, row, id); });
  const auto machine = machines.find(id);
  if (machine == machines.end()) fail_at(place + "/machine", "is not among the machines");
  row.machine = machine->second;
  return row;
}

Scoreboard board_from(const json& j) {
  const StrictObject o(j, "", {"schema", "kind", "machines", "entries"}, {"models"});
  if (o.text("kind") != "scoreboard") o.fail("kind", "expected \"scoreboard\"");
  const auto machines = machines_from(o);
  Scoreboard board;
  if (o.has("models")) board.models = models_from(o);
  o.each("entries", [&](const json& e, const std::string& place) {
    BoardRow row = entry_from(e, place, machines);
    const CellKey key = row.key;
    if (!board.entries.emplace(key, std::move(row)).second) {
      fail_at(place, fmt::format("a second entry for {} {} {} on {}", key.model, key.challenge,
                                 key.attempt, to_string(key.device)));
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

std::string scoreboard_text(const Scoreboard& board) {
  std::map<std::string, std::string> machines;
  std::string entries;
  for (const auto& [key, row] : board.entries) {
    const std::string machine = machine_id(row.machine);
    machines.try_emplace(machine, line(record_json(row.machine)));
    entries += (entries.empty() ? "\n" : ",\n") + entry_text(row, machine);
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
  return line(object_json([&](auto& f) { line_fields(f, row); }));
}

BoardRow parse_row(const std::string& text, const std::string& place) {
  return reading(place, [&] {
    const json j = parse_json(text, place);
    require_schema(j, Scoreboard::kSchema);
    BoardRow row;
    read_object(j, "", [&](auto& f) { line_fields(f, row); });
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
  if (!compare_with_each_other(there.revision, row.revision, row.key.device))
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
