#include "sim/ptx/function_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace assay::sim::ptx {
namespace {

// "256, 2, 1"; the last two are optional.
void parse_extents(Cursor& cursor, std::uint32_t (&extents)[3]) {
  extents[0] = cursor.expect_u32("a number of threads or blocks");
  extents[1] = extents[2] = 1;
  for (std::uint32_t* extent = extents + 1; extent != extents + 3 && cursor.accept(','); ++extent) {
    *extent = cursor.expect_u32("a number of threads or blocks");
  }
}

std::uint32_t product(const Token& at, const std::uint32_t (&extents)[3]) {
  std::uint64_t all = 1;
  for (const std::uint32_t extent : extents) {
    all *= extent;  // the product of two 32-bit numbers fits
    if (all > std::numeric_limits<std::uint32_t>::max())
      Cursor::fail(at, "too many threads in a block");
  }
  return static_cast<std::uint32_t>(all);
}

void parse_header_directive(Cursor& cursor, Function& function) {
  const Token at = cursor.take();
  const std::string_view name = at.text;
  std::uint32_t extents[3];
  if (name == "maxntid") {
    parse_extents(cursor, extents);
    function.max_threads = product(at, extents);
  } else if (name == "reqntid") {
    parse_extents(cursor, extents);
    product(at, extents);
    std::copy_n(extents, 3, function.required_threads);
  } else if (name == "minnctapersm") {
    function.min_blocks = cursor.expect_u32("a number of blocks");
  } else if (name == "reqnctapercluster") {
    parse_extents(cursor, extents);
    std::copy_n(extents, 3, function.required_cluster);
  } else if (name == "blocksareclusters") {
    function.blocks_are_clusters = true;
  } else if (name == "explicitcluster") {  // must be launched with clusters: the driver checks it
  } else if (name == "noreturn") {
    function.noreturn = true;
  } else if (name == "maxnreg" || name == "maxnctapersm" || name == "maxclusterrank" ||
             name == "abi_preserve" || name == "abi_preserve_control") {
    cursor.expect_u32("a number");  // limits for ptxas
  } else if (name == "pragma") {
    skip_pragma(cursor);
  } else if (name == "attribute") {
    parse_attribute(cursor);
  } else {
    Cursor::fail(at, fmt::format("unknown directive {} in the head of a function", describe(at)));
  }
}

std::vector<Variable> variables_of(const std::vector<Parameter>& parameters) {
  std::vector<Variable> variables;
  for (const Parameter& parameter : parameters) variables.push_back(parameter.variable);
  return variables;
}

}  // namespace

void skip_pragma(Cursor& cursor) {
  do cursor.expect(Token::Kind::string, "a string after '.pragma'");
  while (cursor.accept(','));
  cursor.expect(';', "after '.pragma'");
}

Signature parse_signature(Cursor& cursor, Function& function) {
  Signature signature;
  while (cursor.at_directive("attribute")) parse_header_directive(cursor, function);
  if (!function.entry && cursor.at('(')) signature.results = parse_parameters(cursor);
  signature.name = cursor.expect(Token::Kind::word, "the name of a function");
  if (cursor.at('(')) signature.parameters = parse_parameters(cursor);
  while (cursor.at(Token::Kind::dot_word)) parse_header_directive(cursor, function);
  function.name = signature.name.text;
  function.where.line = signature.name.line;
  function.results = variables_of(signature.results);
  function.parameters = variables_of(signature.parameters);
  return signature;
}

Function parse_prototype(Cursor& cursor) {
  Function prototype;
  parse_signature(cursor, prototype);
  cursor.expect(';', "after a prototype");
  return prototype;
}

}  // namespace assay::sim::ptx
