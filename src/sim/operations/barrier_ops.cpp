// Selection of bar, barrier and barrier.cluster (PTX ISA, section 9.7.13.1 f.).
#include "sim/execution/barriers.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {
namespace {

// The interpreter handles the meeting of lanes and what it orders.
void nothing(Warp&, const Instr&) {}

FlowSelection select_warp_barrier(const ptx::Instruction& in) {
  if (!has(in, "sync") || in.operands.size() != 1) throw_unsupported(in);
  FlowSelection s;
  s.run = nothing;
  s.cls = InstrClass::control;
  s.operands = {OperandForm::src32};
  s.rendezvous = s.any_place = true;
  s.mask_operand = 0;
  return s;
}

FlowSelection select_cluster_barrier(const ptx::Instruction& in) {
  BarrierOp op;
  op.kind = has(in, "arrive") ? BarrierOp::Kind::cluster_arrive : BarrierOp::Kind::cluster_wait;
  if (!in.operands.empty() || has(in, "arrive") == has(in, "wait")) throw_unsupported(in);
  FlowSelection s;
  s.cls = InstrClass::control;
  s.flow = Flow::barrier;
  s.imm = op.encode();
  s.uses_cluster = true;
  return s;
}

BarrierOp::Kind reduction_kind(const ptx::Instruction& in) {
  if (has(in, "popc")) return BarrierOp::Kind::popc;
  if (has(in, "and")) return BarrierOp::Kind::all;
  if (has(in, "or")) return BarrierOp::Kind::any;
  throw_unsupported(in);
}

}  // namespace

std::optional<FlowSelection> select_barrier(const ptx::Instruction& in) {
  if (in.opcode != "bar" && in.opcode != "barrier") return std::nullopt;
  if (has(in, "warp")) return select_warp_barrier(in);
  if (has(in, "cluster")) return select_cluster_barrier(in);

  BarrierOp op;
  op.aligned = in.opcode == "bar" || has(in, "aligned");
  FlowSelection s;
  std::size_t id_at = 0, plain = 1;  // operands without a count
  if (has(in, "red")) {
    op.kind = reduction_kind(in);
    s.operands.push_back(op.kind == BarrierOp::Kind::popc ? OperandForm::dst32
                                                          : OperandForm::dst_pred);
    id_at = 1;
    plain = 3;
  } else if (has(in, "arrive")) {
    op.kind = BarrierOp::Kind::arrive;
  } else if (!has(in, "sync")) {
    throw_unsupported(in);
  }
  op.counted = in.operands.size() == plain + 1;
  if (in.operands.size() != plain && !op.counted) throw_unsupported(in, "this number of operands");
  s.operands.push_back(OperandForm::src32);
  if (op.counted) s.operands.push_back(OperandForm::src32);
  if (plain == 3) s.operands.push_back(OperandForm::src_pred);
  s.cls = InstrClass::control;
  s.flow = Flow::barrier;
  s.imm = op.encode();
  s.own_block = in.operands[id_at].kind != ptx::Operand::Kind::integer;
  return s;
}

}  // namespace assay::sim
