#include "records/entrant_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "util/text.h"

namespace assay {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

template <class Facts>
struct TextField {
  const char* key;
  std::string Facts::*member;
  std::size_t longest;  // bytes
  bool on_board = true;
};

constexpr TextField<ModelInfo> kModelTexts[] = {
    {"name", &ModelInfo::name, 80},
    {"provider", &ModelInfo::provider, 80},
    {"parameters", &ModelInfo::parameters, 80},
    {"quantisation", &ModelInfo::quantisation, 80},
    {"harness", &ModelInfo::harness, 80},
    {"date", &ModelInfo::date, 10},
    {"link", &ModelInfo::link, 300},
};

constexpr TextField<AttemptRecord> kAttemptTexts[] = {
    {"finish_reason", &AttemptRecord::finish_reason, 40},
    {"command", &AttemptRecord::command, 300},
    {"version", &AttemptRecord::version, 80},
    {"date", &AttemptRecord::date, 20},
    {"language", &AttemptRecord::language, 4, false},
    {"no_answer", &AttemptRecord::no_answer, 200},
    {"prompt_sha256", &AttemptRecord::prompt_sha256, 64},
    {"how", &AttemptRecord::how, 1000, false},
};

struct CountField {
  const char* key;
  std::optional<std::int64_t> AttemptRecord::*member;
};
constexpr CountField kCounts[] = {{"turns", &AttemptRecord::turns},
                                  {"tokens_in", &AttemptRecord::tokens_in},
                                  {"tokens_out", &AttemptRecord::tokens_out}};

struct FlagField {
  const char* key;
  std::optional<bool> AttemptRecord::*member;
};
constexpr FlagField kFlags[] = {{"hints", &AttemptRecord::hints},
                                {"prompt_hints", &AttemptRecord::prompt_hints}};

struct NumberField {
  const char* key;
  std::optional<double> AttemptRecord::*member;
};
constexpr NumberField kNumbers[] = {{"seconds", &AttemptRecord::seconds},
                                    {"cost_usd", &AttemptRecord::cost_usd}};

constexpr std::size_t kMostNotKept = 100, kLongestNotKept = 200;

// Cuts the text to one line, at a character boundary. The marks that printable() adds where it cuts
// count towards the length.
std::string short_text(std::string text, std::size_t longest) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  std::string shown = printable(text, 1, longest);
  for (std::size_t most = longest; shown.size() > longest && most > 0;) {
    most -= std::min(most, shown.size() - longest);
    shown = printable(text, 1, most);
  }
  return shown.size() > longest ? "" : shown;
}

bool is_plain_fact(const std::string& text) {
  return printable(text, 1, text.size() + 1) == text && text.find('\t') == std::string::npos;
}

void require_facts(const json& j) {
  if (!j.is_object()) throw FactError("", "expected an object");
}

std::string fact_text(const json& value, const std::string& key, std::size_t longest) {
  if (!value.is_string()) throw FactError(key, "expected a text");
  auto text = value.get<std::string>();
  if (text.size() > longest) throw FactError(key, fmt::format("longer than {} bytes", longest));
  if (!is_plain_fact(text)) throw FactError(key, "not plain text on one line");
  return text;
}

bool fact_flag(const json& value, const std::string& key) {
  if (!value.is_boolean()) throw FactError(key, "expected true or false");
  return value.get<bool>();
}

double fact_number(const json& value, const std::string& key) {
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
    throw FactError(key, "expected a number, 0 or more");
  return value.get<double>();
}

std::int64_t fact_count(const json& value, const std::string& key) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
    throw FactError(key, "expected a whole number, 0 or more");
  return value.get<std::int64_t>();
}

// YYYY, YYYY-MM or YYYY-MM-DD
bool is_date(const std::string& text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return false;
  }
  return true;
}

bool is_sha256(const std::string& text) {
  constexpr std::size_t kDigits = 64;
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_web_link(const std::string& text) {
  const bool web = text.starts_with("https://") || text.starts_with("http://");
  constexpr std::size_t kScheme = 8;
  return web && text.size() > kScheme &&
         text.find_first_of(" <>\"'`\\()[]{}|^") == std::string::npos;
}

template <class Facts>
bool read_text(const std::string& key, const json& value, std::span<const TextField<Facts>> fields,
               Facts& facts) {
  for (const TextField<Facts>& field : fields) {
    if (key != field.key) continue;
    facts.*field.member = fact_text(value, key, field.longest);
    return true;
  }
  return false;
}

template <class Facts>
std::string keys_of(std::span<const TextField<Facts>> fields) {
  std::string text;
  for (const TextField<Facts>& field : fields) text += std::string(field.key) + ", ";
  return text;
}

bool read_flag(const std::string& key, const json& value, AttemptRecord& record) {
  for (const FlagField& field : kFlags) {
    if (key != field.key) continue;
    record.*field.member = fact_flag(value, key);
    return true;
  }
  return false;
}

bool read_number(const std::string& key, const json& value, AttemptRecord& record) {
  for (const CountField& field : kCounts) {
    if (key != field.key) continue;
    record.*field.member = fact_count(value, key);
    return true;
  }
  for (const NumberField& field : kNumbers) {
    if (key != field.key) continue;
    record.*field.member = fact_number(value, key);
    return true;
  }
  return false;
}

std::vector<std::string> fact_list(const json& value, const std::string& key) {
  if (!value.is_array() || value.size() > kMostNotKept)
    throw FactError(key, fmt::format("expected a list of at most {} texts", kMostNotKept));
  std::vector<std::string> list;
  for (const json& item : value) list.push_back(fact_text(item, key, kLongestNotKept));
  return list;
}

template <class Facts>
void write_texts(const Facts& facts, std::span<const TextField<Facts>> fields, bool board,
                 Json& j) {
  for (const TextField<Facts>& field : fields) {
    if ((board && !field.on_board) || (facts.*field.member).empty()) continue;
    j[field.key] = short_text(facts.*field.member, field.longest);
  }
}

Json record_json(const AttemptRecord& record, bool board) {
  Json j = Json::object();
  for (const CountField& field : kCounts) {
    if (record.*field.member >= 0) j[field.key] = *(record.*field.member);
  }
  for (const NumberField& field : kNumbers) {
    const std::optional<double>& value = record.*field.member;
    if (value && std::isfinite(*value) && *value >= 0) j[field.key] = *value;
  }
  write_texts<AttemptRecord>(record, kAttemptTexts, board, j);
  for (const FlagField& field : kFlags) {
    if (record.*field.member) j[field.key] = *(record.*field.member);
  }
  if (board) return j;
  if (record.cut_off) j["cut_off"] = true;
  if (record.not_kept.empty()) return j;
  j["not_kept"] = Json::array();
  for (const std::string& name : record.not_kept) {
    if (j["not_kept"].size() < kMostNotKept)
      j["not_kept"].push_back(short_text(name, kLongestNotKept));
  }
  return j;
}

}  // namespace

Json to_json(const ModelInfo& info) {
  Json j = Json::object();
  write_texts<ModelInfo>(info, kModelTexts, false, j);
  if (info.sample) j["sample"] = true;
  return j;
}

Json to_json(const AttemptRecord& record) { return record_json(record, false); }

Json board_json(const AttemptRecord& record) { return record_json(record, true); }

ModelInfo model_info_from(const json& j) {
  require_facts(j);
  ModelInfo info;
  for (auto it = j.begin(); it != j.end(); ++it) {
    if (it.key() == "sample") {
      info.sample = fact_flag(*it, it.key());
    } else if (!read_text<ModelInfo>(it.key(), *it, kModelTexts, info)) {
      throw FactError(short_text(it.key(), kLongestNotKept),
                      "unknown: a model has " + keys_of<ModelInfo>(kModelTexts) + "sample");
    }
  }
  if (!info.date.empty() && !is_date(info.date))
    throw FactError("date", "expected 2026, 2026-11 or 2026-11-25");
  if (!info.link.empty() && !is_web_link(info.link))
    throw FactError("link", "expected an address that starts with https://");
  return info;
}

AttemptRecord attempt_record_from(const json& j) {
  require_facts(j);
  AttemptRecord record;
  for (auto it = j.begin(); it != j.end(); ++it) {
    const std::string& key = it.key();
    if (key == "cut_off") {
      record.cut_off = fact_flag(*it, key);
    } else if (key == "not_kept") {
      record.not_kept = fact_list(*it, key);
    } else if (!read_flag(key, *it, record) && !read_number(key, *it, record) &&
               !read_text<AttemptRecord>(key, *it, kAttemptTexts, record)) {
      throw FactError(short_text(key, kLongestNotKept), "unknown");
    }
  }
  if (!record.language.empty() && record.language != "cpp" && record.language != "cuda")
    throw FactError("language", "expected cpp or cuda");
  if (!record.prompt_sha256.empty() && !is_sha256(record.prompt_sha256))
    throw FactError("prompt_sha256", "expected 64 hexadecimal digits");
  return record;
}

}  // namespace assay
