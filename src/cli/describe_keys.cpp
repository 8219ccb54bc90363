#include "cli/describe_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "assay/error.h"
#include "cli/roff.h"

namespace assay::cli {
namespace {

// Keys in the order of the schema, which puts what matters first.
using Json = nlohmann::ordered_json;

constexpr std::string_view kDefinitions = "#/definitions/";

// Of "#/definitions/NAME"; empty if the schema stands here itself.
std::string reference_of(const Json& schema) {
  const std::string target = schema.value("$ref", "");
  return target.starts_with(kDefinitions) ? target.substr(kDefinitions.size()) : target;
}

std::string text_of(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  return text.empty() ? value.dump() : text;
}

class Keys {
 public:
  explicit Keys(const Json& schema) : definitions_(schema.at("definitions")) {}

  // A subsection for the document or record `name`, unless there is one.
  void add(const std::string& name) {
    if (std::ranges::find(sections_, name) == sections_.end()) sections_.push_back(name);
  }

  std::string text() {
    std::string text;
    // Records are added while others are described.
    for (std::size_t i = 0; i < sections_.size(); ++i) text += section(std::string(sections_[i]));
    return text;
  }

 private:
  const Json& definition(const std::string& name) const {
    const auto found = definitions_.find(name);
    if (found == definitions_.end()) throw Error("the schema does not define " + name);
    return *found;
  }

  std::string section(const std::string& name) {
    const Json& schema = definition(name);
    std::string text = fmt::format(".SS {}\n", roff(name));
    if (schema.contains("description")) text += roff(text_of(schema["description"])) + "\n";
    if (schema.contains("enum")) return text + roff(choices(schema)) + "\n";
    return text + keys("", schema);
  }

  // What a reader looks up by its name: a record, or values that are too many for one line.
  static bool has_section(const Json& schema) {
    constexpr std::size_t kFew = 3;
    return schema.contains("properties") ||
           (schema.contains("enum") && schema["enum"].size() > kFew);
  }

  static std::string choices(const Json& schema) {
    std::vector<std::string> values;
    for (const Json& value : schema.at("enum")) values.push_back(text_of(value));
    return fmt::format("{}", fmt::join(values, " | "));
  }

  std::string alternatives(const Json& schemas) {
    std::vector<std::string> types;
    for (const Json& schema : schemas) types.push_back(type(schema));
    return fmt::format("{}", fmt::join(types, " | "));
  }

  std::string type(const Json& schema) {
    if (std::string name = reference_of(schema); !name.empty()) {
      const Json& target = definition(name);
      if (!has_section(target)) return type(target);
      add(name);
      return name;
    }
    if (schema.contains("title")) return text_of(schema["title"]);
    if (schema.contains("const")) return text_of(schema["const"]);
    if (schema.contains("enum")) return choices(schema);
    if (schema.contains("anyOf")) return alternatives(schema["anyOf"]);
    if (schema.contains("items")) return "array of " + type(schema["items"]);
    if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object())
      return "object of " + type(schema["additionalProperties"]) + " by name";
    if (!schema.contains("type")) throw Error("the schema leaves a type open: " + schema.dump());
    const Json& types = schema["type"];
    return types.is_array()
               ? fmt::format("{}", fmt::join(types.get<std::vector<std::string>>(), " | "))
               : text_of(types);
  }

  // Of the property itself, else of what it refers to, unless that has a subsection which says it.
  std::string description(const Json& schema) const {
    if (schema.contains("description")) return text_of(schema["description"]);
    const std::string name = reference_of(schema);
    if (name.empty() || has_section(definition(name))) return {};
    return description(definition(name));
  }

  // Keys of objects that have no name of their own: those in `schema`, in arrays, in alternatives.
  std::string inner_keys(const std::string& path, const Json& schema) {
    if (const std::string name = reference_of(schema); !name.empty()) {
      return has_section(definition(name)) ? "" : inner_keys(path, definition(name));
    }
    if (schema.contains("properties")) return keys(path + ".", schema);
    if (schema.contains("items")) return inner_keys(path + "[]", schema["items"]);
    std::string text;
    if (schema.contains("anyOf")) {
      for (const Json& alternative : schema["anyOf"]) text += inner_keys(path, alternative);
    }
    return text;
  }

  std::string keys(const std::string& prefix, const Json& schema) {
    const std::vector<std::string> required = schema.value("required", std::vector<std::string>{});
    std::string text;
    for (const auto& [key, value] : schema.at("properties").items()) {
      const bool optional = std::ranges::find(required, key) == required.end();
      const std::string about = description(value);
      text +=
          fmt::format(".TP\n\\fB{}\\fR\n\\fI{}\\fR{}{}\n", roff(prefix + key), roff(type(value)),
                      optional ? ", optional" : "", about.empty() ? "" : ": " + roff(about));
      text += inner_keys(prefix + key, value);
    }
    return text;
  }

  const Json& definitions_;
  std::vector<std::string> sections_;
};

}  // namespace

std::string man_keys(std::string_view schema, std::string_view superseded) {
  const Json parsed = Json::parse(schema);
  Keys keys(parsed);
  for (const Json& document : parsed.at("oneOf")) {
    const std::string name = reference_of(document);
    if (name == superseded) continue;
    const Json& definition = parsed.at("definitions").at(name);
    if (!definition.contains("oneOf")) {
      keys.add(name);
      continue;
    }
    for (const Json& alternative : definition["oneOf"]) keys.add(reference_of(alternative));
  }
  return roff(text_of(parsed.at("description"))) + "\n" + keys.text();
}

}  // namespace assay::cli
