#include "records/field_values.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "assay/error.h"
#include "records/entrant_json.h"
#include "spec/spec.h"

namespace assay {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

template <class Value>
void read_code(const StrictObject& o, const char* key,
               std::optional<Value> (*decode)(const std::string&), Value& to) {
  const std::string& code = o.text(key);
  const auto value = decode(code);
  if (!value) o.fail(key, fmt::format("unknown \"{}\"", code));
  to = *value;
}

// Reads what records/entrant_json.h describes at that place of the document.
template <class Facts>
Facts facts_at(const json& j, const std::string& place, Facts (*from_json)(const json&)) {
  try {
    return from_json(j);
  } catch (const FactError& e) {
    fail_at(place, e.what());
  }
}

TimingSample sample_at(const json& j, const std::string& place) {
  constexpr std::optional<double> TimingSample::*kMembers[] = {
      &TimingSample::naive, &TimingSample::par, &TimingSample::submission};
  if (!j.is_array() || j.size() != std::size(kMembers)) fail_at(place, "expected three numbers");
  TimingSample sample;
  for (std::size_t i = 0; i < j.size(); ++i) {
    if (j[i].is_null()) continue;
    sample.*kMembers[i] = number_in(j[i]);
    if (!(sample.*kMembers[i])) fail_at(place, "expected numbers or null");
  }
  return sample;
}

}  // namespace

Json value_json(const std::string& text) { return text; }

Json value_json(bool flag) { return flag; }

Json value_json(int count) { return count; }

Json value_json(std::int64_t count) { return count; }

Json value_json(std::uint64_t seed) { return std::to_string(seed); }

Json value_json(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

Json value_json(const std::optional<double>& x) { return x ? value_json(*x) : Json(nullptr); }

Json value_json(Interval i) { return Json::array({value_json(i.low), value_json(i.high)}); }

Json value_json(Device device) { return to_string(device); }

Json value_json(CaseGroup group) { return to_string(group); }

Json value_json(Verdict verdict) { return code(verdict); }

Json value_json(TestVerdict verdict) { return code(verdict); }

Json value_json(Note::Kind kind) { return code(kind); }

Json value_json(const ModelInfo& info) { return to_json(info); }

Json value_json(const AttemptRecord& record) { return board_json(record); }

Json value_json(const std::vector<std::string>& texts) { return texts; }

Json value_json(const std::vector<TimingSample>& samples) {
  Json j = Json::array();
  for (const TimingSample& s : samples) {
    j.push_back(Json::array({value_json(s.naive), value_json(s.par), value_json(s.submission)}));
  }
  return j;
}

// Grouped by verdict, because there are many names and few verdicts.
Json value_json(const std::vector<FailedCase>& failed) {
  Json j = Json::object();
  for (const FailedCase& f : failed) j[code(f.verdict)].push_back(f.name);
  return j;
}

void read_value(const StrictObject& o, const char* key, std::string& to) { to = o.text(key); }

void read_value(const StrictObject& o, const char* key, bool& to) { to = o.flag(key); }

void read_value(const StrictObject& o, const char* key, int& to) {
  const std::int64_t count = o.count(key);
  if (count > std::numeric_limits<int>::max()) o.fail(key, "too large");
  to = static_cast<int>(count);
}

void read_value(const StrictObject& o, const char* key, std::int64_t& to) { to = o.count(key); }

void read_value(const StrictObject& o, const char* key, std::uint64_t& to) { to = o.seed(key); }

void read_value(const StrictObject& o, const char* key, double& to) { to = o.number(key); }

void read_value(const StrictObject& o, const char* key, std::optional<double>& to) {
  to = o.number_or_null(key);
}

void read_value(const StrictObject& o, const char* key, Interval& to) { to = o.interval(key); }

void read_value(const StrictObject& o, const char* key, Device& to) { to = o.device(key); }

void read_value(const StrictObject& o, const char* key, CaseGroup& to) {
  try {
    to = case_group(o.text(key));
  } catch (const Error& e) {
    o.fail(key, e.what());
  }
}

void read_value(const StrictObject& o, const char* key, Verdict& to) { to = o.verdict(key); }

void read_value(const StrictObject& o, const char* key, TestVerdict& to) {
  read_code(o, key, &test_verdict_from_code, to);
}

void read_value(const StrictObject& o, const char* key, Note::Kind& to) {
  read_code(o, key, &note_kind_from_code, to);
}

void read_value(const StrictObject& o, const char* key, ModelInfo& to) {
  to = model_info_at(o.value(key), o.place(key));
}

void read_value(const StrictObject& o, const char* key, AttemptRecord& to) {
  to = facts_at(o.value(key), o.place(key), &attempt_record_from);
}

void read_value(const StrictObject& o, const char* key, std::vector<std::string>& to) {
  o.each(key, [&](const json& text, const std::string& place) {
    if (!text.is_string()) fail_at(place, "expected a string");
    to.push_back(text);
  });
}

void read_value(const StrictObject& o, const char* key, std::vector<TimingSample>& to) {
  o.each(key, [&](const json& sample, const std::string& place) {
    to.push_back(sample_at(sample, place));
  });
}

void read_value(const StrictObject& o, const char* key, std::vector<FailedCase>& to) {
  const json& by_verdict = o.value(key);
  if (!by_verdict.is_object()) o.fail(key, "expected an object");
  for (const auto& [verdict, names] : by_verdict.items()) {
    const auto known = verdict_from_code(verdict);
    const std::string place = o.place(key) + '/' + verdict;
    if (!known) fail_at(place, "unknown");
    if (!names.is_array()) fail_at(place, "expected a list of names");
    for (const json& name : names) {
      if (!name.is_string()) fail_at(place, "expected a list of names");
      to.push_back({name, *known});
    }
  }
}

ModelInfo model_info_at(const json& j, const std::string& place) {
  return facts_at(j, place, &model_info_from);
}

bool says_nothing(const AttemptRecord& record) { return board_json(record).empty(); }

}  // namespace assay
