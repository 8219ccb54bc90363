// Declarations of variables and parameters: spaces, types, sizes and initial values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ptx/ast.h"
#include "sim/ptx/cursor.h"
#include "sim/ptx/module_names.h"

namespace assay::sim::ptx {

// .reg, .const, .global, .local, .param or .shared.
std::optional<Space> space_directive(const Token&);

// The part before the names: ".align 16 .b8".
struct DeclarationHead {
  Space space = Space::global;
  Type type = Type::none;
  std::uint32_t align = 0;   // bytes, 0: natural
  std::uint32_t vector = 1;  // elements of .v2, .v4
  bool is_extern = false;
  Linkage linkage = Linkage::internal;
  bool managed = false;
};

// Parses what follows the space.
DeclarationHead parse_declaration_head(Cursor&, Space);

// .attribute(.managed), .attribute(.unified(1, 2)): parses what follows ".attribute". True if
// managed.
bool parse_attribute(Cursor&);

// Parses what follows the name: "[4][2] = {...}". `module` is null if variables have no initial
// values here.
Variable parse_declarator(Cursor&, const DeclarationHead&, const Token& name, ModuleState* module);

// "(.param .b64 a, .reg .f32 b)" with the parentheses. Names may be _.
struct Parameter {
  Token name;
  Variable variable;
};
std::vector<Parameter> parse_parameters(Cursor&);

}  // namespace assay::sim::ptx
