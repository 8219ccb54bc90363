// Decodes one PTX function into a FunctionDraft.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/decode/function_draft.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/names.h"

namespace assay::sim {

class FunctionDecoder {
 public:
  // `callees` maps each function of the program to its index in Program::codes.
  FunctionDecoder(const ptx::Function&, const Names&, const ptx::TextTable<std::uint32_t>& callees);

  // Throws Unsupported naming the instruction, and sets `at` to its index in the body.
  FunctionDraft decode(std::size_t& at);

  bool ordered() const { return ordered_; }
  bool polls() const { return polls_; }
  bool uses_cluster() const { return uses_cluster_; }
  bool uses_reserved_shared() const { return uses_reserved_shared_; }

 private:
  struct Bound {  // an operand's value and how it is used
    std::uint32_t value;
    bool written;
    bool address = false;
  };

  // function_decoder.cpp: instructions.
  void instruction(const ptx::Instruction&);
  void select(const ptx::Instruction&);
  void add(const ptx::Instruction&, const FlowSelection&, bool elementwise);
  void assign_fields(DraftInstr&, const std::vector<Bound>&, bool to_extra);
  DraftInstr& append(const ptx::Instruction&, Handler, InstrClass);
  void hidden(Handler, Spread::Kind, std::uint32_t to, std::uint32_t from, std::uint64_t imm);
  void guard(const ptx::Instruction&, DraftInstr&);
  void branch(const ptx::Instruction&);
  void branch_indexed(const ptx::Instruction&);
  void call(const ptx::Instruction&);
  bool call_builtin(const ptx::Instruction&, const std::string& name,
                    const std::vector<std::uint32_t>& parameters,
                    const std::vector<std::uint32_t>& results);
  std::vector<std::uint32_t> rows(const ptx::Instruction&, const ptx::Operand& list) const;
  std::size_t label(const ptx::Instruction&, const std::string& name) const;

  // operand_values.cpp: operands.
  void bind(const ptx::Instruction&, const ptx::Operand&, OperandForm, std::size_t index,
            std::vector<Bound>&, FlowSelection&);
  std::uint32_t read32(const ptx::Instruction&, const ptx::Operand&, ptx::Type);
  std::uint32_t read64(const ptx::Instruction&, const ptx::Operand&, ptx::Type);
  std::uint32_t read_predicate(const ptx::Instruction&, const ptx::Operand&);
  std::uint32_t address(const ptx::Instruction&, const ptx::Operand&, bool wide, FlowSelection&,
                        bool offset_taken);
  std::uint32_t write(const ptx::Instruction&, const ptx::Operand&, ValueClass);
  std::uint32_t symbol_address(const ptx::Instruction&, const std::string&, std::int64_t offset,
                               bool wide);
  std::uint32_t register_value(const std::string& name);
  std::uint32_t temporary(ValueClass);
  std::uint32_t scratch(ValueClass);
  std::uint32_t fixed(ValueClass, SlotInit::Kind, std::uint64_t value);
  std::uint32_t special(const ptx::Instruction&, const std::string& name, bool wide);
  std::uint32_t narrowed(std::uint32_t value64, std::uint64_t mask);

  const ptx::Function& function_;
  const Names& names_;
  const ptx::TextTable<std::uint32_t>& callees_;
  FunctionDraft draft_;
  ptx::TextTable<std::uint32_t> registers_;
  std::map<std::tuple<ValueClass, SlotInit::Kind, std::uint64_t>, std::uint32_t> fixed_;
  std::uint32_t scratch_[4] = {0, 0, 0, 0};
  bool has_scratch_[4] = {false, false, false, false};

  // For the current instruction: registers wider than what is written, to be extended afterwards.
  struct Extension {
    std::uint32_t to, from;
    bool sign;
  };
  std::vector<Extension> extensions_;
  bool offset_taken_ = false;
  bool ordered_ = false, polls_ = false, uses_cluster_ = false, uses_reserved_shared_ = false;
};

}  // namespace assay::sim
