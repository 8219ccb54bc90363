// A rubric for judging: criteria with weights, as data. challenges/rubric.schema.json describes the
// file; challenges/rubric.json is the shipped one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::judge {

struct Criterion {
  std::string key;    // of its mark in a reply
  std::string title;  // for people
  std::string asks;   // for the judge
  double weight = 1;  // above 0
};

struct Rubric {
  std::string name, version;
  std::string sha256;  // of the file's bytes
  std::vector<Criterion> criteria;
};

// Throws Error naming `file`, the place, the cause and the remedy.
Rubric parse_rubric(std::string_view text, const std::string& file);

// The form stored in results, including the hash. Reading throws Error, or
// nlohmann::json::exception if a member is missing.
nlohmann::ordered_json to_json(const Rubric&);
Rubric rubric_from(const nlohmann::json&);

}  // namespace assay::judge
