#include "records/old_forms.h"

#include <utility>

#include "records/record_fields.h"
#include "records/record_json.h"

namespace assay {
namespace {

using nlohmann::json;

// Notes stored as text alone always began with one of these.
Note::Kind kind_of(const std::string& text) {
  constexpr std::pair<const char*, Note::Kind> kBeginnings[] = {
      {"ships no test.", Note::Kind::no_tests},
      {"not run", Note::Kind::tests_not_run},
      {"quick", Note::Kind::quick},
      {"other virtual machines took", Note::Kind::stolen_time},
      {"below", Note::Kind::few_repetitions},
      {"par is no faster than naive", Note::Kind::par_not_faster},
      {"naive is at its floor", Note::Kind::naive_at_floor},
      {"wrong on a timed repetition", Note::Kind::wrong_when_timed}};
  for (const auto& [beginning, kind] : kBeginnings) {
    if (text.starts_with(beginning)) return kind;
  }
  return Note::Kind::other;
}

void rewrite_note(json& j) {
  if (!j.is_string()) return;
  const std::string text = j;
  j = record_json(Note{kind_of(text), text});
}

void rewrite_case(json& j) {
  const bool skipped = j.at("verdict") == code(Verdict::skipped);
  if (skipped && j.value("detail", "").starts_with("needs a GPU"))
    j["verdict"] = code(Verdict::needs_gpu);
}

Mutant mutant_of(const CaseResult& c) {
  Mutant m{c.name, c.name == "naive" || c.name == "par", TestVerdict::not_run, c.detail, c.seconds};
  const bool built = c.verdict == Verdict::ok || c.verdict == Verdict::wrong_answer;
  if (built) {
    const bool accepted = m.correct == (c.verdict == Verdict::ok);
    m.verdict = accepted ? TestVerdict::accepted : TestVerdict::rejected;
    const std::size_t open = m.reason.find('('), close = m.reason.rfind(')');
    m.reason = close == std::string::npos ? "" : m.reason.substr(open + 1, close - open - 1);
  } else if (c.verdict != Verdict::skipped && c.verdict != Verdict::harness_error) {
    m.verdict = TestVerdict::not_built;
  }
  return m;
}

void rewrite_mutant(json& j, const std::string& place) {
  if (j.contains("subject")) return;
  rewrite_case(j);
  j = record_json(mutant_of(record_from<CaseResult>(j, place)));
}

}  // namespace

void bring_to_form_of_today(json& entry, const std::string& place) {
  json& cell = entry.at("cell");
  for (json& j : cell.at("cases")) rewrite_case(j);
  std::size_t i = 0;
  for (json& j : cell.at("mutants"))
    rewrite_mutant(j, place + "/cell/mutants/" + std::to_string(i++));
  if (cell.contains("tests_note")) rewrite_note(cell["tests_note"]);
  for (json& j : entry.at("score").at("flags")) rewrite_note(j);
}

}  // namespace assay
