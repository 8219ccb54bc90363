#include "records/record_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "spec/json_schema.h"
#include "store/run_fields.h"

namespace assay {
namespace {

using nlohmann::json;
using ::testing::ElementsAreArray;

// Resolves "$ref"; of alternatives it takes the first that is an object.
const json& resolved(const json& schema) {
  static const json document = json::parse(kScoreboardSchema);
  if (schema.contains("$ref")) {
    const std::string pointer = schema.at("$ref").get<std::string>().substr(1);
    return resolved(document.at(json::json_pointer(pointer)));
  }
  if (!schema.contains("anyOf")) return schema;
  for (const json& alternative : schema.at("anyOf")) {
    if (resolved(alternative).value("type", json()) == "object") return resolved(alternative);
  }
  return schema;
}

const json& definition(const std::string& name) {
  return resolved(json{{"$ref", "#/definitions/" + name}});
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

template <class Table>
void expect_schema(const json& schema, const std::string& place, const Table& table);

// A visitor that compares a table, and those of the records within, with the schema of its object.
class SchemaCheck {
 public:
  SchemaCheck(const json& schema, std::string place) : schema_(schema), place_(std::move(place)) {}

  void required(const char* key, const auto& value, const auto&...) {
    required_.insert(key);
    see(key, value);
  }
  void optional(const char* key, const auto& value, const auto&...) { see(key, value); }
  void added(const char* key, const auto& value, const auto&) { see(key, value); }
  void object(const char* key, const auto& table) {
    required_.insert(key);
    keys_.insert(key);
    expect_schema(property(key), place_ + '/' + key, table);
  }

  void expect_all_keys() const {
    EXPECT_THAT(keys_, ElementsAreArray(keys_of(schema_.at("properties")))) << place_;
    EXPECT_THAT(required_, ElementsAreArray(schema_.at("required").get<std::set<std::string>>()))
        << place_;
    EXPECT_EQ(schema_.at("additionalProperties"), false) << place_;
  }

 private:
  void see(const char* key, const auto& value) {
    keys_.insert(key);
    within(property(key), place_ + '/' + key, value);
  }

  const json& property(const char* key) const {
    static const json nothing;
    const json& properties = schema_.at("properties");
    return properties.contains(key) ? resolved(properties.at(key)) : nothing;
  }

  template <class T>
  static void within(const json& schema, const std::string& place, const T& value) {
    if constexpr (Record<T>) {
      T any = value;
      expect_schema(schema, place, [&](auto& f) { fields(f, any); });
    }
  }
  template <class T>
  static void within(const json& schema, const std::string& place, const std::optional<T>&) {
    within(schema, place, T{});
  }
  template <class T>
  static void within(const json& schema, const std::string& place, const std::vector<T>&) {
    within(schema.contains("items") ? resolved(schema.at("items")) : schema, place, T{});
  }

  const json& schema_;
  std::string place_;
  std::set<std::string> keys_, required_;
};

template <class Table>
void expect_schema(const json& schema, const std::string& place, const Table& table) {
  ASSERT_EQ(schema.value("type", json()), "object") << place;
  SchemaCheck check(schema, place);
  table(check);
  check.expect_all_keys();
}

template <class T>
void expect_schema_of_record(const std::string& name) {
  T record;
  expect_schema(definition(name), name, [&](auto& f) { fields(f, record); });
}

TEST(RecordFields, AreThoseOfTheSchema) {
  expect_schema_of_record<Evidence>("evidence");
  expect_schema_of_record<CellResult>("cell");
  expect_schema_of_record<CaseResult>("case");
  expect_schema_of_record<Mutant>("mutant");
  expect_schema_of_record<BuildRecord>("build");
  expect_schema_of_record<Machine>("machine");
  expect_schema_of_record<GpuMachine>("gpu");
  expect_schema_of_record<Score>("score");
  expect_schema_of_record<EvidenceRef>("evidence_file");
  expect_schema_of_record<store::RunStart>("run_start");
  expect_schema_of_record<store::RunCell>("run_cell");
}

TEST(RecordFields, OfARowOfTheBoardAreThoseOfTheSchema) {
  BoardRow row;
  std::string machine;
  expect_schema(definition("scoreboard").at("properties").at("entries").at("items"), "entries",
                [&](auto& f) { row_fields(f, row, machine); });
  expect_schema(definition("journal_line"), "journal_line", [&](auto& f) { line_fields(f, row); });
}

}  // namespace
}  // namespace assay
