#include "records/machine_kind.h"

#include <fmt/format.h>

namespace assay {

std::string kind_of(const Machine& machine) {
  return fmt::format("{}, {} core{}", machine.cpu.empty() ? "unknown" : machine.cpu, machine.cores,
                     machine.cores == 1 ? "" : "s");
}

}  // namespace assay
