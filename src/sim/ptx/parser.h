// Parses PTX text into a Module.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/ptx/ast.h"

namespace assay::sim::ptx {

// An error in a PTX text, and its place.
class ParseError : public std::runtime_error {
 public:
  // `line` and `column` count from 1, columns in bytes. what() is "PTX line 3, column 7: " plus
  // `what`.
  ParseError(std::uint32_t line, std::uint32_t column, const std::string& what);
  std::uint32_t line, column;
};

// Accepts any bytes (trailing NULs are not part of the text). Throws ParseError for anything that
// is not PTX, for an undeclared name and for an unknown directive. Time and memory are proportional
// to the text: at most some 100 bytes of memory per byte of text. Unknown opcodes parse: the
// decoder decides whether an instruction is supported.
//
// Names that are declared more than once in a function (in nested scopes, or hiding a name of the
// module) are made unique by a suffix "#1", "#2" and so on, which no PTX name has. Aliases (.alias)
// are replaced by what they stand for. Variables of .global and .const that a function declares
// become the module's, as "function#name".
//
// Limits, beyond which it throws ParseError: 1 GiB of text, 2^20 registers declared in a function,
// 32 nested scopes, 1 TiB for a variable, 64 MiB of initial values in a module. Refused: textures,
// samplers and surfaces; registers that are vectors (.reg .v4); 32-bit addresses.
Module parse(std::string_view text);

}  // namespace assay::sim::ptx
