#include "sim/decode/function_decoder.h"

#include <algorithm>

#include "sim/decode/price.h"
#include "sim/decode/spread.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

using ptx::Operand;
using OpKind = ptx::Operand::Kind;

FunctionDecoder::FunctionDecoder(const ptx::Function& f, const Names& names,
                                 const ptx::TextTable<std::uint32_t>& callees)
    : function_(f), names_(names), callees_(callees) {}

FunctionDraft FunctionDecoder::decode(std::size_t& at) {
  draft_.instrs.reserve(function_.body.size() + 1);
  for (at = 0; at < function_.body.size(); ++at) {
    draft_.first_of.push_back(static_cast<std::uint32_t>(draft_.instrs.size()));
    instruction(function_.body[at]);
  }
  draft_.first_of.push_back(static_cast<std::uint32_t>(draft_.instrs.size()));
  // Running off the end returns.
  DraftInstr end;
  end.flow = Flow::ret;
  end.info.counted = false;
  end.info.text = "ret";
  if (!function_.body.empty()) end.info.where = function_.body.back().where;
  draft_.instrs.push_back(std::move(end));
  return std::move(draft_);
}

DraftInstr& FunctionDecoder::append(const ptx::Instruction& in, Handler run, InstrClass cls) {
  DraftInstr out;
  out.run = run;
  out.info.cls = cls;
  out.spread = spread_of(in, cls);
  out.info.price = price_of(in, cls);
  out.info.where = in.where;
  out.info.text = in.full_name();
  out.first_operand = static_cast<std::uint32_t>(draft_.operands.size());
  draft_.instrs.push_back(std::move(out));
  return draft_.instrs.back();
}

// Emits a conversion that the program does not contain.
void FunctionDecoder::hidden(Handler run, Spread::Kind spread, std::uint32_t to, std::uint32_t from,
                             std::uint64_t imm) {
  DraftInstr out;
  out.run = run;
  out.spread.kind = spread;
  out.imm = imm;
  out.info.counted = false;
  out.info.text = "operand conversion";
  out.may_overlap = true;
  out.first_operand = static_cast<std::uint32_t>(draft_.operands.size());
  out.operands = to == from ? 1 : 2;
  draft_.operands.push_back({to, true, Field::d});
  if (to != from) draft_.operands.push_back({from, false, Field::a});
  draft_.instrs.push_back(std::move(out));
}

void FunctionDecoder::guard(const ptx::Instruction& in, DraftInstr& out) {
  if (!in.guarded) return;
  if (names_.register_type(in.guard) != ptx::Type::pred) {
    throw_unsupported(in, "a guard that is no predicate");
  }
  out.guard = register_value(in.guard);
  out.guard_negated = in.guard_negated;
}

void FunctionDecoder::instruction(const ptx::Instruction& in) {
  if (in.opcode == "bra") return branch(in);
  if (in.opcode == "brx") return branch_indexed(in);
  if (in.opcode == "call") return call(in);
  if (in.opcode == "ret" || in.opcode == "exit") {
    DraftInstr& out = append(in, nullptr, InstrClass::control);
    out.flow = in.opcode == "ret" ? Flow::ret : Flow::exit;
    return guard(in, out);
  }
  select(in);
}

void FunctionDecoder::select(const ptx::Instruction& in) {
  const auto from = [&](const std::optional<Selection>& s, bool elementwise) {
    if (!s) return false;
    FlowSelection wrapped;
    static_cast<Selection&>(wrapped) = *s;
    add(in, wrapped, elementwise);
    return true;
  };
  if (from(select_alu(in), true)) return;
  if (const auto tensor = select_tensor_copy(in, names_)) return add(in, *tensor, false);
  // Before plain st and red, which do not know .async.
  if (const auto bulk = select_bulk(in, names_)) return add(in, *bulk, false);
  for (const auto& choice :
       {select_move(in, names_), select_param(in, names_), select_memory(in, names_)}) {
    if (choice) return add(in, *choice, false);
  }
  if (from(select_warp_op(in), false) || from(select_tensor(in), false)) return;
  if (const auto warpgroup = select_warpgroup(in)) return add(in, *warpgroup, false);
  for (const auto& choice :
       {select_atomic(in, names_), select_barrier(in), select_async(in, names_),
        select_mbarrier(in, names_), select_texture(in), select_control(in)}) {
    if (choice) return add(in, *choice, false);
  }
  throw_unsupported(in);
}

// Assigns slots in Instr as described in instruction_set.h.
void FunctionDecoder::assign_fields(DraftInstr& out, const std::vector<Bound>& bound,
                                    bool to_extra) {
  const auto written = static_cast<std::size_t>(
      std::count_if(bound.begin(), bound.end(), [](const Bound& b) { return b.written; }));
  const std::size_t read = bound.size() - written;
  to_extra |= written > 2 || read > 4 || (written == 2 && read > 3);
  constexpr Field kWritten[] = {Field::d, Field::e};
  constexpr Field kRead[] = {Field::a, Field::b, Field::c, Field::e};
  std::size_t w = 0, r = 0;
  out.operands = static_cast<std::uint32_t>(bound.size());
  out.first_operand = static_cast<std::uint32_t>(draft_.operands.size());
  for (const Bound& b : bound) {
    const Field field = to_extra ? Field::extra : b.written ? kWritten[w++] : kRead[r++];
    draft_.operands.push_back({b.value, b.written, field, b.address});
  }
}

void FunctionDecoder::add(const ptx::Instruction& in, const FlowSelection& chosen,
                          bool elementwise) {
  if (chosen.operands.size() != in.operands.size()) {
    throw_unsupported(in, "this number of operands");
  }
  FlowSelection selection = chosen;
  std::vector<Bound> bound;
  extensions_.clear();
  offset_taken_ = false;
  bool lists = selection.uses_extra;
  std::int64_t mask_value = -1;
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    const OperandForm form = selection.operands[i];
    lists |= form == OperandForm::dst32_list || form == OperandForm::src32_list ||
             form == OperandForm::dst64_list || form == OperandForm::src64_list;
    bind(in, in.operands[i], form, i, bound, selection);
    if (selection.rendezvous && selection.mask_operand == i) mask_value = bound.back().value;
  }
  DraftInstr& out = append(in, selection.run, selection.cls);
  guard(in, out);
  if (selection.spread) out.spread = *selection.spread;
  out.flow = selection.flow;
  out.imm = selection.imm;
  out.e = selection.e;
  out.info.flops = selection.flops;
  out.info.tensor_flops = selection.tensor_flops;
  out.rendezvous = selection.rendezvous;
  out.any_place = selection.any_place;
  out.mask_value = mask_value;
  out.begins_block = selection.rendezvous || selection.own_block;
  out.ends_block = (selection.rendezvous && in.guarded) || selection.own_block;
  assign_fields(out, bound, lists);
  const auto written =
      std::count_if(bound.begin(), bound.end(), [](const Bound& b) { return b.written; });
  out.may_overlap = elementwise && written == 1;
  ordered_ |= selection.ordered;
  polls_ |= selection.waits_for_blocks;
  uses_cluster_ |= selection.uses_cluster;

  const std::int64_t guard = out.guard;
  const bool negated = out.guard_negated;
  for (const Extension& x : std::vector<Extension>(extensions_)) {
    hidden(x.sign ? widen_signed : widen_unsigned, Spread::Kind::copy, x.to, x.from, 0);
    draft_.instrs.back().guard = guard;
    draft_.instrs.back().guard_negated = negated;
  }
}

std::size_t FunctionDecoder::label(const ptx::Instruction& in, const std::string& name) const {
  const auto found = function_.labels.find(name);
  if (found == function_.labels.end()) throw_unsupported(in, "the label " + name);
  return found->second;
}

void FunctionDecoder::branch(const ptx::Instruction& in) {
  if (in.operands.size() != 1) throw_unsupported(in, "this number of operands");
  DraftInstr& out = append(in, nullptr, InstrClass::control);
  out.flow = Flow::branch;
  out.targets = {label(in, in.operands[0].name)};
  guard(in, out);
}

void FunctionDecoder::branch_indexed(const ptx::Instruction& in) {
  if (in.operands.size() != 2) throw_unsupported(in, "this number of operands");
  const auto targets = function_.branch_targets.find(in.operands[1].name);
  if (targets == function_.branch_targets.end()) throw_unsupported(in, "the list of targets");
  const std::uint32_t index = read32(in, in.operands[0], ptx::Type::u32);
  DraftInstr& out = append(in, nullptr, InstrClass::control);
  out.flow = Flow::branch_indexed;
  for (const std::string& t : targets->second) out.targets.push_back(label(in, t));
  guard(in, out);
  assign_fields(out, {{index, false}}, false);
}

std::vector<std::uint32_t> FunctionDecoder::rows(const ptx::Instruction& in,
                                                 const Operand& list) const {
  std::vector<std::uint32_t> out;
  for (const Operand& o : list.elements) {
    const Symbol* s = o.kind == OpKind::symbol ? names_.symbol(o.name) : nullptr;
    if (s == nullptr || s->kind != Symbol::Kind::rows) {
      throw_unsupported(in, "a parameter that is no .param variable");
    }
    out.push_back(static_cast<std::uint32_t>(s->value));
  }
  return out;
}

// call (results), callee, (parameters), prototype; all but the callee are optional.
void FunctionDecoder::call(const ptx::Instruction& in) {
  std::size_t at = 0;
  const auto is_list = [&] {
    return at < in.operands.size() && in.operands[at].kind == OpKind::list;
  };
  std::vector<std::uint32_t> results, parameters;
  if (is_list()) results = rows(in, in.operands[at++]);
  if (at == in.operands.size()) throw_unsupported(in, "the callee");
  const Operand& callee = in.operands[at++];
  if (is_list()) parameters = rows(in, in.operands[at++]);

  std::vector<std::uint32_t> site{0};
  if (callee.kind == OpKind::symbol) {
    const auto found = callees_.find(callee.name);
    if (found == callees_.end()) {
      if (call_builtin(in, callee.name, parameters, results)) return;
      throw_unsupported(in, "the function " + callee.name);
    }
    site[0] = found->second;
  }
  site.push_back(static_cast<std::uint32_t>(parameters.size()));
  site.insert(site.end(), parameters.begin(), parameters.end());
  site.push_back(static_cast<std::uint32_t>(results.size()));
  site.insert(site.end(), results.begin(), results.end());

  const bool direct = callee.kind == OpKind::symbol;
  const std::uint32_t address = direct ? 0 : read64(in, callee, ptx::Type::b64);
  DraftInstr& out = append(in, nullptr, InstrClass::control);
  out.flow = direct ? Flow::call : Flow::call_indirect;
  out.begins_block = !direct;  // lanes with another callee execute it again
  out.extra = std::move(site);
  guard(in, out);
  if (!direct) assign_fields(out, {{address, false}}, false);
}

bool FunctionDecoder::call_builtin(const ptx::Instruction& in, const std::string& name,
                                   const std::vector<std::uint32_t>& parameters,
                                   const std::vector<std::uint32_t>& results) {
  Handler run = nullptr;
  if (name == "vprintf" && parameters.size() == 2 && results.size() == 1) run = call_vprintf;
  if (name == "__assertfail" && parameters.size() == 5) run = call_assertfail;
  if (run == nullptr) return false;
  DraftInstr& out = append(in, run, InstrClass::control);
  out.spread = {};
  out.extra = parameters;
  out.extra.insert(out.extra.end(), results.begin(), results.end());
  guard(in, out);
  return true;
}

}  // namespace assay::sim
