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

// What precedes the body: results, name, parameters and directives. The tokens of names serve
// messages.
struct Signature {
  Token name;
  std::vector<Parameter> results, parameters;
};

// After ".entry" or ".func". Fills in what is known of the function without its body.
Signature parse_signature(Cursor&, Function&);

// After ".callprototype", with the semicolon.
Function parse_prototype(Cursor&);

class BodyParser {
 public:
  // `function` has its signature; the cursor is on the opening brace. Of `module` only the
  // variables change: those of .global and .const in the body are the module's.
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

// .pragma "a", "b";: after ".pragma". Hints for ptxas, which change nothing here.
void skip_pragma(Cursor&);

}  // namespace assay::sim::ptx
