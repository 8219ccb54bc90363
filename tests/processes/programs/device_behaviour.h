// What the scripted device does. The harness chooses by the limit on a launch's instructions.
#pragma once

#include <cstdint>
#include <cstring>

#include "wire/device.h"

namespace assay::testing {

enum class DeviceBehaviour : std::uint64_t {
  exits_with_a_word,
  crashes,
  is_silent,
  answers_twice,
  reports_garbage,  // endless texts, an input that does not exist
  reports_figures,  // all fields differ; testing::figures() has the values
};

// A report in which no two fields are equal.
inline device::Report figures() {
  device::Report report;
  std::uint64_t next = 1000;
  for (std::uint64_t& word : report.counters.word) word = next++;
  report.to_device_bytes = 1;
  report.to_host_bytes = 2;
  report.within_bytes = 3;
  report.transfers = 4;
  report.peak_bytes = 5;
  report.findings = 6;
  report.over_limit = 7;
  std::strcpy(report.first_finding, "a finding");
  std::strcpy(report.unsupported, "a lack");
  std::strcpy(report.invalid_ptx, "no PTX");
  return report;
}

}  // namespace assay::testing
