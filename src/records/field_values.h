// The JSON form of a field's value, by type. Non-finite numbers are "nan", "inf" and "-inf". Seeds,
// the only unsigned 64-bit numbers, are strings of digits: many JSON readers hold numbers as
// doubles and would lose the last bits.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "records/strict_json.h"

namespace assay {

nlohmann::ordered_json value_json(const std::string&);
nlohmann::ordered_json value_json(bool);
nlohmann::ordered_json value_json(int);
nlohmann::ordered_json value_json(std::int64_t);
nlohmann::ordered_json value_json(std::uint64_t);
nlohmann::ordered_json value_json(double);
nlohmann::ordered_json value_json(const std::optional<double>&);  // null when absent
nlohmann::ordered_json value_json(Interval);                      // [low, high]
nlohmann::ordered_json value_json(Device);
nlohmann::ordered_json value_json(CaseGroup);
nlohmann::ordered_json value_json(Verdict);
nlohmann::ordered_json value_json(TestVerdict);
nlohmann::ordered_json value_json(Note::Kind);
nlohmann::ordered_json value_json(const ModelInfo&);
nlohmann::ordered_json value_json(const AttemptRecord&);  // without the fields that only
                                                          // attempt.json holds
nlohmann::ordered_json value_json(const std::vector<std::string>&);
nlohmann::ordered_json value_json(const std::vector<TimingSample>&);  // [naive, par, submission]
nlohmann::ordered_json value_json(const std::vector<FailedCase>&);    // names by verdict
// A value passed through unchanged.
template <std::same_as<nlohmann::json> T>
nlohmann::ordered_json value_json(const T& any) {
  return any;
}

// Reads the value of an existing key. Throws Error with its place if it has the wrong type, is a
// negative integer, or is a name that this program does not write.
void read_value(const StrictObject&, const char* key, std::string& to);
void read_value(const StrictObject&, const char* key, bool& to);
void read_value(const StrictObject&, const char* key, int& to);
void read_value(const StrictObject&, const char* key, std::int64_t& to);
void read_value(const StrictObject&, const char* key, std::uint64_t& to);
void read_value(const StrictObject&, const char* key, double& to);
void read_value(const StrictObject&, const char* key, std::optional<double>& to);
void read_value(const StrictObject&, const char* key, Interval& to);
void read_value(const StrictObject&, const char* key, Device& to);
void read_value(const StrictObject&, const char* key, CaseGroup& to);
void read_value(const StrictObject&, const char* key, Verdict& to);
void read_value(const StrictObject&, const char* key, TestVerdict& to);
void read_value(const StrictObject&, const char* key, Note::Kind& to);
void read_value(const StrictObject&, const char* key, ModelInfo& to);
void read_value(const StrictObject&, const char* key, AttemptRecord& to);
void read_value(const StrictObject&, const char* key, std::vector<std::string>& to);
void read_value(const StrictObject&, const char* key, std::vector<TimingSample>& to);
void read_value(const StrictObject&, const char* key, std::vector<FailedCase>& to);
template <std::same_as<nlohmann::json> T>
void read_value(const StrictObject& o, const char* key, T& to) {
  to = o.value(key);
}

// What is known of a model, read at that place of a document.
ModelInfo model_info_at(const nlohmann::json&, const std::string& place);

// Whether a value may be left out of the file.
inline bool says_nothing(const std::string& text) { return text.empty(); }
inline bool says_nothing(double ratio) { return !(ratio > 0); }
inline bool says_nothing(const ModelInfo& info) { return info.empty(); }
bool says_nothing(const AttemptRecord&);
template <class T>
bool says_nothing(const std::vector<T>& list) {
  return list.empty();
}

}  // namespace assay
