// PTX text -> Module.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/ptx/ast.h"

namespace assay::sim::ptx {

// What is wrong with a PTX text, and where.
class ParseError : public std::runtime_error {
 public:
  // `line` and `column` count from 1.
  ParseError(std::uint32_t line, std::uint32_t column, const std::string& what);
  std::uint32_t line, column;
};

// Accepts any bytes: throws ParseError for what is not PTX or uses a directive that is not known.
// Bounded in time and memory by a small multiple of the text. Unknown opcodes parse: whether an
// instruction is supported is the decoder's question.
Module parse(std::string_view text);

}  // namespace assay::sim::ptx
