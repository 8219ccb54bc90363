#include "sim/decode/decode.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <unordered_set>

#include "sim/decode/function_decoder.h"
#include "sim/execution/block_run.h"
#include "sim/execution/calls.h"
#include "sim/execution/describe.h"

namespace assay::sim {
namespace {

using ptx::Operand;

constexpr std::uint32_t kMaxRegisters = 255;  // per thread

struct Reachable {
  std::vector<const ptx::Function*> functions;
  std::size_t named = 0;  // the first `named`; the others can only be called through pointers
};

// The entry, then all functions that a reachable body names. Once a function is called through a
// pointer, which may come from anywhere, all functions of the module.
Reachable reachable(const ptx::Module& module, const ptx::Function& entry) {
  ptx::TextTable<const ptx::Function*> defined;
  for (const ptx::Function& f : module.functions) {
    if (f.defined && !f.entry) defined.emplace(f.name, &f);
  }
  std::vector<const ptx::Function*> found{&entry};
  std::unordered_set<const ptx::Function*> known{&entry};
  const auto add = [&](const ptx::Function* f) {
    if (known.insert(f).second) found.push_back(f);
  };
  const std::function<void(const Operand&)> visit = [&](const Operand& o) {
    if (o.kind == Operand::Kind::symbol) {
      if (const auto f = defined.find(o.name); f != defined.end()) add(f->second);
    }
    for (const Operand& e : o.elements) visit(e);
  };
  bool indirect = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const ptx::Instruction& in : found[i]->body) {
      for (const Operand& o : in.operands) visit(o);
      indirect |= in.opcode == "call" &&
                  std::any_of(in.operands.begin(), in.operands.end(),
                              [](const Operand& o) { return o.kind == Operand::Kind::reg; });
    }
  }
  const std::size_t named = found.size();
  for (const ptx::Function& f : module.functions) {
    if (indirect && f.defined && !f.entry) add(&f);
  }
  return {std::move(found), named};
}

// "kernel f(int*)", short enough for a message.
std::string readable_name(const ptx::Function& f) {
  constexpr std::size_t kLongest = 160;
  std::string name = demangled(f.name);
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "...";
  return (f.entry ? "kernel " : "function ") + name;
}

KernelInfo kernel_info(const ptx::Function& entry) {
  KernelInfo info;
  info.name = entry.name;
  place_kernel_params(entry, info);
  info.max_threads = kMaxThreadsPerBlock;
  const std::uint32_t(&cluster)[3] = entry.required_cluster;
  info.required_cluster = {cluster[0], cluster[1], cluster[2]};
  if (entry.max_threads != 0) info.max_threads = std::min(info.max_threads, entry.max_threads);
  return info;
}

[[noreturn]] void refuse(Warp& w, const Instr& in) {
  throw Unsupported(w.block->grid->program->refusals[in.imm]);
}

// Takes the place of an unsupported body.
FunctionDraft refusal(std::size_t index) {
  FunctionDraft draft;
  DraftInstr call, end;
  call.run = refuse;
  call.imm = index;
  call.info.counted = end.info.counted = false;
  end.flow = Flow::ret;
  draft.instrs = {call, end};
  draft.first_of = {0};
  return draft;
}

// `named`: another body names the function, or it is the entry.
std::unique_ptr<Code> decode_function(const ptx::Module& module, const ptx::Function& f,
                                      const SymbolTable& symbols,
                                      const ptx::TextTable<std::uint32_t>& callees, bool named,
                                      Program& program) {
  auto code = std::make_unique<Code>();
  code->name = f.name;
  Names names(f, symbols);
  place_locals(f, f.entry ? &program.info : nullptr, names, *code);
  const std::uint32_t rows_end = place_rows(f, 0, names, *code);
  FunctionDecoder decoder(f, names, callees);
  FunctionDraft draft;
  std::size_t at = 0;
  try {
    draft = decoder.decode(at);
  } catch (const Unsupported& u) {
    const std::string why = std::string(u.what()) + ", in " + readable_name(f) + " (" +
                            module.describe(f.body.at(at).where) + ")";
    if (named) throw Unsupported(why);
    draft = refusal(program.refusals.size());
    program.refusals.push_back(why);
  }
  draft.rows_end = rows_end;
  const std::vector<DraftBlock> blocks = find_blocks(draft);
  const FrameLayout layout = lay_out_frame(draft, blocks);
  emit(draft, blocks, layout, *code);
  code->first_pc = program.instructions;
  code->first_block = program.blocks;
  program.instructions += static_cast<std::uint32_t>(code->code.size());
  program.blocks += static_cast<std::uint32_t>(code->blocks.size());
  program.ordered |= decoder.ordered();
  program.polls |= decoder.polls();
  program.uses_cluster |= decoder.uses_cluster();
  program.uses_reserved_shared |= decoder.uses_reserved_shared();
  program.info.registers = std::max(program.info.registers, layout.register_words);
  return code;
}

}  // namespace

std::unique_ptr<Program> build_program(const ptx::Module& module, const VariableTable& variables,
                                       const ptx::Function& entry) {
  auto program = std::make_unique<Program>();
  program->module = &module;
  if (entry.blocks_are_clusters)
    throw Unsupported(".blocksareclusters is not supported, in " + readable_name(entry));
  program->info = kernel_info(entry);
  std::copy(std::begin(entry.required_threads), std::end(entry.required_threads),
            std::begin(program->required_threads));

  const auto [functions, named] = reachable(module, entry);
  SymbolTable symbols;
  for (const auto& [name, v] : variables) {
    symbols[name] = {Symbol::Kind::global, v.address, v.bytes};
  }
  add_functions(module, symbols);
  const SharedLayout shared = place_shared(module, functions, symbols);
  program->info.static_shared_bytes = shared.static_bytes;
  program->dynamic_shared_offset = shared.dynamic_offset;

  ptx::TextTable<std::uint32_t> callees;
  for (std::size_t i = 1; i < functions.size(); ++i) {
    callees.emplace(functions[i]->name, static_cast<std::uint32_t>(i));
  }
  for (const ptx::Function* f : functions) {
    const bool is_named = program->codes.size() < named;
    program->codes.push_back(decode_function(module, *f, symbols, callees, is_named, *program));
    if (!f->entry) {
      program->by_address.emplace(symbols.at(f->name).value, program->codes.back().get());
    }
  }
  program->info.local_bytes = program->entry().local_bytes;
  return program;
}

std::unique_ptr<Program> outline_program(const ptx::Module& module, const ptx::Function& entry) {
  auto program = std::make_unique<Program>();
  program->module = &module;
  program->info = kernel_info(entry);
  program->info.registers = kMaxRegisters;
  SymbolTable symbols;
  const SharedLayout shared = place_shared(module, reachable(module, entry).functions, symbols);
  program->info.static_shared_bytes = shared.static_bytes;
  program->dynamic_shared_offset = shared.dynamic_offset;
  return program;
}

}  // namespace assay::sim
