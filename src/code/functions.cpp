#include "code/functions.h"

#include <algorithm>
#include <array>

#include "code/tokens.h"

namespace assay::sources {
namespace {

using Index = std::int32_t;  // of tokens, scopes and functions; sources are far below 2 GiB
constexpr Index kNone = -1;
constexpr Index kLongestWalk = 64;  // longest walk backwards, in tokens

enum class Control : std::uint8_t { none, if_, else_, loop, do_, do_tail, switch_, try_, catch_ };

// What an opening bracket begins, or the header of a statement without one.
enum class Kind : std::uint8_t {
  space,      // a namespace, extern "C", or other scope of declarations
  type,       // class, struct, union, enum
  function,   // a function's body
  control,    // a control statement with braces
  statement,  // a control statement without braces
  lambda,
  block,
  values,  // braces of an initializer, or not understood: the statement goes on
};

bool holds_declarations(Kind kind) { return kind == Kind::space || kind == Kind::type; }

template <std::size_t N>
bool among(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, text) != words.end();
}

// Words before a bracket that are not function names.
constexpr auto kNoNames = std::to_array<std::string_view>(
    {"alignas",       "__align__",     "alignof",  "__launch_bounds__",
     "__attribute__", "__declspec",    "decltype", "noexcept",
     "requires",      "explicit",      "asm",      "__asm__",
     "sizeof",        "static_assert", "if",       "for",
     "while",         "switch",        "catch",    "return",
     "throw",         "defined",       "template"});
// Words that may appear between the parameters and the body.
constexpr auto kQualifiers =
    std::to_array<std::string_view>({"const", "volatile", "noexcept", "override", "final", "throw",
                                     "try", "requires", "mutable", "__attribute__"});
constexpr auto kTypes =
    std::to_array<std::string_view>({"auto", "bool", "char", "const", "double", "float", "int",
                                     "long", "short", "signed", "unsigned", "void", "volatile"});

// The part of a declaration read so far. Indices refer to tokens.
struct Head {
  Index first = kNone;
  Index candidate = kNone;  // the name before the currently open bracket
  Index pending = kNone;    // the name before a closed bracket; what follows decides
  Index function = kNone;   // the name, once known to be a function's
  Index type = kNone;       // the last word of a class's name
  Index operator_at = kNone;
  Index angles = 0;
  bool is_space = false, is_type = false, type_named = false, has_value = false;
  bool has_members = false;  // : a_(1), b_{2}
  bool has_requires = false;
};

struct State {
  Index scope = kNone;
  Index brackets = 0;      // open ( in this scope
  Index lambda = kNone;    // number of brackets around a lambda whose body is yet to come
  Index previous = kNone;  // token
  Index header_brackets = 0;
  Control pending = Control::none;  // a control statement whose header is being read
  bool header_done = false;         // its statement follows
  bool after_do = false;            // the next while ends a do
  Head head;
};

struct Scope {
  Index function = kNone;
  Index nesting = 0;
  Index name = kNone;  // of a class
  Kind kind = Kind::space;
  Control control = Control::none;
  State outside;  // the state before the bracket
};

struct Branch {  // of #if
  State before;
  bool never = false;  // the branch is skipped
};

class Reader {
 public:
  explicit Reader(std::string_view source) : tokens_(tokens_of(source)) {
    last_line_ = tokens_.empty() ? 1 : tokens_.back().line;
  }

  std::vector<Function> run() {
    for (at_ = 0; at_ < static_cast<Index>(tokens_.size()); ++at_) {
      if (token().kind == Token::Kind::directive) {
        directive();
        continue;
      }
      if (skipping_ > 0) continue;
      if (holds_declarations(kind())) {
        declaration();
      } else {
        statement();
      }
      state_.previous = at_;
    }
    return finished();
  }

 private:
  struct Draft {
    Function function;
    std::int64_t first_line = 0, last_line = 0;  // 0: not closed yet
    bool dropped = false;
  };

  const Token& token(Index index) const { return tokens_[static_cast<std::size_t>(index)]; }
  const Token& token() const { return token(at_); }
  bool was(std::string_view text) const {
    return state_.previous != kNone && token(state_.previous).is(text);
  }
  bool was_word() const {
    return state_.previous != kNone && token(state_.previous).kind == Token::Kind::word;
  }
  // Skips directives, at most once for each token, because both directives and calls can be many.
  bool next_is(std::string_view text) {
    const auto end = static_cast<Index>(tokens_.size());
    if (next_ <= at_) next_ = at_ + 1;
    while (next_ < end && token(next_).kind == Token::Kind::directive) ++next_;
    return next_ < end && token(next_).is(text);
  }
  Scope& scope() { return scopes_[static_cast<std::size_t>(state_.scope)]; }
  const Scope& scope() const { return scopes_[static_cast<std::size_t>(state_.scope)]; }
  Kind kind() const { return state_.scope == kNone ? Kind::space : scope().kind; }
  Index function() const { return state_.scope == kNone ? kNone : scope().function; }
  Draft& draft(Index index) { return drafts_[static_cast<std::size_t>(index)]; }

  // --- preprocessor ----------------------------------------------------------------------------

  void directive() {
    const Token& t = token();
    if (t.is("if") || t.is("ifdef") || t.is("ifndef")) {
      // Nothing inside a skipped branch is read.
      branches_.push_back({state_, t.never});
      if (t.never || skipping_ > 0) ++skipping_;
      return;
    }
    if (branches_.empty()) return;
    if (t.text.starts_with("el")) {  // else, elif, elifdef
      Branch& branch = branches_.back();
      if (skipping_ > 1 || (skipping_ == 1 && !branch.never)) return;
      if (branch.never) {
        branch.never = false;
        --skipping_;
        return;
      }
      drop_left_open(branch.before);
      state_ = branch.before;
    } else if (t.is("endif")) {
      if (skipping_ > 0) --skipping_;
      branches_.pop_back();
    }
  }

  // Drops a function begun but not ended in one branch: another branch begins it again.
  void drop_left_open(const State& before) {
    const Index now = function();
    const Index then =
        before.scope == kNone ? kNone : scopes_[static_cast<std::size_t>(before.scope)].function;
    if (now != kNone && now != then && draft(now).last_line == 0) draft(now).dropped = true;
  }

  // --- scopes ----------------------------------------------------------------------------------

  void open(Kind kind, Control control = Control::none) {
    Scope inner;
    inner.function = function();
    inner.nesting = state_.scope == kNone ? 0 : scope().nesting;
    inner.kind = kind;
    inner.control = control;
    inner.outside = state_;
    if (kind == Kind::function) inner.nesting = 0;
    if (kind == Kind::type) inner.name = state_.head.type;
    if (kind == Kind::control || kind == Kind::statement || kind == Kind::lambda) {
      ++inner.nesting;
      if (inner.function != kNone) {
        std::int64_t& deepest = draft(inner.function).function.nesting;
        deepest = std::max<std::int64_t>(deepest, inner.nesting);
      }
    }
    scopes_.push_back(inner);
    const Index previous = state_.previous, brackets = state_.brackets;
    state_ = {};
    state_.previous = previous;
    state_.scope = static_cast<Index>(scopes_.size()) - 1;
    if (kind == Kind::statement) state_.brackets = brackets;
  }

  // Leaves the innermost scope; keeps scopes that an #else may return to.
  void leave() {
    const Index left = state_.scope;
    const Index previous = state_.previous;
    state_ = scope().outside;
    state_.previous = previous;
    if (branches_.empty()) scopes_.resize(static_cast<std::size_t>(left));
  }

  void open_function() {
    const Head& head = state_.head;
    Draft d;
    d.function.name = name_at(head.function);
    d.function.line = token(head.function).line;
    d.first_line = token(head.first).line;
    drafts_.push_back(std::move(d));
    state_.head = {};
    open(Kind::function);
    scope().function = static_cast<Index>(drafts_.size()) - 1;
  }

  void close() {
    while (kind() == Kind::statement) leave();
    if (state_.scope == kNone) return;  // unbalanced
    const Scope left = scope();
    if (left.kind == Kind::function) draft(left.function).last_line = token().line;
    leave();
    if (left.kind == Kind::control || left.kind == Kind::block) end_statement(left.control);
  }

  // Ends the brace-less statements that end with this statement. `control` is the statement whose
  // braces closed.
  void end_statement(Control control) {
    for (;;) {
      if (control == Control::if_ && next_is("else")) return;
      if ((control == Control::try_ || control == Control::catch_) && next_is("catch")) return;
      if (control == Control::do_ && next_is("while")) {
        state_.after_do = true;
        return;
      }
      if (kind() != Kind::statement) return;
      control = scope().control;
      leave();
    }
  }

  // --- declarations ----------------------------------------------------------------------------

  void declaration() {
    Head& head = state_.head;
    const Token& t = token();
    if (head.first == kNone && !t.is(";") && !t.is("}")) head.first = at_;
    if (head.pending != kNone) decide(t);
    if (t.kind == Token::Kind::word) return word_of_head(t);
    if (t.kind != Token::Kind::sign) return;
    if (t.is("(")) return open_bracket_of_head();
    if (t.is(")")) return close_bracket_of_head();
    if (t.is("{")) return open_brace();
    if (t.is("}")) {
      state_.head = {};
      return close();
    }
    if (t.is(";")) {
      state_.head = {};
      state_.brackets = 0;
      return;
    }
    if (state_.brackets > 0 || head.operator_at != kNone) return;
    if (t.is("<") && was_word() && !is_shift()) ++head.angles;
    if (t.is(">") && head.angles > 0) --head.angles;
    if (head.angles > 0) return;
    if (t.is("=")) head.has_value = true;
    if (t.is(":")) colon_of_head();
  }

  // Whether this sign is the first half of <<, as in `int N = 1 << 3`: no number begins an argument
  // list, and no name is followed by an empty one that opens another.
  bool is_shift() {
    const char first = token(state_.previous).text.front();
    return (first >= '0' && first <= '9') || next_is("<");
  }

  // Decides by the token after the brackets whether the name before them is a function's.
  void decide(const Token& t) {
    Head& head = state_.head;
    const bool body = t.is("{") || t.is(":") || t.is("->") || t.is("[") || t.is("&") || t.is("&&");
    if (body || (t.kind == Token::Kind::word && among(t.text, kQualifiers)))
      head.function = head.pending;
    head.pending = kNone;
  }

  void word_of_head(const Token& t) {
    Head& head = state_.head;
    if (state_.brackets > 0 || head.angles > 0) return;
    if (t.is("operator")) head.operator_at = at_;
    if (t.is("namespace")) head.is_space = true;
    if (t.is("requires")) head.has_requires = true;
    if (head.function != kNone || head.operator_at != kNone) return;
    if (t.is("class") || t.is("struct") || t.is("union") || t.is("enum")) {
      head.is_type = true;
    } else if (head.is_type && !head.type_named && !t.is("final") && !among(t.text, kNoNames)) {
      head.type = at_;
    }
  }

  void open_bracket_of_head() {
    Head& head = state_.head;
    const bool outermost = state_.brackets++ == 0 && head.angles == 0;
    if (!outermost || head.function != kNone) return;
    if (head.operator_at != kNone) {
      if (state_.previous == head.operator_at && next_is(")")) return;  // operator()
      head.candidate = head.operator_at;
      head.operator_at = kNone;
    } else if (was_word()) {
      if (!among(token(state_.previous).text, kNoNames)) head.candidate = state_.previous;
    } else if (was(">")) {
      head.candidate = before_angles(state_.previous);
    }
  }

  void close_bracket_of_head() {
    Head& head = state_.head;
    if (state_.brackets > 0) --state_.brackets;
    if (state_.brackets > 0) return;
    head.pending = head.candidate;
    head.candidate = kNone;
  }

  void colon_of_head() {
    Head& head = state_.head;
    head.type_named = true;
    if (head.function != kNone) head.has_members = true;
    if (was("public") || was("private") || was("protected")) head = {};
  }

  void open_brace() {
    Head& head = state_.head;
    const bool inside = state_.brackets > 0 || head.angles > 0;
    const bool member = head.has_members && (was_word() || was(">"));
    if (inside || member || head.has_value) return open(Kind::values);
    if (head.function != kNone) return open_function();
    if (head.is_space || token(head.first).is("extern")) return open_fresh(Kind::space);
    if (head.is_type) return open_fresh(Kind::type);
    if (head.has_requires) return open(Kind::values);
    open_fresh(Kind::space);
  }

  // Opens a scope after which a new declaration begins.
  void open_fresh(Kind kind) {
    open(kind);
    scope().outside.head = {};
  }

  // --- names -----------------------------------------------------------------------------------

  // The word before <...>, which ends at `angle`.
  Index before_angles(Index angle) const {
    Index depth = 0;
    for (Index i = angle; i > 0 && angle - i < kLongestWalk; --i) {
      if (token(i).is(">")) ++depth;
      if (token(i).is("<") && --depth == 0)
        return token(i - 1).kind == Token::Kind::word ? i - 1 : kNone;
    }
    return kNone;
  }

  static constexpr std::size_t kLongestName = 200;

  std::string own_name(Index at) const {
    std::string name(token(at).text.substr(0, kLongestName));
    if (name == "operator") {
      for (Index i = at + 1; i < at + 8 && i < static_cast<Index>(tokens_.size()); ++i) {
        if (token(i).is("(") && i > at + 1) break;
        if (token(i).kind == Token::Kind::word) name += ' ';
        name += token(i).text.substr(0, kLongestName);
      }
    }
    return at > 0 && token(at - 1).is("~") ? "~" + name : name;
  }

  std::string name_at(Index at) const {
    constexpr int kMostScopes = 8;
    std::string name = own_name(at);
    Index left = at > 0 && token(at - 1).is("~") ? at - 2 : at - 1;
    for (int i = 0; i < kMostScopes && left > 0 && token(left).is("::"); ++i) {
      const Index word = token(left - 1).is(">") ? before_angles(left - 1) : left - 1;
      if (word == kNone || token(word).kind != Token::Kind::word) break;
      name.insert(0, "::").insert(0, token(word).text.substr(0, kLongestName));
      left = word - 1;
    }
    int seen = 0;
    for (Index i = state_.scope; i != kNone && seen < kMostScopes; ++seen) {
      const Scope& around = scopes_[static_cast<std::size_t>(i)];
      if (around.kind == Kind::type && around.name != kNone)
        name.insert(0, "::").insert(0, token(around.name).text.substr(0, kLongestName));
      i = around.outside.scope;
    }
    return name.substr(0, kLongestName);
  }

  // --- statements ------------------------------------------------------------------------------

  void statement() {
    const Token& t = token();
    if (t.kind == Token::Kind::word) {
      word_of_statement(t);
    } else if (t.is("{")) {
      open_block();
    } else if (t.is("}")) {
      close();
    } else if (t.is(";")) {
      semicolon();
    } else {
      sign(t);
    }
  }

  void decision() {
    if (function() != kNone) ++draft(function()).function.complexity;
  }

  // Begins a statement without braces after a header.
  void begin_statement() {
    if (state_.pending == Control::none || !state_.header_done) return;
    const Control control = state_.pending;
    state_.pending = Control::none;
    // A semicolon leaves all of them, and an #else may return into them again.
    constexpr std::int64_t kMostNested = 256;
    const bool deep = state_.scope != kNone && scope().nesting >= kMostNested;
    if (control != Control::do_tail && !deep) open(Kind::statement, control);
  }

  void begin_control(Control control, bool has_header) {
    begin_statement();
    state_.pending = control;
    state_.header_done = !has_header;
    state_.header_brackets = state_.brackets;
  }

  void word_of_statement(const Token& t) {
    if (t.is("if")) {
      decision();
      begin_control(Control::if_, true);
    } else if (t.is("for")) {
      decision();
      begin_control(Control::loop, true);
    } else if (t.is("while")) {
      decision();
      const bool tail = state_.after_do;
      state_.after_do = false;
      begin_control(tail ? Control::do_tail : Control::loop, true);
    } else if (t.is("switch")) {
      begin_control(Control::switch_, true);
    } else if (t.is("catch")) {
      decision();
      begin_control(Control::catch_, true);
    } else if (t.is("do")) {
      begin_control(Control::do_, false);
    } else if (t.is("try")) {
      begin_control(Control::try_, false);
    } else if (t.is("else")) {
      if (!next_is("if")) begin_control(Control::else_, false);
    } else {
      if (t.is("case") || t.is("and") || t.is("or")) decision();
      begin_statement();
    }
  }

  void sign(const Token& t) {
    begin_statement();
    if (t.is("(")) {
      ++state_.brackets;
    } else if (t.is(")")) {
      if (state_.brackets > 0) --state_.brackets;
      if (state_.lambda > state_.brackets) state_.lambda = kNone;
      if (state_.pending != Control::none && state_.brackets == state_.header_brackets)
        state_.header_done = true;
    } else if (t.is("[")) {
      if (begins_lambda()) state_.lambda = state_.brackets;
    } else if (t.is("?") || t.is("||") || (t.is("&&") && !is_reference())) {
      decision();
    }
  }

  // Excludes subscripts, attributes, structured bindings and delete[].
  bool begins_lambda() {
    if (next_is("[") || was("[") || was(")") || was("]")) return false;
    if (state_.previous == kNone) return false;
    const Token& before = token(state_.previous);
    if (before.kind == Token::Kind::literal) return false;
    if (before.kind == Token::Kind::word) return before.is("return");
    const bool reference = before.is("&") || before.is("&&");
    return !(reference && state_.previous > 0 && token(state_.previous - 1).is("auto"));
  }

  // Tells T&& from a && b; uses the spaces around it if neither neighbour decides.
  bool is_reference() const {
    if (was_word() && among(token(state_.previous).text, kTypes)) return true;
    if (at_ + 1 >= static_cast<Index>(tokens_.size())) return false;
    const Token& after = token(at_ + 1);
    constexpr std::string_view kNoOperands("),>;=]");
    if (after.kind == Token::Kind::sign && kNoOperands.find(after.text) != std::string_view::npos)
      return true;
    return token().spaced != after.spaced;
  }

  void open_block() {
    const bool header = state_.pending != Control::none &&
                        (state_.header_done || state_.brackets == state_.header_brackets);
    if (header) {
      const Control control = state_.pending;
      state_.pending = Control::none;
      return open(Kind::control, control);
    }
    if (state_.lambda == state_.brackets) {
      state_.lambda = kNone;
      return open(Kind::lambda);
    }
    const bool attribute = was("]") && state_.previous > 0 && token(state_.previous - 1).is("]");
    const bool block = was(";") || was("{") || was("}") || was(":") || was(")") || attribute;
    open(block && state_.brackets == 0 ? Kind::block : Kind::values);
  }

  void semicolon() {
    if (state_.brackets > 0) return;  // in the header of a for
    state_.lambda = kNone;
    begin_statement();  // an empty one
    state_.pending = Control::none;
    end_statement(Control::none);
  }

  std::vector<Function> finished() {
    std::vector<Function> functions;
    for (Draft& d : drafts_) {
      if (d.dropped) continue;
      const std::int64_t last = d.last_line == 0 ? last_line_ : d.last_line;
      d.function.lines = last - d.first_line + 1;
      functions.push_back(std::move(d.function));
    }
    return functions;
  }

  std::vector<Token> tokens_;
  Index at_ = 0, next_ = 0;  // next_: see next_is()
  std::int64_t last_line_ = 1;
  State state_;
  std::vector<Scope> scopes_;
  std::vector<Branch> branches_;
  Index skipping_ = 0;  // open #ifs, counted from the one whose branch is skipped
  std::vector<Draft> drafts_;
};

}  // namespace

std::vector<Function> functions_of(std::string_view source) { return Reader(source).run(); }

}  // namespace assay::sources
