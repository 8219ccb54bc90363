// A GPU's state as JSON. Header-only, because the device process writes what the harness reads, and
// the two share no library.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "assay/gpu_state.h"

namespace assay {

// null if the value is absent.
template <class T>
nlohmann::ordered_json json_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// Throws nlohmann::json::exception if the key is missing or its value has another type.
template <class T>
std::optional<T> value_or_absent(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

inline nlohmann::ordered_json to_json(const GpuState& state) {
  return {{"sm_mhz", json_or_null(state.sm_mhz)},
          {"memory_mhz", json_or_null(state.memory_mhz)},
          {"temperature_c", json_or_null(state.temperature_c)},
          {"throttle_reasons", json_or_null(state.throttle_reasons)},
          {"violation_ns", state.violation_ns}};
}

// Throws as value_or_absent() does.
inline GpuState gpu_state_from(const nlohmann::json& object) {
  GpuState state;
  state.sm_mhz = value_or_absent<double>(object, "sm_mhz");
  state.memory_mhz = value_or_absent<double>(object, "memory_mhz");
  state.temperature_c = value_or_absent<double>(object, "temperature_c");
  state.throttle_reasons = value_or_absent<std::vector<std::string>>(object, "throttle_reasons");
  state.violation_ns = object.at("violation_ns").get<std::map<std::string, std::uint64_t>>();
  return state;
}

}  // namespace assay
