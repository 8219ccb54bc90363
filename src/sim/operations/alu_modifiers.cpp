#include "sim/operations/alu_modifiers.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::sim {
namespace {

constexpr std::array<std::pair<std::string_view, AluType>, 21> kTypes{{
    {"pred", AluType::pred},   {"b16", AluType::b16},     {"b32", AluType::b32},
    {"b64", AluType::b64},     {"u8", AluType::u8},       {"u16", AluType::u16},
    {"u32", AluType::u32},     {"u64", AluType::u64},     {"s8", AluType::s8},
    {"s16", AluType::s16},     {"s32", AluType::s32},     {"s64", AluType::s64},
    {"u16x2", AluType::u16x2}, {"s16x2", AluType::s16x2}, {"f16", AluType::f16},
    {"f16x2", AluType::f16x2}, {"bf16", AluType::bf16},   {"bf16x2", AluType::bf16x2},
    {"tf32", AluType::tf32},   {"f32", AluType::f32},     {"f64", AluType::f64},
}};

}  // namespace

bool is_integer(AluType type) { return type >= AluType::u8 && type <= AluType::s64; }
bool is_signed(AluType type) { return type >= AluType::s8 && type <= AluType::s64; }

int bits_of(AluType type) {
  switch (type) {
    case AluType::u8:
    case AluType::s8: return 8;
    case AluType::b16:
    case AluType::u16:
    case AluType::s16:
    case AluType::f16:
    case AluType::bf16: return 16;
    case AluType::b64:
    case AluType::u64:
    case AluType::s64:
    case AluType::f64: return 64;
    case AluType::none:
    case AluType::pred: return 0;
    default: return 32;
  }
}

Modifiers::Modifiers(const ptx::Instruction& instruction) : instruction_(instruction) {
  for (const std::string& word : instruction.modifiers) {
    const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                     [&](const auto& entry) { return entry.first == word; });
    if (found == kTypes.end()) {
      words_.push_back(word);
    } else {
      types_.push_back(found->second);
    }
  }
}

AluType Modifiers::type(std::size_t index) const {
  return index < types_.size() ? types_[index] : AluType::none;
}

bool Modifiers::take(std::string_view word) {
  const auto found = std::find(words_.begin(), words_.end(), word);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

std::optional<Rounding> Modifiers::take_rounding() {
  if (take("rn")) return Rounding::nearest_even;
  if (take("rz")) return Rounding::toward_zero;
  if (take("rm")) return Rounding::down;
  if (take("rp")) return Rounding::up;
  return std::nullopt;
}

std::optional<Rounding> Modifiers::take_integer_rounding() {
  if (take("rni")) return Rounding::nearest_even;
  if (take("rzi")) return Rounding::toward_zero;
  if (take("rmi")) return Rounding::down;
  if (take("rpi")) return Rounding::up;
  return std::nullopt;
}

void Modifiers::unsupported() const {
  throw Unsupported("instruction " + instruction_.full_name() + " is not supported");
}

Selection Modifiers::finish(Selection selection, std::size_t types) const {
  if (selection.run == nullptr || !words_.empty() || types_.size() != types ||
      selection.operands.size() != instruction_.operands.size()) {
    unsupported();
  }
  for (std::size_t i = 0; i < instruction_.operands.size(); ++i) {
    const bool predicate = selection.operands[i] == OperandForm::src_pred;
    if (instruction_.operands[i].negated && !predicate) unsupported();
  }
  return selection;
}

Selection make_selection(Handler run, std::span<const OperandForm> operands, InstrClass cls,
                         int flops, std::uint64_t imm) {
  Selection selection;
  selection.run = run;
  selection.cls = cls;
  selection.flops = static_cast<std::uint8_t>(flops);
  selection.imm = imm;
  selection.operands.assign(operands.begin(), operands.end());
  return selection;
}

}  // namespace assay::sim
