// What the names in a function refer to.
#pragma once

#include <cstdint>
#include <string>

#include "sim/ptx/ast.h"
#include "sim/ptx/text_hash.h"

namespace assay::sim {

struct Symbol {
  enum class Kind : std::uint8_t {
    global,        // value: address; includes constants
    shared,        // offset in the window
    local,         // offset in the frame's local memory
    kernel_param,  // offset in the parameter block
    rows,          // for calls: offset in the frame, see ParamRows
    function,      // code address
  };
  Kind kind{};
  std::uint64_t value = 0, bytes = 0;
};

using SymbolTable = ptx::TextTable<Symbol>;

// The names visible in one function: its own first, then the module's.
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

}  // namespace assay::sim
