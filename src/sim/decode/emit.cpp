#include <algorithm>

#include "sim/decode/function_draft.h"
#include "sim/decode/price.h"

namespace assay::sim {

std::vector<DraftBlock> find_blocks(const FunctionDraft& draft) {
  const auto count = static_cast<std::uint32_t>(draft.instrs.size());
  std::vector<bool> begins(count + 1, false);
  begins[0] = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const DraftInstr& in = draft.instrs[i];
    if (in.begins_block) begins[i] = true;
    if (in.ends_block || in.flow != Flow::next) begins[i + 1] = true;
    for (const std::size_t t : in.targets) begins[draft.first_of[t]] = true;
  }
  std::vector<DraftBlock> blocks;
  std::vector<std::uint32_t> block_at(count + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (begins[i]) blocks.push_back({i, i, {}});
    blocks.back().end = i + 1;
    block_at[i] = static_cast<std::uint32_t>(blocks.size() - 1);
  }
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    const DraftInstr& last = draft.instrs[blocks[b].end - 1];
    for (const std::size_t t : last.targets) {
      blocks[b].successors.push_back(block_at[draft.first_of[t]]);
    }
    const bool leaves =
        last.guard < 0 && (last.flow == Flow::branch || last.flow == Flow::branch_indexed ||
                           last.flow == Flow::ret || last.flow == Flow::exit);
    if (!leaves && b + 1 < blocks.size()) blocks[b].successors.push_back(b + 1);
  }
  return blocks;
}

namespace {

void add_block(const FunctionDraft& draft, const DraftBlock& from, const FrameLayout& layout,
               Code& code) {
  const DraftInstr& first = draft.instrs[from.begin];
  const DraftInstr& last = draft.instrs[from.end - 1];
  Block block;
  block.begin = from.begin;
  const bool terminator = last.flow != Flow::next && last.flow != Flow::poll;
  block.end = terminator ? from.end - 1 : from.end;
  block.flow = last.flow;
  block.rendezvous = first.rendezvous;
  block.any_place = first.any_place;
  if (first.mask_value >= 0) {
    // With a constant mask of all lanes, the slot need not be read.
    const Value& mask = draft.values[static_cast<std::size_t>(first.mask_value)];
    const bool all = mask.has_init && mask.init.kind == SlotInit::Kind::value32 &&
                     mask.init.value == 0xffffffffu;
    if (!all) block.mask_offset = layout.offset[static_cast<std::size_t>(first.mask_value)];
  }
  UnitWork work;
  for (std::uint32_t i = from.begin; i < from.end; ++i) {
    if (!draft.instrs[i].info.counted) continue;
    ++block.instructions;
    work += work_of(draft.instrs[i].info);
  }
  code.blocks.push_back(block);
  code.prices.push_back(work);
}

void add_instruction(const FunctionDraft& draft, const DraftInstr& from, const FrameLayout& layout,
                     const std::vector<std::uint32_t>& block_at, Code& code) {
  Instr in;
  in.run = from.run;
  in.imm = from.imm;
  in.e = from.e;
  if (from.guard >= 0) {
    in.guard = static_cast<std::int32_t>(layout.offset[static_cast<std::size_t>(from.guard)]);
    in.guard_negated = from.guard_negated;
  }
  const auto extra_at = static_cast<std::uint32_t>(code.extra.size());
  if (from.flow == Flow::branch) {
    in.aux = block_at[draft.first_of[from.targets[0]]];
  } else if (from.flow == Flow::branch_indexed) {
    in.aux = extra_at;
    code.extra.push_back(static_cast<std::uint32_t>(from.targets.size()));
    for (const std::size_t t : from.targets) {
      code.extra.push_back(block_at[draft.first_of[t]]);
    }
  }
  if (!from.extra.empty()) in.aux = extra_at;
  code.extra.insert(code.extra.end(), from.extra.begin(), from.extra.end());
  for (std::uint32_t o = 0; o < from.operands; ++o) {
    const DraftOperand& operand = draft.operands[from.first_operand + o];
    const std::uint32_t slot = layout.offset[operand.value];
    const auto cls = static_cast<SlotClass>(draft.values[operand.value].cls);
    code.uses.push_back({slot, cls, operand.written, operand.address});
    switch (operand.field) {
      case Field::d: in.d = slot; break;
      case Field::a: in.a = slot; break;
      case Field::b: in.b = slot; break;
      case Field::c: in.c = slot; break;
      case Field::e: in.e = slot; break;
      case Field::extra:
        if (code.extra.size() == extra_at) in.aux = extra_at;
        code.extra.push_back(slot);
        break;
      case Field::none: break;
    }
  }
  code.code.push_back(in);
  code.info.push_back(from.info);
  code.spread.push_back(from.spread);
  code.first_use.push_back(static_cast<std::uint32_t>(code.uses.size()));
}

void add_slots(const FunctionDraft& draft, const FrameLayout& layout, Code& code) {
  using Kind = SlotInit::Kind;
  for (std::size_t v = 0; v < draft.values.size(); ++v) {
    if (!draft.values[v].has_init) continue;
    SlotInit init = draft.values[v].init;
    init.offset = layout.offset[v];
    code.slots.push_back(init);
  }
  for (const std::uint32_t v : layout.undefined) {
    const std::uint32_t offset = layout.offset[v];
    switch (draft.values[v].cls) {
      case ValueClass::predicate:
        code.slots.push_back({Kind::undefined_predicate, offset, 0});
        break;
      case ValueClass::b32: code.slots.push_back({Kind::undefined32, offset, 0}); break;
      case ValueClass::b128:
        code.slots.push_back({Kind::undefined64, offset + 256, 0});
        [[fallthrough]];
      case ValueClass::b64: code.slots.push_back({Kind::undefined64, offset, 0}); break;
    }
  }
}

}  // namespace

void emit(const FunctionDraft& draft, const std::vector<DraftBlock>& blocks,
          const FrameLayout& layout, Code& code) {
  std::vector<std::uint32_t> block_at(draft.instrs.size() + 1, 0);
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    std::fill(block_at.begin() + blocks[b].begin, block_at.begin() + blocks[b].end, b);
    add_block(draft, blocks[b], layout, code);
  }
  code.code.reserve(draft.instrs.size());
  code.info.reserve(draft.instrs.size());
  code.spread.reserve(draft.instrs.size());
  code.first_use.reserve(draft.instrs.size() + 1);
  code.uses.reserve(draft.operands.size());
  code.first_use.push_back(0);
  for (const DraftInstr& in : draft.instrs) add_instruction(draft, in, layout, block_at, code);
  add_slots(draft, layout, code);
  code.frame_bytes = layout.frame_bytes;
  code.predicates = layout.predicates;
}

}  // namespace assay::sim
