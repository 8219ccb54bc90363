#include "judge/rubric.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "assay/error.h"
#include "spec/json_schema.h"
#include "util/sha256.h"

namespace assay::judge {
namespace {

constexpr const char* kRemedy = "; challenges/rubric.schema.json says what a rubric holds";

std::vector<Criterion> criteria_from(const nlohmann::json& list) {
  std::vector<Criterion> criteria;
  for (const nlohmann::json& c : list) {
    criteria.push_back({c.at("key").get<std::string>(), c.at("title").get<std::string>(),
                        c.at("asks").get<std::string>(), c.at("weight").get<double>()});
  }
  return criteria;
}

Rubric checked(const nlohmann::json& document, std::string sha256, const std::string& file) {
  try {
    validate_json(document, kRubricSchema, file);
  } catch (const Error& e) {
    throw Error(e.what() + std::string(kRemedy));
  }
  Rubric rubric{document.at("name").get<std::string>(), document.at("version").get<std::string>(),
                std::move(sha256), criteria_from(document.at("criteria"))};
  std::set<std::string> keys;
  for (const Criterion& c : rubric.criteria) {
    if (keys.insert(c.key).second) continue;
    throw Error(fmt::format("{}: at /criteria: two criteria have the key '{}': give each its own",
                            file, c.key));
  }
  return rubric;
}

}  // namespace

Rubric parse_rubric(std::string_view text, const std::string& file) {
  return checked(parse_json(text, file), sha256_hex(text), file);
}

nlohmann::ordered_json to_json(const Rubric& rubric) {
  nlohmann::ordered_json json{
      {"name", rubric.name}, {"version", rubric.version}, {"sha256", rubric.sha256}};
  json["criteria"] = nlohmann::ordered_json::array();
  for (const Criterion& c : rubric.criteria) {
    json["criteria"].push_back(
        {{"key", c.key}, {"title", c.title}, {"asks", c.asks}, {"weight", c.weight}});
  }
  return json;
}

Rubric rubric_from(const nlohmann::json& json) {
  const nlohmann::json document{{"schema", 1},
                                {"name", json.at("name")},
                                {"version", json.at("version")},
                                {"criteria", json.at("criteria")}};
  return checked(document, json.at("sha256").get<std::string>(), "its rubric");
}

}  // namespace assay::judge
