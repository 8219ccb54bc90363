// The meaning of the names in a function.
//
// Scopes nest and hide. The AST has no scopes, so every declared name is made unique in its
// function. Registers, variables and parameters must be declared before they are used. Labels may
// come later, so a reference to one is resolved when its scope ends. Views point into the text, or
// into `renamed_`.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ptx/ast.h"
#include "sim/ptx/lexer.h"
#include "sim/ptx/module_names.h"
#include "sim/ptx/text_hash.h"

namespace assay::sim::ptx {

struct Symbol {
  bool is_register = false;  // otherwise a variable; parameters are variables
  std::string_view name;     // unique in the function
};

class Scopes {
 public:
  // Registers are added to `function`. Both arguments must outlive the scopes.
  Scopes(Function& function, const ModuleNames& module) : function_(function), module_(module) {}

  void open(const Token& brace);
  // Resolves the labels of the innermost scope; the outermost scope reports the unresolved ones.
  void close();
  std::size_t depth() const { return scopes_.size(); }

  // These throw if the same scope already declares the name.
  void declare_register(const Token& name, Type);
  void declare_registers(const Token& prefix, Type, std::uint64_t count);  // %r<count>
  std::string_view declare_variable(const Token& name);                    // the unique name
  std::string_view declare_static(const Token& name);  // likewise, unique in the module
  std::string_view declare_label(const Token& name);   // likewise

  // A register or variable of the function; nullptr for other names. Valid until the next
  // declaration.
  const Symbol* find(std::string_view name);
  bool module_has(std::string_view name) const { return module_.contains(name); }

  // `*name`, which must not move, is a label of this or an enclosing scope, declared before or
  // after, and becomes its unique name; otherwise it is a name of the module.
  void refer_to_label(const Token& at, std::string* name);

 private:
  struct Range {  // %r<count>
    Type type = Type::none;
    std::uint64_t count = 0;
  };
  struct Binding {
    Symbol symbol;
    std::size_t depth = 0;           // of the scope that declares it
    const Binding* outer = nullptr;  // the binding that it hides
  };
  struct Name {
    const Binding* binding = nullptr;  // the innermost
    std::uint32_t uses = 0;            // declarations so far, including ended ones
  };
  struct Scope {
    std::vector<Name*> declared;
    ViewTable<Range> ranges;             // by prefix
    ViewTable<std::string_view> labels;  // -> unique name
    std::size_t first_reference = 0;
  };
  struct Reference {
    std::string* name;
    Token at;
  };

  std::string_view unique(std::string_view name, Name&);
  const Symbol& bind(Name&, const Symbol&, std::size_t depth);
  Name& new_name(const Token& name);
  void count_registers(const Token& at, std::uint64_t count);
  const Symbol* find_in_ranges(std::size_t depth, std::string_view name);

  Function& function_;
  const ModuleNames& module_;
  std::vector<Scope> scopes_;
  ViewTable<Name> names_;
  std::deque<Binding> bindings_;
  std::deque<std::string> renamed_;
  std::vector<Reference> references_;      // not yet resolved, in text order
  std::vector<std::size_t> range_depths_;  // of open scopes that declare %r<count>, ascending
  std::uint64_t registers_ = 0;            // declared
};

}  // namespace assay::sim::ptx
