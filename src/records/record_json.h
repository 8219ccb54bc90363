// Records of results as JSON objects. A table names each field of a record once, to a visitor:
//
//   f.required(key, value)          always there
//   f.required(key, value, check)   likewise; check(value) is what is wrong with it, or ""
//   f.optional(key, value)          left out if it says nothing, see field_values.h
//   f.optional(key, value, absent)  left out if it equals `absent`
//   f.added(key, value, before)     always written; older files lack it, and mean `before`
//   f.object(key, table)            a nested object whose fields belong to the same record
//
// The visitors here write a record, read it, and list its keys. The tables are in record_fields.h.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "records/field_values.h"
#include "records/strict_json.h"

namespace assay {

// A visitor that lists the keys of a table.
class RecordKeys {
 public:
  void required(const char* key, const auto&...) { required_.push_back(key); }
  void optional(const char* key, const auto&...) { optional_.push_back(key); }
  void added(const char* key, const auto&...) { optional_.push_back(key); }
  void object(const char* key, const auto&) { required_.push_back(key); }

  const std::vector<const char*>& required() const { return required_; }
  const std::vector<const char*>& optional() const { return optional_; }

 private:
  std::vector<const char*> required_, optional_;
};

// A type that has a table: fields(visitor, record).
template <class T>
concept Record = requires(RecordKeys& visitor, T& record) {
  fields(visitor, record);
};

// The object that a table describes; a table is a function of a visitor.
template <class Table>
nlohmann::ordered_json object_json(const Table& table);
template <class Table>
void read_object(const nlohmann::json&, const std::string& place, const Table& table);

template <Record T>
nlohmann::ordered_json record_json(const T& record) {
  return object_json([&](auto& f) { fields(f, record); });
}

// Throws Error with the place if anything is missing, unknown or of the wrong type.
template <Record T>
T record_from(const nlohmann::json& j, const std::string& place) {
  T record;
  read_object(j, place, [&](auto& f) { fields(f, record); });
  return record;
}

template <Record T>
nlohmann::ordered_json value_json(const T& record) {
  return record_json(record);
}

template <Record T>
nlohmann::ordered_json value_json(const std::vector<T>& records) {
  auto list = nlohmann::ordered_json::array();
  for (const T& record : records) list.push_back(record_json(record));
  return list;
}

template <Record T>
void read_value(const StrictObject& o, const char* key, T& to) {
  to = record_from<T>(o.value(key), o.place(key));
}

template <Record T>
void read_value(const StrictObject& o, const char* key, std::vector<T>& to) {
  o.each(key, [&](const nlohmann::json& j, const std::string& place) {
    to.push_back(record_from<T>(j, place));
  });
}

class RecordWriter {
 public:
  explicit RecordWriter(nlohmann::ordered_json& to) : json_(to) {}

  void required(const char* key, const auto& value, const auto&...) {
    json_[key] = value_json(value);
  }
  void optional(const char* key, const auto& value) {
    if (!says_nothing(value)) required(key, value);
  }
  template <class T>
  void optional(const char* key, const std::optional<T>& value) {
    if (value) required(key, *value);
  }
  void optional(const char* key, const auto& value, const auto& absent) {
    if (value != absent) required(key, value);
  }
  void added(const char* key, const auto& value, const auto&) { required(key, value); }
  void object(const char* key, const auto& table) { json_[key] = object_json(table); }

 private:
  nlohmann::ordered_json& json_;
};

class RecordReader {
 public:
  RecordReader(const nlohmann::json& j, const std::string& place, const RecordKeys& keys)
      : object_(j, place, keys.required(), keys.optional()) {}

  void required(const char* key, auto& value) { read_value(object_, key, value); }
  void required(const char* key, auto& value, const auto& check) {
    required(key, value);
    if (const std::string cause = check(value); !cause.empty()) object_.fail(key, cause);
  }
  void optional(const char* key, auto& value) {
    if (object_.has(key)) required(key, value);
  }
  template <class T>
  void optional(const char* key, std::optional<T>& value) {
    if (object_.has(key)) required(key, value.emplace());
  }
  void optional(const char* key, auto& value, const auto& absent) { added(key, value, absent); }
  void added(const char* key, auto& value, const auto& before) {
    if (object_.has(key)) {
      required(key, value);
    } else {
      value = before;
    }
  }
  void object(const char* key, const auto& table) {
    read_object(object_.value(key), object_.place(key), table);
  }

 private:
  StrictObject object_;
};

template <class Table>
nlohmann::ordered_json object_json(const Table& table) {
  auto j = nlohmann::ordered_json::object();
  RecordWriter writer(j);
  table(writer);
  return j;
}

template <class Table>
void read_object(const nlohmann::json& j, const std::string& place, const Table& table) {
  // The same for every record of this table.
  static const RecordKeys keys = [&] {
    RecordKeys list;
    table(list);
    return list;
  }();
  RecordReader reader(j, place, keys);
  table(reader);
}

}  // namespace assay
