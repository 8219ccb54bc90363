#include "device/simulated_gpu.h"

#include <fmt/format.h>

#include "sim/ptx/parser.h"

namespace assay::device {

void SimulatedGpu::begin_phase(std::uint64_t shuffle_seed, std::uint64_t processor_deadline_ns) {
  device_.set_shuffle_seed(shuffle_seed);
  device_.reset_high_water();
  device_.set_processor_deadline(processor_deadline_ns);
}

sim::ModuleId SimulatedGpu::load_module(std::string_view image) {
  try {
    return device_.load_module(image);
  } catch (const sim::ptx::ParseError& e) {
    throw InvalidModule(fmt::format("PTX line {}, column {}: {}", e.line, e.column, e.what()));
  } catch (const sim::TooLarge& e) {
    throw InvalidModule(e.what());
  }
}

}  // namespace assay::device
