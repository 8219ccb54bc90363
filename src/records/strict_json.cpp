#include "records/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "assay/error.h"

namespace assay {

using nlohmann::json;

void fail_at(const std::string& pointer, const std::string& cause) {
  throw Error(fmt::format("at {}: {}", pointer.empty() ? "/" : pointer, cause));
}

std::optional<double> number_in(const json& j) {
  if (j.is_number()) return j.get<double>();
  if (!j.is_string()) return std::nullopt;
  const auto& text = j.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return HUGE_VAL;
  if (text == "-inf") return -HUGE_VAL;
  return std::nullopt;
}

namespace {

bool is_among(std::span<const char* const> keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

StrictObject::StrictObject(const json& j, std::string pointer,
                           std::span<const char* const> required,
                           std::span<const char* const> optional)
    : json_(j), pointer_(std::move(pointer)) {
  if (!j.is_object()) fail_at(pointer_, "expected an object");
  for (const char* key : required) {
    if (!j.contains(key)) fail_at(pointer_, fmt::format("{} is missing", key));
  }
  for (auto it = j.begin(); it != j.end(); ++it) {
    if (!is_among(required, it.key()) && !is_among(optional, it.key()))
      fail_at(pointer_ + '/' + it.key(), "unknown");
  }
}

StrictObject StrictObject::object(const char* key, Keys required, Keys optional) const {
  return {value(key), place(key), required, optional};
}

void StrictObject::fail(const char* key, const std::string& cause) const {
  fail_at(place(key), cause);
}

const std::string& StrictObject::text(const char* key) const {
  if (!value(key).is_string()) fail(key, "expected a string");
  return value(key).get_ref<const std::string&>();
}

const std::string& StrictObject::name(const char* key) const {
  if (text(key).empty()) fail(key, "may not be empty");
  return text(key);
}

std::string StrictObject::optional_text(const char* key) const {
  return has(key) ? text(key) : std::string();
}

bool StrictObject::flag(const char* key) const {
  if (!value(key).is_boolean()) fail(key, "expected true or false");
  return value(key).get<bool>();
}

double StrictObject::number(const char* key) const {
  const auto number = number_in(value(key));
  if (!number) fail(key, "expected a number");
  return *number;
}

std::optional<double> StrictObject::number_or_null(const char* key) const {
  if (value(key).is_null()) return std::nullopt;
  return number(key);
}

std::int64_t StrictObject::count(const char* key) const {
  const json& j = value(key);
  if (!j.is_number_integer() || j.get<std::int64_t>() < 0)
    fail(key, "expected a whole number, 0 or more");
  return j.get<std::int64_t>();
}

std::uint64_t StrictObject::seed(const char* key) const {
  const std::string& digits = text(key);
  std::uint64_t seed = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, seed);
  if (error != std::errc() || stop != end)
    fail(key, "expected an unsigned 64-bit number as a string");
  return seed;
}

Verdict StrictObject::verdict(const char* key) const {
  const auto verdict = verdict_from_code(text(key));
  if (!verdict) fail(key, fmt::format("unknown verdict \"{}\"", text(key)));
  return *verdict;
}

Device StrictObject::device(const char* key) const {
  const auto device = device_from(text(key));
  if (!device) fail(key, fmt::format("unknown device \"{}\"", text(key)));
  return *device;
}

Interval StrictObject::interval(const char* key) const {
  const json& ends = list(key);
  const auto low = ends.size() == 2 ? number_in(ends[0]) : std::nullopt;
  const auto high = ends.size() == 2 ? number_in(ends[1]) : std::nullopt;
  if (!low || !high) fail(key, "expected two numbers");
  return {*low, *high};
}

const json& StrictObject::list(const char* key) const {
  if (!value(key).is_array()) fail(key, "expected a list");
  return value(key);
}

}  // namespace assay
