// PTX text -> Module.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/ptx/ast.h"

namespace assay::sim::ptx {

// What is wrong with a PTX text, and where.
class ParseError : public std::runtime_error {
 public:
  // `line` and `column` count from 1, columns in bytes. what() is "PTX line 3, column 7: " and
  // `what`.
  ParseError(std::uint32_t line, std::uint32_t column, const std::string& what);
  std::uint32_t line, column;
};

// Accepts any bytes (NULs at the end are no part of the text): throws ParseError for what is not
// PTX, for a name that nothing declares and for a directive that is not known. Bounded in time and
// memory by a small multiple of the text. Unknown opcodes parse: whether an instruction is
// supported is the decoder's question.
//
// Names that are declared more than once in a function (in nested scopes, or one that hides a name
// of the module) become unique by "#1", "#2" and so on at their end, which no PTX name has. Aliases
// (.alias) are replaced by what they stand for. Variables of .global and .const that a function
// declares become the module's, as "function#name".
//
// Limits, beyond which ParseError: 1 GiB of text, 2^20 registers declared in a function, 32 nested
// scopes, 1 TiB for a variable, 64 MiB of initial values in a module.
// Refused: textures, samplers and surfaces; registers that are vectors (.reg .v4); 32-bit
// addresses.
Module parse(std::string_view text);

}  // namespace assay::sim::ptx
