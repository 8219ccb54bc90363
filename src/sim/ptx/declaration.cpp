#include "sim/ptx/declaration.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "sim/ptx/initialiser.h"

namespace assay::sim::ptx {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 40;  // per variable
constexpr std::size_t kMaxDimensions = 16;

std::uint32_t parse_align(Cursor& cursor) {
  const Token at = cursor.token();
  const std::uint32_t align = cursor.expect_u32("an alignment");
  if (!std::has_single_bit(align)) {
    Cursor::fail(at, fmt::format("expected a power of two as alignment, found {}", describe(at)));
  }
  return align;
}

// .ptr .global .align 16: what a pointer points to, which is irrelevant here.
void skip_pointee(Cursor& cursor) {
  if (const auto space = space_directive(cursor.token())) cursor.take();
  if (cursor.accept_directive("align")) parse_align(cursor);
}

// "[4][]". An array without a size has the extent 0; only the first extent may be missing.
std::vector<std::uint64_t> parse_extents(Cursor& cursor) {
  std::vector<std::uint64_t> extents;
  while (cursor.at('[')) {
    const Token bracket = cursor.take();
    if (extents.size() == kMaxDimensions) Cursor::fail(bracket, "more than 16 dimensions");
    if (extents.empty() && cursor.accept(']')) {
      extents.push_back(0);
      continue;
    }
    const Token at = cursor.token();
    const Constant extent = parse_constant(cursor);
    if (extent.kind != Constant::Kind::integer || extent.bits == 0 || extent.bits > kMaxBytes) {
      Cursor::fail(at, fmt::format("expected the size of an array, found {}", describe(at)));
    }
    extents.push_back(extent.bits);
    cursor.expect(']', "after the size of an array");
  }
  return extents;
}

}  // namespace

std::optional<Space> space_directive(const Token& token) {
  if (token.kind != Token::Kind::dot_word) return std::nullopt;
  const std::string_view name = token.text;
  if (name == "reg") return Space::reg;
  if (name == "const") return Space::constant;
  if (name == "global") return Space::global;
  if (name == "local") return Space::local;
  if (name == "param") return Space::param;
  if (name == "shared") return Space::shared;
  return std::nullopt;
}

bool parse_attribute(Cursor& cursor) {
  bool managed = false;
  cursor.expect('(', "after '.attribute'");
  do {
    const Token name = cursor.expect(Token::Kind::dot_word, "an attribute");
    if (name.text == "managed") {
      managed = true;
    } else if (name.text == "unified") {
      cursor.expect('(', "after '.unified'");
      parse_constant(cursor);
      cursor.expect(',', "between the halves of an identifier");
      parse_constant(cursor);
      cursor.expect(')', "after an identifier");
    } else {
      Cursor::fail(name, fmt::format("unknown attribute {}", describe(name)));
    }
  } while (cursor.accept(','));
  cursor.expect(')', "after the attributes");
  return managed;
}

DeclarationHead parse_declaration_head(Cursor& cursor, Space space) {
  DeclarationHead head;
  head.space = space;
  while (cursor.at(Token::Kind::dot_word)) {
    const Token at = cursor.take();
    if (at.text == "align") {
      head.align = parse_align(cursor);
    } else if (at.text == "attribute") {
      head.managed = parse_attribute(cursor);
    } else if (at.text == "ptr" && space == Space::param) {
      skip_pointee(cursor);
    } else if ((at.text == "v2" || at.text == "v4" || at.text == "v8") && space != Space::reg) {
      head.vector = static_cast<std::uint32_t>(at.text[1] - '0');
    } else if (const auto type = type_named(at.text); type && head.type == Type::none) {
      head.type = *type;
    } else {
      Cursor::fail(at, fmt::format("expected a type, found {}", describe(at)));
    }
  }
  if (head.type == Type::none) cursor.expected("a type");
  if (head.type == Type::pred && space != Space::reg) {
    Cursor::fail(cursor.token(), "only registers can be predicates");
  }
  return head;
}

Variable parse_declarator(Cursor& cursor, const DeclarationHead& head, const Token& name,
                          ModuleState* module) {
  Variable variable;
  variable.name = name.text;
  variable.space = head.space;
  variable.type = head.type;
  variable.is_extern = head.is_extern;
  variable.linkage = head.linkage;
  variable.managed = head.managed;
  variable.where.line = name.line;

  const std::uint64_t element = size_of(head.type);
  variable.align =
      head.align != 0
          ? head.align
          : static_cast<std::uint32_t>(std::max<std::uint64_t>(1, element)) * head.vector;
  std::vector<std::uint64_t> extents = parse_extents(cursor);
  if (head.vector > 1) extents.push_back(head.vector);
  std::uint64_t bytes = element;
  bool sized = true;
  for (const std::uint64_t extent : extents) {
    if (extent > kMaxBytes / std::max<std::uint64_t>(1, bytes)) {
      Cursor::fail(name, fmt::format("{} takes more than 1 TiB", describe(name)));
    }
    sized &= extent != 0;
    bytes *= std::max<std::uint64_t>(1, extent);
  }
  variable.bytes = sized ? bytes : 0;

  if (cursor.at('=')) {
    const Token equals = cursor.take();
    const bool allowed = head.space == Space::global || head.space == Space::constant;
    if (module == nullptr || !allowed || head.is_extern) {
      Cursor::fail(equals,
                   "only .global and .const variables that are not .extern have initial values");
    }
    parse_initial_value(cursor, extents, variable, *module);
  } else if (!sized && !head.is_extern && head.space != Space::param) {
    Cursor::fail(name, fmt::format("{} has neither a size nor an initial value", describe(name)));
  }
  return variable;
}

std::vector<Parameter> parse_parameters(Cursor& cursor) {
  std::vector<Parameter> parameters;
  cursor.expect('(', "before parameters");
  if (cursor.accept(')')) return parameters;
  do {
    const auto space = space_directive(cursor.token());
    if (space != Space::param && space != Space::reg) cursor.expected("'.param' or '.reg'");
    cursor.take();
    const DeclarationHead head = parse_declaration_head(cursor, *space);
    const Token name = cursor.expect(Token::Kind::word, "the name of a parameter");
    parameters.push_back({name, parse_declarator(cursor, head, name, nullptr)});
  } while (cursor.accept(','));
  cursor.expect(')', "after the parameters");
  return parameters;
}

}  // namespace assay::sim::ptx
