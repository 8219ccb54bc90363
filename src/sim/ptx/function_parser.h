// .entry and .func, with their bodies.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ptx/ast.h"
#include "sim/ptx/cursor.h"
#include "sim/ptx/declaration.h"
#include "sim/ptx/instruction.h"
#include "sim/ptx/line_table.h"
#include "sim/ptx/scope.h"

namespace assay::sim::ptx {

// The part before the body: results, name, parameters and directives. The tokens of names are for
// messages.
struct Signature {
  Token name;
  std::vector<Parameter> results, parameters;
};

// Parses what follows ".entry" or ".func". Fills in what is known of the function without its body.
Signature parse_signature(Cursor&, Function&);

// Parses what follows ".callprototype", including the semicolon.
Function parse_prototype(Cursor&);

class BodyParser {
 public:
  // `function` has its signature; the cursor is on the opening brace. Only the variables of
  // `module` change: those of .global and .const in the body become the module's.
  BodyParser(Cursor&, Module& module, ModuleState&, LineTable&, Function& function);
  void parse(Signature);

 private:
  void declare(std::vector<Parameter>&, std::vector<Variable>&);
  void statement();
  void directive();
  void registers();
  void variables(Space);
  void label(const Token& name);
  void branch_targets(const std::string& label);
  void call_targets(const std::string& label);
  Instruction& new_instruction(std::uint32_t line);

  Cursor& cursor_;
  Module& module_;
  ModuleState& state_;
  LineTable& lines_;
  Function& function_;
  Scopes scopes_;
  InstructionParser instructions_;
};

// .pragma "a", "b";: skips what follows ".pragma". Hints for ptxas, without effect here.
void skip_pragma(Cursor&);

}  // namespace assay::sim::ptx
