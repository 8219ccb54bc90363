#include "sim/ptx/initialiser.h"

#include <fmt/format.h>

#include <bit>
#include <span>

namespace assay::sim::ptx {
namespace {

// Without a limit, large arrays with few initial values would let a short text take any amount of
// memory.
constexpr std::uint64_t kMaxInitialised = std::uint64_t{64} << 20;  // bytes per module

bool is_integer(Type type) { return type >= Type::b8 && type <= Type::s64; }

class InitialValueParser {
 public:
  InitialValueParser(Cursor& cursor, Variable& variable, ModuleState& module)
      : cursor_(cursor), variable_(variable), module_(module), element_(size_of(variable.type)) {}

  void parse(const std::vector<std::uint64_t>& extents) {
    const Token at = cursor_.token();
    grow(at, variable_.bytes);
    if (extents.empty()) {
      grow(at, element_);
      parse_element(0);
    } else {
      parse_braces(extents, 0);
    }
    if (variable_.initial.empty()) {
      Cursor::fail(at, "expected initial values that give the size of the array");
    }
    variable_.bytes = variable_.initial.size();
  }

 private:
  // The values of an array that begins at element `begin`. Missing values at the end are zero.
  void parse_braces(std::span<const std::uint64_t> extents, std::uint64_t begin) {
    if (!cursor_.accept('{')) cursor_.expected("'{' before the initial values of an array");
    if (cursor_.accept('}')) return;
    std::uint64_t part = 1;  // number of elements of each part of the array
    for (const std::uint64_t extent : extents.subspan(1)) part *= extent;
    std::uint64_t count = 0;
    do {
      const Token at = cursor_.token();
      if (count == extents[0] && count != 0) {
        Cursor::fail(at, "more initial values than the array has elements");
      }
      const std::uint64_t next = begin + count * part;
      grow(at, (next + part) * element_);
      if (extents.size() > 1) {
        parse_braces(extents.subspan(1), next);
      } else {
        parse_element(next);
      }
      ++count;
    } while (cursor_.accept(','));
    cursor_.expect('}', "after the initial values");
  }

  void grow(const Token& at, std::uint64_t bytes) {
    const std::uint64_t have = variable_.initial.size();
    if (bytes <= have) return;
    if (bytes - have > kMaxInitialised - module_.initialised_bytes) {
      Cursor::fail(at, "the initial values of the module take more than 64 MiB");
    }
    module_.initialised_bytes += bytes - have;
    variable_.initial.resize(bytes);
  }

  void parse_element(std::uint64_t index) {
    const Token at = cursor_.token();
    if (at.kind == Token::Kind::word) {
      relocate(index, parse_address());
      return;
    }
    const Constant constant = parse_constant(cursor_);
    if (!cursor_.at('(')) {
      store(at, index * element_, constant);
      return;
    }
    // 0xff00(symbol): one byte of an address.
    cursor_.take();
    Relocation address = parse_address();
    cursor_.expect(')', "after an address under a mask");
    address.shift = static_cast<std::uint32_t>(std::countr_zero(constant.bits));
    const bool is_byte = constant.kind == Constant::Kind::integer && constant.bits != 0 &&
                         constant.bits >> address.shift == 0xff && address.shift % 8 == 0;
    if (!is_byte)
      Cursor::fail(at, fmt::format("expected a mask of one byte, found {}", describe(at)));
    if (element_ != 1) Cursor::fail(at, "masks of addresses are for arrays of bytes");
    relocate(index, address);
  }

  // symbol, generic(symbol), with offsets.
  Relocation parse_address() {
    Relocation address;
    Token name =
        cursor_.expect(Token::Kind::word, "a constant or the name of a variable or function");
    std::uint64_t inner = 0;
    if (name.text == "generic" && cursor_.accept('(')) {
      address.generic = true;
      name = cursor_.expect(Token::Kind::word, "the name of a variable");
      inner = static_cast<std::uint64_t>(parse_offset(cursor_));
      cursor_.expect(')', "after 'generic' and a name");
    }
    if (!module_.names.contains(name.text)) {
      Cursor::fail(name, fmt::format("nothing declares {}", describe(name)));
    }
    address.symbol = name.text;
    address.addend =
        static_cast<std::int64_t>(inner + static_cast<std::uint64_t>(parse_offset(cursor_)));
    return address;
  }

  // Joins bytes that continue the previous address to it.
  void relocate(std::uint64_t index, Relocation address) {
    address.at = index * element_;
    address.bytes = element_;
    if (!variable_.relocations.empty()) {
      Relocation& last = variable_.relocations.back();
      if (element_ == 1 && last.at + last.bytes == address.at &&
          last.shift + 8 * last.bytes == address.shift && last.symbol == address.symbol &&
          last.addend == address.addend && last.generic == address.generic) {
        ++last.bytes;
        return;
      }
    }
    variable_.relocations.push_back(std::move(address));
  }

  void store(const Token& at, std::uint64_t offset, const Constant& constant) {
    const std::uint64_t bits = convert(at, constant);
    for (std::uint64_t i = 0; i < element_ && i < 8; ++i) {
      variable_.initial[offset + i] = static_cast<std::byte>(bits >> (8 * i));
    }
    // The upper half of a .b128.
    for (std::uint64_t i = 8; i < element_; ++i) {
      const bool ones = !constant.is_unsigned && bits >> 63 != 0;
      variable_.initial[offset + i] = static_cast<std::byte>(ones ? 0xff : 0);
    }
  }

  // Reals are converted to the variable's type; a 32-bit pattern is not valid for f64.
  std::uint64_t convert(const Token& at, const Constant& constant) const {
    const Type type = variable_.type;
    const bool is_double = constant.kind == Constant::Kind::real64;
    if (constant.kind == Constant::Kind::integer) {
      if (is_integer(type)) return constant.bits;
    } else if (type == Type::f32 || type == Type::b32) {
      if (!is_double) return constant.bits;
      return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(constant.bits)));
    } else if ((type == Type::f64 || type == Type::b64) && is_double) {
      return constant.bits;
    }
    Cursor::fail(
        at, fmt::format("expected a value of type .{}, found {}", to_string(type), describe(at)));
  }

  Cursor& cursor_;
  Variable& variable_;
  ModuleState& module_;
  const std::uint64_t element_;
};

}  // namespace

void parse_initial_value(Cursor& cursor, const std::vector<std::uint64_t>& extents,
                         Variable& variable, ModuleState& module) {
  InitialValueParser(cursor, variable, module).parse(extents);
}

}  // namespace assay::sim::ptx
