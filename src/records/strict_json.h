// Reads JSON that must be exactly what this program writes. For documents too large for a general
// validator: whatever a schema would refuse is refused while reading.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "assay/results.h"

namespace assay {

// Throws Error, "at /entries/3/score/total: expected a number"; the pointer "" is the document.
[[noreturn]] void fail_at(const std::string& pointer, const std::string& cause);

// Accepts "nan", "inf" and "-inf" too. Absent if it is not a number.
std::optional<double> number_in(const nlohmann::json&);

// An object of a document. Every error is an Error that begins with its place, a JSON pointer. The
// JSON must outlive it.
class StrictObject {
 public:
  using Keys = std::initializer_list<const char*>;

  // Every required key must be present, and no key that is neither required nor optional.
  StrictObject(const nlohmann::json&, std::string pointer, std::span<const char* const> required,
               std::span<const char* const> optional);
  StrictObject(const nlohmann::json& j, std::string pointer, Keys required, Keys optional = {})
      : StrictObject(j, std::move(pointer), std::span(required.begin(), required.size()),
                     std::span(optional.begin(), optional.size())) {}
  StrictObject object(const char* key, Keys required, Keys optional = {}) const;

  bool has(const char* key) const { return json_.contains(key); }
  const std::string& text(const char* key) const;
  const std::string& name(const char* key) const;  // a text that is not empty
  std::string optional_text(const char* key) const;
  bool flag(const char* key) const;
  double number(const char* key) const;  // see number_in()
  std::optional<double> number_or_null(const char* key) const;
  std::int64_t count(const char* key) const;  // a whole number, 0 or more
  std::uint64_t seed(const char* key) const;  // written as a string of digits
  Verdict verdict(const char* key) const;
  Device device(const char* key) const;
  Interval interval(const char* key) const;

  // Calls read(element, its pointer) for all elements of a list.
  template <class Read>
  void each(const char* key, Read read) const {
    const nlohmann::json& elements = list(key);
    for (std::size_t i = 0; i < elements.size(); ++i)
      read(elements[i], place(key) + '/' + std::to_string(i));
  }

  const nlohmann::json& value(const char* key) const { return *json_.find(key); }
  std::string place(const char* key) const { return pointer_ + '/' + key; }
  [[noreturn]] void fail(const char* key, const std::string& cause) const;

 private:
  const nlohmann::json& list(const char* key) const;

  const nlohmann::json& json_;
  std::string pointer_;
};

}  // namespace assay
