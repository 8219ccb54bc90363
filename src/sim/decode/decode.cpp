#include "sim/decode/decode.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <unordered_set>

#include "sim/decode/function_decoder.h"
#include "sim/execution/calls.h"
#include "sim/execution/describe.h"

namespace assay::sim {
namespace {

using ptx::Operand;

// The entry, then all functions that a body names; all of the module once one is called through a
// pointer, which may come from anywhere.
std::vector<const ptx::Function*> reachable(const ptx::Module& module, const ptx::Function& entry) {
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
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const ptx::Instruction& in : found[i]->body) {
      for (const Operand& o : in.operands) visit(o);
      const bool indirect =
          in.opcode == "call" &&
          std::any_of(in.operands.begin(), in.operands.end(),
                      [](const Operand& o) { return o.kind == Operand::Kind::reg; });
      if (!indirect) continue;
      for (const ptx::Function& f : module.functions) {
        if (f.defined && !f.entry) add(&f);
      }
    }
  }
  return found;
}

KernelInfo kernel_info(const ptx::Function& entry) {
  if (entry.clusters)
    throw Unsupported("kernel " + demangled(entry.name) + ": clusters of thread blocks");
  KernelInfo info;
  info.name = entry.name;
  place_kernel_params(entry, info);
  info.max_threads = kMaxThreadsPerBlock;
  if (entry.max_threads != 0) info.max_threads = std::min(info.max_threads, entry.max_threads);
  return info;
}

std::unique_ptr<Code> decode_function(const ptx::Module& module, const ptx::Function& f,
                                      const SymbolTable& symbols,
                                      const ptx::TextTable<std::uint32_t>& callees,
                                      Program& program) {
  auto code = std::make_unique<Code>();
  code->name = f.name;
  Names names(f, symbols);
  code->local_bytes = place_locals(f, f.entry ? &program.info : nullptr, names);
  const std::uint32_t rows_end = place_rows(f, 0, names, *code);
  FunctionDecoder decoder(f, names, callees);
  FunctionDraft draft;
  std::size_t at = 0;
  try {
    draft = decoder.decode(at);
  } catch (const Unsupported& u) {
    throw Unsupported((f.entry ? "kernel " : "function ") + f.name + " (" +
                      module.describe(f.body.at(at).where) + "): " + u.what());
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
  program.info.registers = std::max(program.info.registers, layout.register_words);
  return code;
}

}  // namespace

std::unique_ptr<Program> build_program(const ptx::Module& module, const VariableTable& variables,
                                       const ptx::Function& entry) {
  auto program = std::make_unique<Program>();
  program->module = &module;
  program->info = kernel_info(entry);
  std::copy(std::begin(entry.required_threads), std::end(entry.required_threads),
            std::begin(program->required_threads));

  const std::vector<const ptx::Function*> functions = reachable(module, entry);
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
    program->codes.push_back(decode_function(module, *f, symbols, callees, *program));
    if (!f->entry) {
      program->by_address.emplace(symbols.at(f->name).value, program->codes.back().get());
    }
  }
  program->info.local_bytes = program->entry().local_bytes;
  return program;
}

}  // namespace assay::sim
