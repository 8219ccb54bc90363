#include <fmt/format.h>

#include <utility>

#include "sim/ptx/function_parser.h"

namespace assay::sim::ptx {

BodyParser::BodyParser(Cursor& cursor, Module& module, ModuleState& state, LineTable& lines,
                       Function& function)
    : cursor_(cursor),
      module_(module),
      state_(state),
      lines_(lines),
      function_(function),
      scopes_(function, state.names),
      instructions_(cursor, scopes_) {}

void BodyParser::parse(Signature signature) {
  lines_.begin_function();
  function_.defined = true;
  scopes_.open(cursor_.take());
  declare(signature.results, function_.results);
  declare(signature.parameters, function_.parameters);
  while (scopes_.depth() > 0) statement();
}

void BodyParser::declare(std::vector<Parameter>& parameters, std::vector<Variable>& variables) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Token& name = parameters[i].name;
    if (name.text == "_") continue;
    if (variables[i].space == Space::reg) {
      scopes_.declare_register(name, variables[i].type);
      variables[i].name = scopes_.find(name.text)->name;
    } else {
      variables[i].name = scopes_.declare_variable(name);
    }
  }
}

void BodyParser::statement() {
  const Token token = cursor_.token();
  switch (token.kind) {
    case Token::Kind::word:
      cursor_.take();
      if (cursor_.accept(':')) {
        label(token);
      } else {
        instructions_.parse(token, new_instruction(token.line));
      }
      return;
    case Token::Kind::dot_word: directive(); return;
    case Token::Kind::symbol: break;
    default: cursor_.expected("an instruction, or '}' at the end of the function");
  }
  if (token.is('@')) {
    Instruction& instruction = new_instruction(token.line);
    instructions_.guard(instruction);
    instructions_.parse(cursor_.expect(Token::Kind::word, "an instruction"), instruction);
  } else if (token.is('{')) {
    scopes_.open(cursor_.take());
  } else if (token.is('}')) {
    cursor_.take();
    scopes_.close();
  } else {
    cursor_.expect(';', "or an instruction");
  }
}

Instruction& BodyParser::new_instruction(std::uint32_t line) {
  Instruction& instruction = function_.body.emplace_back();
  instruction.where = lines_.at(line);
  return instruction;
}

void BodyParser::directive() {
  const Token at = cursor_.take();
  const auto space = space_directive(at);
  if (space == Space::reg) {
    registers();
  } else if (space.has_value()) {
    variables(*space);
  } else if (at.text == "loc") {
    lines_.parse(cursor_);
  } else if (at.text == "pragma") {
    skip_pragma(cursor_);
  } else {
    Cursor::fail(at, fmt::format("unknown directive {} in a function", describe(at)));
  }
}

// "%p<8>, %q;"
void BodyParser::registers() {
  const DeclarationHead head = parse_declaration_head(cursor_, Space::reg);
  do {
    const Token name = cursor_.expect(Token::Kind::word, "the name of a register");
    if (cursor_.accept('<')) {
      const Token count = cursor_.expect(Token::Kind::integer, "a number of registers");
      cursor_.expect('>', "after a number of registers");
      scopes_.declare_registers(name, head.type, count.value);
    } else {
      scopes_.declare_register(name, head.type);
    }
  } while (cursor_.accept(','));
  cursor_.expect(';', "after a declaration");
}

void BodyParser::variables(Space space) {
  const DeclarationHead head = parse_declaration_head(cursor_, space);
  const bool is_static = space == Space::global || space == Space::constant;
  do {
    const Token name = cursor_.expect(Token::Kind::word, "the name of a variable");
    Variable variable = parse_declarator(cursor_, head, name, is_static ? &state_ : nullptr);
    variable.name = is_static ? scopes_.declare_static(name) : scopes_.declare_variable(name);
    (is_static ? module_.variables : function_.locals).push_back(std::move(variable));
  } while (cursor_.accept(','));
  cursor_.expect(';', "after a declaration");
}

// Labels of .branchtargets and similar directives name what follows them instead of a place.
void BodyParser::label(const Token& token) {
  const std::string name(scopes_.declare_label(token));
  if (cursor_.accept_directive("branchtargets")) {
    branch_targets(name);
  } else if (cursor_.accept_directive("calltargets")) {
    call_targets(name);
  } else if (cursor_.accept_directive("callprototype")) {
    function_.prototypes[name] = parse_prototype(cursor_);
  } else {
    function_.labels[name] = function_.body.size();
  }
}

void BodyParser::branch_targets(const std::string& name) {
  std::vector<Token> tokens;
  do tokens.push_back(cursor_.expect(Token::Kind::word, "a label"));
  while (cursor_.accept(','));
  cursor_.expect(';', "after '.branchtargets'");
  std::vector<std::string>& targets = function_.branch_targets[name];
  for (const Token& token : tokens) targets.emplace_back(token.text);
  for (std::size_t i = 0; i < tokens.size(); ++i) scopes_.refer_to_label(tokens[i], &targets[i]);
}

void BodyParser::call_targets(const std::string& name) {
  std::vector<std::string>& targets = function_.call_targets[name];
  do {
    const Token target = cursor_.expect(Token::Kind::word, "a function");
    if (!scopes_.module_has(target.text)) {
      Cursor::fail(target, fmt::format("nothing declares {}", describe(target)));
    }
    targets.emplace_back(target.text);
  } while (cursor_.accept(','));
  cursor_.expect(';', "after '.calltargets'");
}

}  // namespace assay::sim::ptx
