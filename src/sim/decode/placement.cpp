#include "sim/decode/placement.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include "sim/execution/calls.h"

namespace assay::sim {

using ptx::Space;

namespace {

std::uint64_t aligned(std::uint64_t offset, std::uint64_t align) {
  return align <= 1 ? offset : (offset + align - 1) / align * align;
}

void for_each_name(const ptx::Operand& o, const std::function<void(const std::string&)>& f) {
  if (!o.name.empty()) f(o.name);
  for (const ptx::Operand& e : o.elements) for_each_name(e, f);
}

}  // namespace

void place_kernel_params(const ptx::Function& f, KernelInfo& info) {
  std::uint64_t end = 0;
  for (const ptx::Variable& p : f.parameters) {
    end = aligned(end, p.align);
    info.param_offset.push_back(static_cast<std::uint32_t>(end));
    info.param_bytes.push_back(static_cast<std::uint32_t>(p.bytes));
    end += p.bytes;
  }
  info.params_bytes = static_cast<std::uint32_t>(end);
}

void place_locals(const ptx::Function& f, const KernelInfo* entry, Names& names, Code& code) {
  std::uint64_t end = 0;
  for (const ptx::Variable& v : f.locals) {
    if (v.space != Space::local) continue;
    end = aligned(end, v.align);
    code.local_align = std::max(code.local_align, v.align);
    names.add(v.name, {Symbol::Kind::local, end, v.bytes});
    end += v.bytes;
  }
  if (end > kMaxLocalBytes) {
    throw Unsupported(f.name + ": more than 512 KiB of local memory a thread");
  }
  for (std::size_t i = 0; entry != nullptr && i < f.parameters.size(); ++i) {
    names.add(f.parameters[i].name,
              {Symbol::Kind::kernel_param, entry->param_offset[i], f.parameters[i].bytes});
  }
  code.local_bytes = static_cast<std::uint32_t>(aligned(end, 16));
}

std::uint32_t place_rows(const ptx::Function& f, std::uint32_t base, Names& names, Code& code) {
  std::uint64_t end = base;
  const auto place = [&](const ptx::Variable& v) {
    if (v.space != Space::param) {
      throw Unsupported(f.name + ": parameters of .func in registers are not supported");
    }
    const ParamRows rows{static_cast<std::uint32_t>(end),
                         static_cast<std::uint32_t>((v.bytes + 3) / 4)};
    names.add(v.name, {Symbol::Kind::rows, rows.offset, v.bytes});
    end += std::uint64_t{rows.words} * sizeof(Lanes32);
    return rows;
  };
  if (!f.entry) {
    for (const ptx::Variable& v : f.results) code.results.push_back(place(v));
    for (const ptx::Variable& v : f.parameters) code.parameters.push_back(place(v));
  }

  // A variable of a call is live from its first to its last mention.
  struct Use {
    const ptx::Variable* variable;
    std::size_t first, last;
    std::uint64_t rows_begin, rows_end;
  };
  std::vector<Use> uses;
  ptx::TextTable<std::size_t> index;
  for (const ptx::Variable& v : f.locals) {
    if (v.space != Space::param) continue;
    index[v.name] = uses.size();
    uses.push_back({&v, f.body.size(), 0, 0, 0});
  }
  if (uses.empty()) return static_cast<std::uint32_t>(end);
  for (std::size_t i = 0; i < f.body.size(); ++i) {
    for (const ptx::Operand& o : f.body[i].operands) {
      for_each_name(o, [&](const std::string& name) {
        if (const auto found = index.find(name); found != index.end()) {
          Use& use = uses[found->second];
          use.first = std::min(use.first, i);
          use.last = std::max(use.last, i);
        }
      });
    }
  }
  std::vector<Use> placed;
  std::uint64_t top = end;
  for (Use& use : uses) {
    const std::uint64_t bytes = (use.variable->bytes + 3) / 4 * sizeof(Lanes32);
    // First fit among those that are live at the same time.
    std::uint64_t at = end;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Use& other : placed) {
        if (other.last < use.first || use.last < other.first) continue;
        if (at + bytes <= other.rows_begin || other.rows_end <= at) continue;
        at = other.rows_end;
        moved = true;
      }
    }
    use.rows_begin = at;
    use.rows_end = at + bytes;
    top = std::max(top, use.rows_end);
    names.add(use.variable->name, {Symbol::Kind::rows, at, use.variable->bytes});
    placed.push_back(use);
    // Mentions come in order, so variables that ended earlier are never needed again.
    std::erase_if(placed, [&](const Use& other) { return other.last < use.first; });
  }
  return static_cast<std::uint32_t>(top);
}

void add_functions(const ptx::Module& module, SymbolTable& symbols) {
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    symbols.try_emplace(module.functions[i].name,
                        Symbol{Symbol::Kind::function, kCodeBase + 16 * i, 0});
  }
}

SharedLayout place_shared(const ptx::Module& module,
                          const std::vector<const ptx::Function*>& functions,
                          SymbolTable& symbols) {
  std::set<std::string> named;
  for (const ptx::Function* f : functions) {
    for (const ptx::Instruction& in : f->body) {
      for (const ptx::Operand& o : in.operands) {
        for_each_name(o, [&](const std::string& name) { named.insert(name); });
      }
    }
  }
  std::vector<const ptx::Variable*> fixed, open;
  const auto take = [&](const ptx::Variable& v) {
    if (v.space == Space::shared) (v.bytes == 0 ? open : fixed).push_back(&v);
  };
  for (const ptx::Variable& v : module.variables) {
    if (named.contains(v.name)) take(v);
  }
  for (const ptx::Function* f : functions) {
    for (const ptx::Variable& v : f->locals) take(v);
  }
  std::uint64_t end = 0, align = 1;
  for (const ptx::Variable* v : fixed) {
    end = aligned(end, v->align);
    symbols[v->name] = {Symbol::Kind::shared, end, v->bytes};
    end += v->bytes;
  }
  for (const ptx::Variable* v : open) align = std::max<std::uint64_t>(align, v->align);
  const std::uint64_t dynamic = aligned(end, align);
  for (const ptx::Variable* v : open) symbols[v->name] = {Symbol::Kind::shared, dynamic, 0};
  return {static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(dynamic)};
}

}  // namespace assay::sim
