// Selects matrix instructions: which of them are implemented.
#include "sim/operations/tensor_ops.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace assay::sim {

namespace {

std::optional<MmaShape> shape_named(std::string_view name) {
  int size[3] = {};
  const char *at = name.data(), *end = at + name.size();
  for (int d = 0; d < 3; ++d) {
    if (at == end || *at != "mnk"[d]) return std::nullopt;
    const auto [after, error] = std::from_chars(at + 1, end, size[d]);
    if (error != std::errc{}) return std::nullopt;
    at = after;
  }
  if (at != end) return std::nullopt;
  return MmaShape{size[0], size[1], size[2]};
}

std::optional<TensorType> tensor_type_named(std::string_view name) {
  static constexpr std::pair<std::string_view, TensorType> kTypes[] = {
      {"f16", TensorType::f16},   {"bf16", TensorType::bf16}, {"tf32", TensorType::tf32},
      {"e4m3", TensorType::e4m3}, {"e5m2", TensorType::e5m2}, {"f64", TensorType::f64},
      {"s8", TensorType::s8},     {"u8", TensorType::u8},     {"s4", TensorType::s4},
      {"u4", TensorType::u4},     {"b1", TensorType::b1},     {"f32", TensorType::f32},
      {"s32", TensorType::s32},
  };
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

}  // namespace

Qualifiers::Qualifiers(const ptx::Instruction& i)
    : instruction_(i), left_(i.modifiers.begin(), i.modifiers.end()) {}

bool Qualifiers::take(std::string_view name) {
  const auto at = std::find(left_.begin(), left_.end(), name);
  if (at == left_.end()) return false;
  left_.erase(at);
  return true;
}

void Qualifiers::require(std::string_view name) {
  if (!take(name)) refuse();
}

MmaShape Qualifiers::shape() {
  for (const std::string_view name : left_) {
    if (const auto shape = shape_named(name)) {
      take(name);
      return *shape;
    }
  }
  refuse();
}

std::vector<TensorType> Qualifiers::types() {
  std::vector<TensorType> found;
  std::vector<std::string_view> others;
  for (const std::string_view name : left_) {
    if (const auto type = tensor_type_named(name)) {
      found.push_back(*type);
    } else {
      others.push_back(name);
    }
  }
  left_ = std::move(others);
  return found;
}

ptx::Space Qualifiers::space() {
  if (take("global")) return ptx::Space::global;
  if (take("shared") || take("shared::cta")) return ptx::Space::shared;
  return ptx::Space::generic;
}

void Qualifiers::end() const {
  if (!left_.empty()) refuse();
}

void Qualifiers::refuse() const { refuse_tensor(instruction_, "this variant is not supported"); }

OperandForm fragment_form(const ptx::Instruction& i, std::size_t operand, int count,
                          OperandForm list) {
  using Form = OperandForm;
  if (operand < i.operands.size()) {
    const ptx::Operand& fragment = i.operands[operand];
    if (fragment.kind == ptx::Operand::Kind::vector) {
      if (fragment.elements.size() == static_cast<std::size_t>(count)) return list;
    } else if (count == 1) {
      switch (list) {
        case Form::dst32_list: return Form::dst32;
        case Form::src32_list: return Form::src32;
        case Form::dst64_list: return Form::dst64;
        default: return Form::src64;
      }
    }
  }
  refuse_tensor(i, "a fragment of an unexpected number of registers");
}

Selection select_full_warp(Handler run, InstrClass cls, std::vector<OperandForm> operands) {
  Selection s;
  s.run = run;
  s.cls = cls;
  s.operands = std::move(operands);
  s.uses_extra = true;
  s.rendezvous = true;
  s.mask_operand = 255;
  return s;
}

std::optional<Selection> select_tensor(const ptx::Instruction& i) {
  Selection s;
  if (i.opcode == "mma") {
    s = select_mma(i);
  } else if (i.opcode == "wmma") {
    s = !i.modifiers.empty() && i.modifiers.front() == "mma" ? select_mma(i)
                                                             : select_wmma_memory(i);
  } else if (i.opcode == "ldmatrix" || i.opcode == "stmatrix" || i.opcode == "movmatrix") {
    s = select_matrix_move(i);
  } else if (i.opcode == "tcgen05") {
    refuse_tensor(i, "fifth-generation tensor cores (sm_100a) are not simulated");
  } else {
    return std::nullopt;
  }
  if (s.operands.size() != i.operands.size()) {
    refuse_tensor(i, "an unexpected number of operands");
  }
  return s;
}

}  // namespace assay::sim
