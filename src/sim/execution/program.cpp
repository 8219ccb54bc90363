#include "sim/execution/program.h"

#include <algorithm>

namespace assay::sim {

const Code& Program::code_of(std::uint32_t pc) const {
  const auto after = std::upper_bound(
      codes.begin(), codes.end(), pc,
      [](std::uint32_t at, const std::unique_ptr<Code>& code) { return at < code->first_pc; });
  return **std::prev(after);
}

const InstrInfo& Program::info_of(std::uint32_t pc) const {
  const Code& code = code_of(pc);
  return code.info.at(pc - code.first_pc);
}

std::string Program::place(std::uint32_t pc) const { return module->describe(info_of(pc).where); }

std::vector<SourceLine> Program::places(std::uint32_t pc) const {
  return module->places(info_of(pc).where);
}

}  // namespace assay::sim
