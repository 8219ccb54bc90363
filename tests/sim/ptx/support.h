// Helpers to write PTX texts and to inspect the parsed result.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "sim/ptx/parser.h"

namespace assay::sim::ptx {

inline std::string module_text(std::string_view content) {
  return ".version 9.0\n.target sm_80\n.address_size 64\n" + std::string(content);
}

inline Module parse_module(std::string_view content) { return parse(module_text(content)); }

// A function with the body `statements` and a few registers. The statements begin in line 7.
inline std::string function_text(std::string_view statements) {
  return module_text(
      ".visible .entry k(.param .u64 k_param_0)\n{\n"
      ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<99>; .reg .b64 %rd<9>; .reg .f32 "
      "%f<99>;\n" +
      std::string(statements) + "\n}\n");
}

inline Function parse_body(std::string_view statements) {
  return parse(function_text(statements)).functions.at(0);
}

inline Instruction parse_instruction(std::string_view statement) {
  return parse_body(statement).body.at(0);
}

inline Operand parse_operand(std::string_view operand) {
  return parse_instruction("foo " + std::string(operand) + ";").operands.at(0);
}

// "3:7: expected ...", or "no error".
inline std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const ParseError& e) {
    const std::string what = e.what();
    return std::to_string(e.line) + ":" + std::to_string(e.column) + what.substr(what.find(": "));
  }
  return "no error";
}

inline std::string error_in_module(std::string_view content) {
  return error_of(module_text(content));
}
inline std::string error_in_body(std::string_view statements) {
  return error_of(function_text(statements));
}

// An operand or instruction as nvcc writes it, but without blanks.
inline std::string render(const Operand& operand) {
  std::vector<std::string> elements;
  for (const Operand& element : operand.elements) elements.push_back(render(element));
  const std::string row = fmt::format("{}", fmt::join(elements, ","));
  const std::string offset = operand.offset == 0 ? "" : fmt::format("+{}", operand.offset);
  switch (operand.kind) {
    case Operand::Kind::reg:
    case Operand::Kind::special: return (operand.negated ? "!" : "") + operand.name;
    case Operand::Kind::integer: return fmt::to_string(static_cast<std::int64_t>(operand.value));
    case Operand::Kind::real32: return fmt::format("0f{:08X}", operand.value);
    case Operand::Kind::real64: return fmt::format("0d{:016X}", operand.value);
    case Operand::Kind::symbol: return operand.name + offset;
    case Operand::Kind::address:
      if (elements.empty()) return fmt::format("[{}]", operand.offset);
      elements[0] += offset;
      return fmt::format("[{}]", fmt::join(elements, ","));
    case Operand::Kind::vector: return fmt::format("{{{}}}", row);
    case Operand::Kind::sink: return "_";
    case Operand::Kind::list: return fmt::format("({})", row);
  }
  return "?";
}

inline std::string render(const Instruction& instruction) {
  std::string out;
  if (instruction.guarded) {
    out = fmt::format("@{}{}", instruction.guard_negated ? "!" : "", instruction.guard);
  }
  out += instruction.full_name();
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    if (i > 0) out += i == 1 && instruction.paired ? "|" : ",";
    out += render(instruction.operands[i]);
  }
  return out + ";";
}

}  // namespace assay::sim::ptx
