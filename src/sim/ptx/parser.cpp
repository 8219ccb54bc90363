#include "sim/ptx/parser.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "sim/ptx/function_parser.h"
#include "sim/ptx/text_hash.h"

namespace assay::sim::ptx {
namespace {

struct Linking {  // .extern, .visible, .weak, .common
  bool is_extern = false;
  Linkage linkage = Linkage::internal;
};

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : cursor_(text), lines_(module_.call_sites) {}

  Module parse() {
    version();
    target();
    while (!cursor_.at(Token::Kind::end)) directive();
    replace_aliases();
    return std::move(module_);
  }

 private:
  void version();
  void target();
  void directive();
  Linking linking();
  void variables(Space, const Linking&);
  void function(bool entry, const Linking&);
  void file();
  void alias();
  void skip_section();
  void declare(const Token& name, Declared);
  void replace_aliases();

  Cursor cursor_;
  Module module_;
  ModuleState state_;
  LineTable lines_;
  TextTable<std::string> aliases_;
};

// ".version 9.0", which must come first in a PTX text.
void ModuleParser::version() {
  if (!cursor_.accept_directive("version")) cursor_.expected("'.version' at the beginning");
  const Token number = cursor_.expect(Token::Kind::real64, "a version such as 9.0");
  const char* const end = number.text.data() + number.text.size();
  const auto major = std::from_chars(number.text.data(), end, module_.version_major);
  if (major.ec == std::errc{} && major.ptr != end && *major.ptr == '.') {
    const auto minor = std::from_chars(major.ptr + 1, end, module_.version_minor);
    if (minor.ec == std::errc{} && minor.ptr == end) return;
  }
  Cursor::fail(number, fmt::format("expected a version such as 9.0, found {}", describe(number)));
}

// ".target sm_90a, debug"
void ModuleParser::target() {
  if (!cursor_.accept_directive("target")) cursor_.expected("'.target' after the version");
  module_.target = cursor_.expect(Token::Kind::word, "an architecture such as sm_80").text;
  while (cursor_.accept(',')) cursor_.expect(Token::Kind::word, "an option of '.target'");
}

void ModuleParser::directive() {
  if (cursor_.accept(';')) return;
  const Token start = cursor_.token();
  const Linking linked = linking();
  const Token at = cursor_.expect(Token::Kind::dot_word, "a directive");
  const auto space = space_directive(at);
  if (at.text == "entry" || at.text == "func") {
    function(at.text == "entry", linked);
  } else if (space && space != Space::reg && space != Space::param) {
    variables(*space, linked);
  } else if (linked.linkage != Linkage::internal) {
    Cursor::fail(at, fmt::format("expected a function or variable after {}, found {}",
                                 describe(start), describe(at)));
  } else if (at.text == "file") {
    file();
  } else if (at.text == "section") {
    skip_section();
  } else if (at.text == "alias") {
    alias();
  } else if (at.text == "pragma") {
    skip_pragma(cursor_);
  } else if (at.text == "address_size") {
    const Token bits = cursor_.expect(Token::Kind::integer, "64");
    if (bits.value != 64) Cursor::fail(bits, "only addresses of 64 bits are supported");
  } else {
    Cursor::fail(at, fmt::format("unknown directive {}", describe(at)));
  }
}

Linking ModuleParser::linking() {
  Linking linked;
  while (cursor_.at(Token::Kind::dot_word)) {
    const std::string_view name = cursor_.token().text;
    if (name != "extern" && name != "visible" && name != "weak" && name != "common") break;
    linked.is_extern |= name == "extern";
    linked.linkage = name == "weak" || name == "common" ? Linkage::weak : Linkage::external;
    cursor_.take();
  }
  return linked;
}

// A name may be declared repeatedly, but defined only once.
void ModuleParser::declare(const Token& name, Declared declared) {
  const auto [known, fresh] = state_.names.try_emplace(name.text, declared);
  if (fresh) return;
  if (known->second.is_function != declared.is_function ||
      (known->second.defined && declared.defined)) {
    Cursor::fail(name, fmt::format("{} is declared twice", describe(name)));
  }
  known->second.defined |= declared.defined;
}

void ModuleParser::variables(Space space, const Linking& linked) {
  DeclarationHead head = parse_declaration_head(cursor_, space);
  head.is_extern = linked.is_extern;
  head.linkage = linked.linkage;
  do {
    const Token name = cursor_.expect(Token::Kind::word, "the name of a variable");
    declare(name, {false, !linked.is_extern});
    module_.variables.push_back(parse_declarator(cursor_, head, name, &state_));
  } while (cursor_.accept(','));
  cursor_.expect(';', "after a declaration");
}

void ModuleParser::function(bool entry, const Linking& linked) {
  Function function;
  function.entry = entry;
  function.linkage = linked.linkage;
  const Signature signature = parse_signature(cursor_, function);
  const bool has_body = cursor_.at('{') && !linked.is_extern;
  declare(signature.name, {true, has_body});
  if (has_body) {
    BodyParser(cursor_, module_, state_, lines_, function).parse(signature);
  } else {
    cursor_.expect(';', linked.is_extern ? "after an external function"
                                         : "or a body after the head of a function");
  }
  module_.functions.push_back(std::move(function));
}

// .file 1 "kernel.cu", time, size
void ModuleParser::file() {
  const std::uint32_t index = cursor_.expect_u32("the index of a file");
  module_.files[index] = cursor_.expect(Token::Kind::string, "the name of a file").text;
  while (cursor_.accept(',')) cursor_.expect(Token::Kind::integer, "the time or size of a file");
}

// .alias name, what it stands for;
void ModuleParser::alias() {
  const Token name = cursor_.expect(Token::Kind::word, "a function");
  cursor_.expect(',', "between the functions of '.alias'");
  const Token target = cursor_.expect(Token::Kind::word, "a function");
  cursor_.expect(';', "after '.alias'");
  for (const Token& token : {name, target}) {
    const auto known = state_.names.find(token.text);
    if (known == state_.names.end() || !known->second.is_function) {
      Cursor::fail(token, fmt::format("nothing declares the function {}", describe(token)));
    }
  }
  aliases_[std::string(name.text)] = target.text;
}

// Skips debug information: data in braces.
void ModuleParser::skip_section() {
  cursor_.expect(Token::Kind::dot_word, "the name of a section");
  cursor_.expect('{', "before the content of a section");
  for (std::size_t depth = 1; depth > 0;) {
    if (cursor_.at(Token::Kind::end)) cursor_.expected("'}' after the content of a section");
    const Token token = cursor_.take();
    if (token.is('{')) ++depth;
    if (token.is('}')) --depth;
  }
}

void ModuleParser::replace_aliases() {
  if (aliases_.empty()) return;
  for_each_use(module_, [this](std::string& symbol) {
    if (const auto alias = aliases_.find(symbol); alias != aliases_.end()) symbol = alias->second;
  });
}

}  // namespace

Module parse(std::string_view text) { return ModuleParser(text).parse(); }

}  // namespace assay::sim::ptx
