// libFuzzer target of the PTX parser: scripts/fuzz.sh. Any text is parsed or refused, and a parsed
// module keeps the promises of ast.h.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "sim/ptx/parser.h"

namespace {

using namespace assay::sim::ptx;

void require(bool condition, const char* promise) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

using Names = std::set<std::string, std::less<>>;

void check(const Operand& operand, const Names& registers) {
  if (operand.kind == Operand::Kind::reg)
    require(registers.contains(operand.name), "registers are declared");
  if (operand.kind == Operand::Kind::address && !operand.elements.empty()) {
    const Operand::Kind base = operand.elements[0].kind;
    require(base == Operand::Kind::reg || base == Operand::Kind::symbol, "addresses have a base");
  }
  for (const Operand& element : operand.elements) check(element, registers);
}

void check(const Variable& variable) {
  require(variable.align != 0 && (variable.align & (variable.align - 1)) == 0,
          "alignments are powers of two");
  require(variable.initial.empty() || variable.initial.size() == variable.bytes,
          "initial values are whole");
  std::size_t end = 0;
  for (const Relocation& relocation : variable.relocations) {
    require(relocation.at >= end, "relocations do not overlap");
    end = relocation.at + relocation.bytes;
    require(end <= variable.bytes, "relocations lie within their variable");
  }
}

void check(const Module& module, const Function& function) {
  Names registers, others;
  for (const Register& r : function.registers) {
    require(registers.insert(r.name).second, "registers have unique names");
    require(r.type != Type::none, "registers have a type");
  }
  for (const Variable& variable : function.locals) {
    check(variable);
    require(others.insert(variable.name).second, "locals have unique names");
  }
  for (const auto& [name, index] : function.labels) {
    require(others.insert(name).second, "labels have unique names");
    require(index <= function.body.size(), "labels lie in the body");
  }
  for (const Instruction& instruction : function.body) {
    require(!instruction.full_name().empty(), "instructions have a name");
    require(!instruction.paired || instruction.operands.size() >= 2, "pairs are two");
    if (instruction.guarded) require(registers.contains(instruction.guard), "guards are declared");
    for (const Operand& operand : instruction.operands) check(operand, registers);
    require(!module.describe(instruction.where).empty(), "places can be described");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Module module = parse(text);
    for (const Variable& variable : module.variables) check(variable);
    for (const Function& function : module.functions) check(module, function);
  } catch (const ParseError& e) {
    require(e.line >= 1 && e.line <= size + 1 && e.column >= 1 && e.column <= size + 1,
            "errors lie within the text");
    for (const char c : std::string_view(e.what()))
      require(c >= ' ' && c <= '~', "messages are printable");
  }
  return 0;
}
