#include "sim/ptx/ast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::sim::ptx {
namespace {

struct TypeInfo {
  const char* name;
  std::size_t bytes;
};

constexpr std::array<TypeInfo, 21> kTypes = {{
    {"none", 0}, {"pred", 0}, {"b8", 1},    {"b16", 2},  {"b32", 4},    {"b64", 8}, {"b128", 16},
    {"u8", 1},   {"u16", 2},  {"u32", 4},   {"u64", 8},  {"s8", 1},     {"s16", 2}, {"s32", 4},
    {"s64", 8},  {"f16", 2},  {"f16x2", 4}, {"bf16", 2}, {"bf16x2", 4}, {"f32", 4}, {"f64", 8},
}};
static_assert(kTypes.size() == static_cast<std::size_t>(Type::f64) + 1);

constexpr std::size_t kMaxCallSites = 8;  // in a description

std::string place(const Module& module, const Location& where) {
  const auto file = module.files.find(where.file);
  if (where.file == 0 || file == module.files.end()) return fmt::format("PTX line {}", where.line);
  const std::string& path = file->second;
  return fmt::format("{}:{}", path.substr(path.find_last_of('/') + 1), where.source_line);
}

}  // namespace

std::size_t size_of(Type type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

const char* to_string(Type type) { return kTypes[static_cast<std::size_t>(type)].name; }

std::optional<Type> type_named(std::string_view name) {
  for (std::size_t i = 1; i < kTypes.size(); ++i) {
    if (name == kTypes[i].name) return static_cast<Type>(i);
  }
  return std::nullopt;
}

const char* to_string(Space space) {
  switch (space) {
    case Space::generic: return "generic";
    case Space::reg: return "reg";
    case Space::sreg: return "sreg";
    case Space::constant: return "const";
    case Space::global: return "global";
    case Space::local: return "local";
    case Space::param: return "param";
    case Space::shared: return "shared";
  }
  return "?";
}

std::string Instruction::full_name() const {
  std::string name = opcode;
  for (const std::string& modifier : modifiers) name += '.' + modifier;
  return name;
}

std::string Module::describe(const Location& where) const {
  std::string out = place(*this, where);
  std::uint32_t site = where.inlined_at;
  for (std::size_t i = 0; site != 0 && site <= call_sites.size(); ++i) {
    if (i == kMaxCallSites) return out + ", ...";
    out += ", inlined at " + place(*this, call_sites[site - 1]);
    site = call_sites[site - 1].inlined_at;
  }
  return out;
}

std::vector<SourceLine> Module::places(const Location& where) const {
  std::vector<SourceLine> all;
  const auto add = [&](const Location& l) {
    const auto file = files.find(l.file);
    const bool known = l.file != 0 && file != files.end();
    all.push_back(known ? SourceLine{file->second, l.source_line} : SourceLine{"", l.line});
  };
  add(where);
  for (std::uint32_t site = where.inlined_at; site != 0 && site <= call_sites.size();
       site = call_sites[site - 1].inlined_at) {
    if (all.size() > kMaxCallSites) break;
    add(call_sites[site - 1]);
  }
  return all;
}

namespace {

void for_each_use(Operand& operand, const std::function<void(std::string&)>& visit) {
  if (operand.kind == Operand::Kind::symbol) visit(operand.name);
  for (Operand& element : operand.elements) for_each_use(element, visit);
}

}  // namespace

void for_each_use(Module& module, const std::function<void(std::string&)>& visit) {
  for (Variable& variable : module.variables) {
    for (Relocation& relocation : variable.relocations) visit(relocation.symbol);
  }
  for (Function& function : module.functions) {
    for (auto& [label, targets] : function.call_targets) std::ranges::for_each(targets, visit);
    for (Instruction& instruction : function.body) {
      for (Operand& operand : instruction.operands) for_each_use(operand, visit);
    }
  }
}

}  // namespace assay::sim::ptx
