// Turns operands into values. Literals, special registers and addresses of symbols become constants
// in slots. Registers whose width differs from what the instruction reads or writes are converted.
#include <bit>

#include "sim/decode/function_decoder.h"
#include "sim/execution/special.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

using ptx::Operand;
using ptx::Type;
using OpKind = ptx::Operand::Kind;
using InitKind = SlotInit::Kind;

namespace {

constexpr std::string_view kExplicitCluster = "%is_explicit_cluster";  // the predicate among them

ValueClass class_of(Type t) {
  switch (bits_of(t)) {
    case 1: return ValueClass::predicate;
    case 64: return ValueClass::b64;
    case 128: return ValueClass::b128;
    default: return ValueClass::b32;
  }
}

Type first_type(const ptx::Instruction& in) {
  for (const std::string& m : in.modifiers) {
    if (const Type t = type_named(m); t != Type::none) return t;
  }
  return Type::none;
}

// The type of a literal in this position.
Type literal_type(const ptx::Instruction& in, std::size_t index) {
  if (in.opcode == "wmma") return Type::b32;  // the stride is the only literal
  const Type t = last_type(in);
  // The addend of mad.wide is twice as wide.
  if (in.opcode == "mad" && index == 3 && has(in, "wide")) {
    return bits_of(t) == 16 ? Type::b32 : Type::b64;
  }
  return t;
}

std::uint32_t literal32(const Operand& o, Type type) {
  if (o.kind == OpKind::real64 && type != Type::f64) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.value)));
  }
  const auto bits = static_cast<std::uint32_t>(o.value);
  return bits_of(type) == 16 ? bits & 0xffffu : bits;
}

std::uint64_t literal64(const Operand& o, Type type) {
  if (o.kind == OpKind::real32 && type == Type::f64) {
    return std::bit_cast<std::uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(o.value))));
  }
  return o.value;
}

bool is_literal(const Operand& o) {
  return o.kind == OpKind::integer || o.kind == OpKind::real32 || o.kind == OpKind::real64;
}

}  // namespace

std::uint32_t FunctionDecoder::fixed(ValueClass cls, InitKind kind, std::uint64_t value) {
  const auto [at, added] = fixed_.try_emplace({cls, kind, value}, 0);
  if (added) {
    at->second = static_cast<std::uint32_t>(draft_.values.size());
    draft_.values.push_back({cls, true, false, true, {kind, 0, value}});
  }
  return at->second;
}

std::uint32_t FunctionDecoder::temporary(ValueClass cls) {
  draft_.values.push_back({cls, false, true, false, {}});
  return static_cast<std::uint32_t>(draft_.values.size() - 1);
}

// A place for unused results.
std::uint32_t FunctionDecoder::scratch(ValueClass cls) {
  const auto c = static_cast<std::size_t>(cls);
  if (!has_scratch_[c]) {
    has_scratch_[c] = true;
    scratch_[c] = static_cast<std::uint32_t>(draft_.values.size());
    draft_.values.push_back({cls, true, false, false, {}});
  }
  return scratch_[c];
}

std::uint32_t FunctionDecoder::register_value(const std::string& name) {
  const auto [at, added] = registers_.try_emplace(name, 0);
  if (added) {
    at->second = static_cast<std::uint32_t>(draft_.values.size());
    draft_.values.push_back({class_of(names_.register_type(name)), false, false, false, {}});
  }
  return at->second;
}

std::uint32_t FunctionDecoder::narrowed(std::uint32_t value64, std::uint64_t mask) {
  const std::uint32_t to = temporary(ValueClass::b32);
  hidden(narrow64, Spread::Kind::copy, to, value64, mask);
  return to;
}

std::uint32_t FunctionDecoder::special(const ptx::Instruction& in, const std::string& name,
                                       bool wide) {
  std::uint32_t value = 0;
  bool is_wide_value = false;
  if (is_clock(name)) {
    is_wide_value = is_wide_clock(name);
    value = temporary(is_wide_value ? ValueClass::b64 : ValueClass::b32);
    hidden(clock_handler(name), Spread::Kind::none, value, value, 0);
  } else if (const auto init = special_register(name)) {
    is_wide_value = is_wide(*init);
    uses_reserved_shared_ |= static_cast<Special>(init->value) == Special::reserved_shared &&
                             init->kind == InitKind::other;
    value = fixed(is_wide_value ? ValueClass::b64 : ValueClass::b32, init->kind, init->value);
  } else {
    throw_unsupported(in, "the special register " + name);
  }
  if (wide == is_wide_value) return value;
  if (!wide) return narrowed(value, 0xffffffffu);
  const std::uint32_t to = temporary(ValueClass::b64);
  hidden(widen_unsigned, Spread::Kind::copy, to, value, 0);
  return to;
}

std::uint32_t FunctionDecoder::symbol_address(const ptx::Instruction& in, const std::string& name,
                                              std::int64_t offset, bool wide) {
  const Symbol* s = names_.symbol(name);
  if (s == nullptr) throw_unsupported(in, name + ", which is not defined,");
  const std::uint64_t value = s->value + static_cast<std::uint64_t>(offset);
  switch (s->kind) {
    case Symbol::Kind::local: {
      const std::uint32_t at = fixed(ValueClass::b64, InitKind::local_address, value);
      return wide ? at : narrowed(at, 0xffffffffu);
    }
    case Symbol::Kind::rows: throw_unsupported(in, "the address of the call's parameter " + name);
    default:
      return wide ? fixed(ValueClass::b64, InitKind::value64, value)
                  : fixed(ValueClass::b32, InitKind::value32, static_cast<std::uint32_t>(value));
  }
}

std::uint32_t FunctionDecoder::read32(const ptx::Instruction& in, const Operand& o, Type type) {
  if (is_literal(o)) return fixed(ValueClass::b32, InitKind::value32, literal32(o, type));
  if (o.kind == OpKind::special) return special(in, o.name, false);
  if (o.kind == OpKind::symbol) return symbol_address(in, o.name, o.offset, false);
  if (o.kind != OpKind::reg) throw_unsupported(in, "this form of operand");
  const Type t = names_.register_type(o.name);
  if (class_of(t) == ValueClass::b32) return register_value(o.name);
  if (class_of(t) != ValueClass::b64)
    throw_unsupported(in, "an operand of type " + std::string(to_string(t)));
  const unsigned bits = bits_of(type);
  return narrowed(register_value(o.name),
                  bits == 0 || bits >= 32 ? 0xffffffffu : (1ull << bits) - 1);
}

std::uint32_t FunctionDecoder::read64(const ptx::Instruction& in, const Operand& o, Type type) {
  if (is_literal(o)) return fixed(ValueClass::b64, InitKind::value64, literal64(o, type));
  if (o.kind == OpKind::special) return special(in, o.name, true);
  if (o.kind == OpKind::symbol) return symbol_address(in, o.name, o.offset, true);
  if (o.kind == OpKind::reg && class_of(names_.register_type(o.name)) == ValueClass::b64) {
    return register_value(o.name);
  }
  throw_unsupported(in, "an operand that is not of 64 bits");
}

std::uint32_t FunctionDecoder::read_predicate(const ptx::Instruction& in, const Operand& o) {
  if (o.kind == OpKind::integer) {
    return fixed(ValueClass::predicate, InitKind::predicate, o.value != 0 ? 0xffffffffu : 0u);
  }
  if (o.kind == OpKind::special && o.name == kExplicitCluster) {
    const std::uint32_t to = temporary(ValueClass::predicate);
    hidden(set_if_not_zero, Spread::Kind::none, to, special(in, o.name, false), 0);
    return to;
  }
  if (o.kind != OpKind::reg || names_.register_type(o.name) != Type::pred) {
    throw_unsupported(in, "an operand that is no predicate");
  }
  const std::uint32_t value = register_value(o.name);
  if (!o.negated) return value;
  const std::uint32_t to = temporary(ValueClass::predicate);
  hidden(complement, Spread::Kind::bits, to, value, 0);
  return to;
}

std::uint32_t FunctionDecoder::write(const ptx::Instruction& in, const Operand& o, ValueClass cls) {
  if (o.kind == OpKind::sink) return scratch(cls);
  if (o.kind != OpKind::reg) throw_unsupported(in, "this form of destination");
  const ValueClass have = class_of(names_.register_type(o.name));
  if (have == cls) return register_value(o.name);
  if (cls != ValueClass::b32 || have != ValueClass::b64) {
    throw_unsupported(in, "a destination of another width");
  }
  const std::uint32_t from = temporary(cls);
  const Type t = in.opcode == "cvt" ? first_type(in) : last_type(in);
  extensions_.push_back({register_value(o.name), from, is_signed(t)});
  return from;
}

// The register's value. The offset goes to the instruction's imm, or is added if imm is taken.
std::uint32_t FunctionDecoder::address(const ptx::Instruction& in, const Operand& o, bool wide,
                                       FlowSelection& selection, bool offset_taken) {
  const Operand* base = &o;
  std::int64_t offset = 0;
  if (o.kind == OpKind::address) {
    offset = o.offset;
    base = o.elements.empty() ? nullptr : &o.elements[0];
    if (base == nullptr) offset += static_cast<std::int64_t>(o.value);
  }
  std::uint32_t value = 0;
  if (base == nullptr || is_literal(*base)) {
    if (base != nullptr) offset += static_cast<std::int64_t>(base->value);
    value = wide ? fixed(ValueClass::b64, InitKind::value64, 0)
                 : fixed(ValueClass::b32, InitKind::value32, 0);
  } else if (base->kind == OpKind::symbol) {
    value = symbol_address(in, base->name, offset + base->offset, wide);
    offset = 0;
  } else if (base->kind == OpKind::reg) {
    const ValueClass have = class_of(names_.register_type(base->name));
    value = register_value(base->name);
    if (have == ValueClass::b64 && !wide) {
      value = narrowed(value, 0xffffffffu);
    } else if (have == ValueClass::b32 && wide) {
      const std::uint32_t to = temporary(ValueClass::b64);
      hidden(widen_unsigned, Spread::Kind::copy, to, value, 0);
      value = to;
    } else if (have != ValueClass::b32 && have != ValueClass::b64) {
      throw_unsupported(in, "an address that is no integer");
    }
  } else {
    throw_unsupported(in, "this form of address");
  }
  if (!offset_taken) {
    selection.imm = static_cast<std::uint64_t>(offset);
  } else if (offset != 0) {
    const std::uint32_t to = temporary(wide ? ValueClass::b64 : ValueClass::b32);
    hidden(wide ? add_imm64 : add_imm32, Spread::Kind::upwards, to, value,
           static_cast<std::uint64_t>(offset));
    value = to;
  }
  return value;
}

void FunctionDecoder::bind(const ptx::Instruction& in, const Operand& o, OperandForm form,
                           std::size_t index, std::vector<Bound>& out, FlowSelection& selection) {
  const Type type = literal_type(in, index);
  const auto list = [&](const auto& element) {
    if (o.kind != OpKind::vector) return element(o);
    for (const Operand& e : o.elements) element(e);
  };
  switch (form) {
    case OperandForm::dst32: out.push_back({write(in, o, ValueClass::b32), true}); break;
    case OperandForm::dst64: out.push_back({write(in, o, ValueClass::b64), true}); break;
    case OperandForm::dst128: out.push_back({write(in, o, ValueClass::b128), true}); break;
    case OperandForm::dst_pred: out.push_back({write(in, o, ValueClass::predicate), true}); break;
    case OperandForm::src32: out.push_back({read32(in, o, type), false}); break;
    case OperandForm::src64: out.push_back({read64(in, o, type), false}); break;
    case OperandForm::src128:
      if (o.kind != OpKind::reg || class_of(names_.register_type(o.name)) != ValueClass::b128) {
        throw_unsupported(in, "an operand that is not of 128 bits");
      }
      out.push_back({register_value(o.name), false});
      break;
    case OperandForm::src_pred: out.push_back({read_predicate(in, o), false}); break;
    case OperandForm::dst32_list:
      list([&](const Operand& e) { out.push_back({write(in, e, ValueClass::b32), true}); });
      break;
    case OperandForm::dst64_list:
      list([&](const Operand& e) { out.push_back({write(in, e, ValueClass::b64), true}); });
      break;
    case OperandForm::src32_list:
      list([&](const Operand& e) { out.push_back({read32(in, e, type), false}); });
      break;
    case OperandForm::src64_list:
      list([&](const Operand& e) { out.push_back({read64(in, e, type), false}); });
      break;
    case OperandForm::accumulators32_list:
      list([&](const Operand& e) {
        out.push_back({write(in, e, ValueClass::b32), true});
        out.push_back({read32(in, e, type), false});
      });
      break;
    case OperandForm::immediate:
      if (!is_literal(o)) throw_unsupported(in, "an operand that is not a constant");
      selection.imm = o.value;
      offset_taken_ = true;
      break;
    case OperandForm::address32:
    case OperandForm::address64:
      out.push_back(
          {address(in, o, form == OperandForm::address64, selection, offset_taken_), false, true});
      offset_taken_ = true;
      break;
    case OperandForm::coordinates:
      if (o.kind != OpKind::address || o.elements.size() != 2 || o.offset != 0 ||
          o.elements[1].kind != OpKind::vector) {
        throw_unsupported(in, "this form of texture or tensor");
      }
      out.push_back({read64(in, o.elements[0], Type::u64), false, true});
      for (const Operand& coordinate : o.elements[1].elements)
        out.push_back({read32(in, coordinate, type), false, true});
      break;
    case OperandForm::ignored: break;
  }
}

}  // namespace assay::sim
