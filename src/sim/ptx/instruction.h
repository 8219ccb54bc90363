// One instruction with its operands.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ptx/ast.h"
#include "sim/ptx/cursor.h"
#include "sim/ptx/scope.h"

namespace assay::sim::ptx {

class InstructionParser {
 public:
  InstructionParser(Cursor& cursor, Scopes& scopes) : cursor_(cursor), scopes_(scopes) {}

  // "@!%p": the guard, if there is one.
  void guard(Instruction&);
  // Parses from the opcode, which the caller has taken, to the semicolon.
  void parse(const Token& opcode, Instruction&);

 private:
  struct LabelUse {
    std::size_t operand;
    Token at;
  };

  void operands(Instruction&);
  Operand operand(int depth);
  Operand name(int depth);
  void selector(Operand&);
  Operand special_register(const Token&);
  Operand negated();
  Operand address(int depth);
  Operand constant();
  void elements(Operand&, char close, int depth);

  Cursor& cursor_;
  Scopes& scopes_;
  bool is_call_ = false;           // parentheses are lists
  std::vector<Operand> operands_;  // of the instruction; a member so that its memory is reused
  std::vector<LabelUse> label_uses_;
};

}  // namespace assay::sim::ptx
