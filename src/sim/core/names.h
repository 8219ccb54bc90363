// What the names in a function stand for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/program.h"
#include "sim/device.h"
#include "sim/ptx/ast.h"
#include "sim/ptx/text_hash.h"

namespace assay::sim {

struct Symbol {
  enum class Kind : std::uint8_t {
    global,        // value: address, constants too
    shared,        // offset in the window
    local,         // offset in the frame's local memory
    kernel_param,  // offset in the parameter block
    rows,          // of a call: offset in the frame, see ParamRows
    function,      // code address
  };
  Kind kind{};
  std::uint64_t value = 0, bytes = 0;
};

using SymbolTable = ptx::TextTable<Symbol>;

// Variables of a module in global memory, by name.
using VariableTable = std::map<std::string, VariableInfo, std::less<>>;

// The names visible in one function: its own first, then those of the module.
class Names {
 public:
  Names(const ptx::Function&, const SymbolTable& module);

  // none if it is not a register.
  ptx::Type register_type(const std::string& name) const;
  const Symbol* symbol(const std::string& name) const;

  void add(const std::string& name, const Symbol& s) { own_[name] = s; }

 private:
  ptx::TextTable<ptx::Type> registers_;
  SymbolTable own_;
  const SymbolTable& module_;
};

// Offsets of a kernel's parameters.
void place_kernel_params(const ptx::Function&, KernelInfo&);

// Adds .local variables and, for an entry, its parameters; returns the bytes of local memory.
std::uint32_t place_locals(const ptx::Function&, const KernelInfo*, Names&);

// Rows of the .param variables of a .func and of its calls; returns the bytes of frame they take
// from `base` on. Variables of calls that are not in use at the same time share rows.
std::uint32_t place_rows(const ptx::Function&, std::uint32_t base, Names&, Code&);

// A code address for each function of the module.
void add_functions(const ptx::Module&, SymbolTable&);

struct SharedLayout {
  std::uint32_t static_bytes = 0;    // of variables with a size
  std::uint32_t dynamic_offset = 0;  // of those without
};
// Places the .shared variables that the functions declare or name.
SharedLayout place_shared(const ptx::Module&, const std::vector<const ptx::Function*>&,
                          SymbolTable&);

}  // namespace assay::sim
