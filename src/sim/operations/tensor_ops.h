// Shared by the files of the matrix instructions: tensor_ops*.cpp.
#pragma once

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "sim/execution/warp.h"
#include "sim/math/tensor.h"
#include "sim/operations/instruction_set.h"

namespace assay::sim {

[[noreturn]] inline void refuse_tensor(const ptx::Instruction& i, const std::string& why) {
  throw Unsupported(i.full_name() + ": " + why);
}

// The qualifiers of an instruction, taken one by one. Their order does not matter, since ptxas
// accepts any: "ldmatrix.sync.aligned.x4.m8n8.shared.b16" is common.
class Qualifiers {
 public:
  explicit Qualifiers(const ptx::Instruction&);

  // Whether `name` is there; consumes it.
  bool take(std::string_view name);
  void require(std::string_view name);
  // Takes the one of the form .m16n8k16.
  MmaShape shape();
  // Takes every type, in order.
  std::vector<TensorType> types();
  // .global, .shared or .shared::cta; generic without.
  ptx::Space space();
  // Throws if any is left.
  void end() const;
  [[noreturn]] void refuse() const;

 private:
  const ptx::Instruction& instruction_;
  std::vector<std::string_view> left_;
};

// A matrix instruction without all 32 lanes is undefined on hardware: reports it and ends the
// launch.
inline void require_full_warp(Warp& w) {
  if (w.full()) [[likely]]
    return;
  fail(w, FindingKind::warp_sync, static_cast<std::uint32_t>(std::countr_one(w.active)),
       "is absent from a matrix instruction, which all 32 threads of a warp must execute");
}

// The form of a fragment of `count` registers: a list, or a single register.
OperandForm fragment_form(const ptx::Instruction&, std::size_t operand, int count,
                          OperandForm list);

// A selection that waits for the full warp and has its operands in Code::extra.
Selection select_full_warp(Handler, InstrClass, std::vector<OperandForm>);

Selection select_mma(const ptx::Instruction&);  // tensor_ops_mma.cpp: mma, wmma.mma
Selection select_wmma_memory(
    const ptx::Instruction&);  // tensor_ops_wmma.cpp: wmma.load, wmma.store
Selection select_matrix_move(
    const ptx::Instruction&);  // tensor_ops_matrix.cpp: ldmatrix and the like

}  // namespace assay::sim
