#include "spec/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "assay/error.h"

namespace assay {
namespace {

// Turns valijson's context ["<root>", "[cases]", "[3]"] into the JSON pointer /cases/3.
std::string json_pointer(const std::vector<std::string>& context) {
  std::string pointer;
  for (std::size_t i = 1; i < context.size(); ++i) {
    const std::string& part = context[i];
    pointer += '/';
    pointer += part.size() > 2 ? part.substr(1, part.size() - 2) : part;
  }
  return pointer.empty() ? "/" : pointer;
}

using Adapter = valijson::adapters::NlohmannJsonAdapter;

// Cached: there are few schemas, and reading one takes longer than validating most documents.
const valijson::Schema& schema_of(std::string_view text) {
  static std::mutex mutex;
  static std::map<std::string, valijson::Schema, std::less<>> schemas;
  const std::lock_guard lock(mutex);
  const auto known = schemas.find(text);
  if (known != schemas.end()) return known->second;
  const nlohmann::json document = nlohmann::json::parse(text);
  valijson::Schema& schema = schemas[std::string(text)];
  valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(Adapter(document), schema);
  return schema;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& file) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    const std::size_t at = std::min(e.byte > 0 ? e.byte - 1 : 0, text.size());
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    const std::string_view what = e.what();
    const auto cause = what.rfind(": ");
    throw Error(fmt::format("{}:{}: not valid JSON: {}", file, line,
                            cause == std::string_view::npos ? what : what.substr(cause + 2)));
  } catch (const nlohmann::json::exception& e) {  // a number too large for any type
    const std::string_view what = e.what();
    const auto id = what.find("] ");
    throw Error(
        fmt::format("{}: {}", file, what.substr(id == std::string_view::npos ? 0 : id + 2)));
  }
}

void validate_json(const nlohmann::json& document, std::string_view schema_text,
                   const std::string& file) {
  valijson::ValidationResults results;
  if (valijson::Validator().validate(schema_of(schema_text), Adapter(document), &results)) return;
  // The most specific error is the deepest one.
  valijson::ValidationResults::Error error, deepest;
  while (results.popError(error)) {
    if (error.context.size() > deepest.context.size()) deepest = error;
  }
  throw Error(
      fmt::format("{}: at {}: {}", file, json_pointer(deepest.context), deepest.description));
}

}  // namespace assay
