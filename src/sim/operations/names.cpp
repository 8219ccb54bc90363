#include "sim/operations/names.h"

namespace assay::sim {

Names::Names(const ptx::Function& f, const SymbolTable& module) : module_(module) {
  registers_.reserve(f.registers.size());
  for (const ptx::Register& r : f.registers) registers_.emplace(r.name, r.type);
}

ptx::Type Names::register_type(const std::string& name) const {
  const auto found = registers_.find(name);
  return found == registers_.end() ? ptx::Type::none : found->second;
}

const Symbol* Names::symbol(const std::string& name) const {
  if (const auto own = own_.find(name); own != own_.end()) return &own->second;
  const auto found = module_.find(name);
  return found == module_.end() ? nullptr : &found->second;
}

}  // namespace assay::sim
