#include "check/report_json.h"

#include <nlohmann/json.hpp>

#include "util/text.h"

namespace assay::check {

std::string safe(const std::string& text, std::size_t lines) {
  constexpr std::size_t kColumns = 1000;
  return printable(text, lines, kColumns);
}

nlohmann::ordered_json faults_json(const CellResult& cell) {
  auto faults = nlohmann::ordered_json::array();
  for (const std::string& fault : cell.faults) faults.push_back(safe(fault, 3));
  for (const Mutant& m : cell.mutants) {
    if (m.verdict == TestVerdict::house_fault) faults.push_back(safe(m.reason, 1));
  }
  return faults;
}

}  // namespace assay::check
