#include "sim/ptx/instruction.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <utility>

#include "sim/ptx/constant.h"
#include "sim/ptx/special_register.h"

namespace assay::sim::ptx {
namespace {

constexpr int kMaxOperandDepth = 4;  // of nested lists, vectors and addresses
constexpr std::size_t kMaxModifiers = 32;
constexpr std::uint64_t kWarpSize = 32;  // the value of WARP_SZ

Operand operand_of(Operand::Kind kind) {
  Operand operand;
  operand.kind = kind;
  return operand;
}

}  // namespace

void InstructionParser::guard(Instruction& instruction) {
  if (!cursor_.accept('@')) return;
  instruction.guarded = true;
  instruction.guard_negated = cursor_.accept('!');
  const Token name = cursor_.expect(Token::Kind::word, "a predicate after '@'");
  const Symbol* symbol = scopes_.find(name.text);
  if (symbol == nullptr || !symbol->is_register) {
    Cursor::fail(name, fmt::format("nothing declares the register {}", describe(name)));
  }
  instruction.guard = symbol->name;
}

void InstructionParser::parse(const Token& opcode, Instruction& instruction) {
  if (opcode.text.front() < 'a' || opcode.text.front() > 'z') {
    Cursor::fail(opcode, fmt::format("expected an instruction, found {}", describe(opcode)));
  }
  instruction.opcode = opcode.text;
  std::array<std::string_view, kMaxModifiers> modifiers;
  std::size_t count = 0;
  while (cursor_.at(Token::Kind::dot_word)) {
    if (count == kMaxModifiers) Cursor::fail(cursor_.token(), "more than 32 modifiers");
    modifiers[count++] = cursor_.take().text;
  }
  instruction.modifiers.assign(modifiers.begin(), modifiers.begin() + count);
  is_call_ = opcode.text == "call";
  operands(instruction);
  for (const LabelUse& use : label_uses_) {
    scopes_.refer_to_label(use.at, &instruction.operands[use.operand].name);
  }
}

void InstructionParser::operands(Instruction& instruction) {
  operands_.clear();
  label_uses_.clear();
  if (cursor_.accept(';')) return;
  operands_.push_back(operand(0));
  if (cursor_.accept('|')) {
    instruction.paired = true;
    operands_.push_back(operand(0));
  }
  while (cursor_.accept(',')) operands_.push_back(operand(0));
  cursor_.expect(';', "or ',' after an operand");
  instruction.operands.assign(std::make_move_iterator(operands_.begin()),
                              std::make_move_iterator(operands_.end()));
}

Operand InstructionParser::operand(int depth) {
  const Token& token = cursor_.token();
  if (token.kind == Token::Kind::word) return name(depth);
  if (token.is('[')) return address(depth);
  if (begins_constant(token)) return constant();
  if (token.is('!')) return negated();
  if (token.is('{')) {
    Operand vector = operand_of(Operand::Kind::vector);
    elements(vector, '}', depth);
    return vector;
  }
  if (token.is('(')) {
    if (!is_call_) return constant();
    Operand list = operand_of(Operand::Kind::list);
    elements(list, ')', depth);
    return list;
  }
  cursor_.expected("an operand");
}

// Parses from the opening bracket, where the cursor is, to the closing one.
void InstructionParser::elements(Operand& into, char close, int depth) {
  const Token open = cursor_.take();
  if (depth == kMaxOperandDepth) Cursor::fail(open, "operands are nested too deeply");
  if (cursor_.accept(close)) return;
  do into.elements.push_back(operand(depth + 1));
  while (cursor_.accept(','));
  cursor_.expect(close, "or ',' after an element");
}

Operand InstructionParser::name(int depth) {
  const Token at = cursor_.take();
  if (at.text == "_") return operand_of(Operand::Kind::sink);
  if (const Symbol* symbol = scopes_.find(at.text)) {
    Operand operand = operand_of(symbol->is_register ? Operand::Kind::reg : Operand::Kind::symbol);
    operand.name = symbol->name;
    if (!symbol->is_register) {
      operand.offset = parse_offset(cursor_);
    } else if (cursor_.at(Token::Kind::dot_word)) {
      selector(operand);
    }
    return operand;
  }
  if (is_special_register(at.text)) return special_register(at);
  if (at.text == "WARP_SZ") {
    Operand operand = operand_of(Operand::Kind::integer);
    operand.value = kWarpSize;
    return operand;
  }
  if (depth == 0) {
    label_uses_.push_back({operands_.size(), at});
  } else if (!scopes_.module_has(at.text)) {
    Cursor::fail(at, fmt::format("nothing declares {}", describe(at)));
  }
  Operand operand = operand_of(Operand::Kind::symbol);
  operand.name = at.text;
  operand.offset = parse_offset(cursor_);
  return operand;
}

// "%r1.b2", "%r1.h0"
void InstructionParser::selector(Operand& operand) {
  const Token at = cursor_.take();
  const bool known =
      at.text.size() == 2 && ((at.text[0] == 'b' && at.text[1] >= '0' && at.text[1] <= '3') ||
                              (at.text[0] == 'h' && at.text[1] >= '0' && at.text[1] <= '1'));
  if (!known)
    Cursor::fail(at, fmt::format("expected a part of a register, found {}", describe(at)));
  at.text.copy(operand.selector, 2);
}

Operand InstructionParser::special_register(const Token& at) {
  Operand operand = operand_of(Operand::Kind::special);
  operand.name = at.text;
  if (!cursor_.at(Token::Kind::dot_word)) return operand;
  const Token component = cursor_.take();
  if (component.text.size() != 1 ||
      std::string_view("xyzw").find(component.text) == std::string_view::npos) {
    Cursor::fail(component, fmt::format("expected a component of {}, found {}", describe(at),
                                        describe(component)));
  }
  operand.name.append(1, '.').append(component.text);
  return operand;
}

Operand InstructionParser::negated() {
  cursor_.take();
  const Token at = cursor_.expect(Token::Kind::word, "a predicate after '!'");
  const Symbol* symbol = scopes_.find(at.text);
  if (symbol == nullptr || !symbol->is_register) {
    Cursor::fail(at, fmt::format("nothing declares the register {}", describe(at)));
  }
  Operand operand = operand_of(Operand::Kind::reg);
  operand.negated = true;
  operand.name = symbol->name;
  return operand;
}

Operand InstructionParser::address(int depth) {
  const Token open = cursor_.take();
  if (depth == kMaxOperandDepth) Cursor::fail(open, "operands are nested too deeply");
  Operand address = operand_of(Operand::Kind::address);
  if (!cursor_.at(Token::Kind::word)) {
    address.offset = static_cast<std::int64_t>(constant().value);
    cursor_.expect(']', "after an address");
    return address;
  }
  const Token at = cursor_.token();
  Operand base = name(depth + 1);
  if (base.kind != Operand::Kind::reg && base.kind != Operand::Kind::symbol) {
    Cursor::fail(at,
                 fmt::format("expected a register or variable as address, found {}", describe(at)));
  }
  std::swap(address.offset, base.offset);
  if (base.kind == Operand::Kind::reg) address.offset = parse_offset(cursor_);
  address.elements.push_back(std::move(base));
  while (cursor_.accept(',')) address.elements.push_back(operand(depth + 1));
  cursor_.expect(']', "after an address");
  return address;
}

Operand InstructionParser::constant() {
  const Constant constant = parse_constant(cursor_);
  Operand operand;
  switch (constant.kind) {
    case Constant::Kind::integer: operand.kind = Operand::Kind::integer; break;
    case Constant::Kind::real32: operand.kind = Operand::Kind::real32; break;
    case Constant::Kind::real64: operand.kind = Operand::Kind::real64; break;
  }
  operand.value = constant.bits;
  return operand;
}

}  // namespace assay::sim::ptx
