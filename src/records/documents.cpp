#include "records/documents.h"

#include <map>
#include <mutex>

#include "assay/error.h"
#include "spec/json_schema.h"

namespace assay {

using nlohmann::json;

std::int64_t schema_of(const json& j) {
  if (!j.is_object() || !j.contains("schema") || !j.at("schema").is_number_integer()) return 0;
  return j.at("schema").get<std::int64_t>();
}

void require_schema(const json& j, int schema) {
  const std::int64_t found = schema_of(j);
  if (found == schema) return;
  if (found > schema) {
    throw Error(
        fmt::format("written by a newer assay (schema {}); this one reads up to {}: upgrade, or "
                    "use another --results",
                    found, schema));
  }
  throw Error(fmt::format("expected \"schema\": {}, found {}: not a results file of this assay",
                          schema, found == 0 ? "none" : std::to_string(found)));
}

namespace {

std::string made_schema(const std::string& kind) {
  json schema = json::parse(kScoreboardSchema);
  schema.erase("oneOf");
  // "$ref" hides its siblings in draft-07, hence allOf.
  schema["allOf"] = json::array({{{"$ref", "#/definitions/" + kind}}});
  return schema.dump();
}

}  // namespace

std::string document_schema(const std::string& kind) {
  // Cached: making a validator takes as long as reading a small document with it.
  static std::mutex mutex;
  static std::map<std::string, std::string> made;
  const std::lock_guard lock(mutex);
  const auto known = made.find(kind);
  return known != made.end() ? known->second : made.emplace(kind, made_schema(kind)).first->second;
}

}  // namespace assay
