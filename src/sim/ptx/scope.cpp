#include "sim/ptx/scope.h"

#include <fmt/format.h>

#include "sim/ptx/cursor.h"

namespace assay::sim::ptx {
namespace {

constexpr std::size_t kMaxScopeDepth = 32;
constexpr std::uint64_t kMaxRegisters = std::uint64_t{1} << 20;

}  // namespace

void Scopes::open(const Token& brace) {
  if (scopes_.size() == kMaxScopeDepth) {
    Cursor::fail(brace, fmt::format("more than {} nested scopes", kMaxScopeDepth));
  }
  scopes_.emplace_back().first_reference = references_.size();
}

void Scopes::close() {
  const Scope& scope = scopes_.back();
  if (!scope.labels.empty()) {
    auto kept = references_.begin() + static_cast<std::ptrdiff_t>(scope.first_reference);
    for (auto reference = kept; reference != references_.end(); ++reference) {
      const auto label = scope.labels.find(reference->at.text);
      if (label == scope.labels.end()) {
        *kept++ = *reference;
      } else {
        *reference->name = label->second;
      }
    }
    references_.erase(kept, references_.end());
  }
  for (Name* name : scope.declared) name->binding = name->binding->outer;
  if (!range_depths_.empty() && range_depths_.back() == depth()) range_depths_.pop_back();
  scopes_.pop_back();
  if (!scopes_.empty()) return;
  for (const Reference& reference : references_) {
    if (!module_has(reference.at.text)) {
      Cursor::fail(reference.at, fmt::format("nothing declares {}", describe(reference.at)));
    }
  }
  references_.clear();
}

std::string_view Scopes::unique(std::string_view text, Name& name) {
  if (name.uses == 0 && module_has(text)) name.uses = 1;
  if (name.uses++ == 0) return text;
  return renamed_.emplace_back(fmt::format("{}#{}", text, name.uses - 1));
}

const Symbol& Scopes::bind(Name& name, const Symbol& symbol, std::size_t depth) {
  name.binding = &bindings_.emplace_back(Binding{symbol, depth, name.binding});
  scopes_[depth - 1].declared.push_back(&name);
  return name.binding->symbol;
}

Scopes::Name& Scopes::new_name(const Token& text) {
  Name& name = names_[text.text];
  if (name.binding != nullptr && name.binding->depth == depth()) {
    Cursor::fail(text, fmt::format("{} is declared twice in one scope", describe(text)));
  }
  return name;
}

void Scopes::count_registers(const Token& at, std::uint64_t count) {
  if (count > kMaxRegisters - registers_) {
    Cursor::fail(at, fmt::format("more than {} registers in one function", kMaxRegisters));
  }
  registers_ += count;
}

void Scopes::declare_register(const Token& text, Type type) {
  count_registers(text, 1);
  Name& name = new_name(text);
  const Symbol& symbol = bind(name, {true, unique(text.text, name)}, depth());
  function_.registers.push_back({std::string(symbol.name), type});
}

void Scopes::declare_registers(const Token& prefix, Type type, std::uint64_t count) {
  count_registers(prefix, count);
  if (!scopes_.back().ranges.try_emplace(prefix.text, Range{type, count}).second) {
    Cursor::fail(prefix, fmt::format("{} is declared twice in one scope", describe(prefix)));
  }
  if (range_depths_.empty() || range_depths_.back() != depth()) range_depths_.push_back(depth());
}

std::string_view Scopes::declare_variable(const Token& text) {
  Name& name = new_name(text);
  return bind(name, {false, unique(text.text, name)}, depth()).name;
}

std::string_view Scopes::declare_static(const Token& text) {
  Name& name = new_name(text);
  const std::string_view unique_name =
      renamed_.emplace_back(fmt::format("{}#{}", function_.name, unique(text.text, name)));
  return bind(name, {false, unique_name}, depth()).name;
}

std::string_view Scopes::declare_label(const Token& text) {
  const auto [label, fresh] = scopes_.back().labels.try_emplace(text.text);
  if (!fresh) {
    Cursor::fail(text, fmt::format("label {} is declared twice in one scope", describe(text)));
  }
  return label->second = unique(text.text, names_[text.text]);
}

const Symbol* Scopes::find(std::string_view text) {
  const auto name = names_.find(text);
  const Binding* const binding = name == names_.end() ? nullptr : name->second.binding;
  // Ranges in inner scopes hide the binding.
  for (auto depth = range_depths_.rbegin(); depth != range_depths_.rend(); ++depth) {
    if (binding != nullptr && binding->depth >= *depth) break;
    if (const Symbol* symbol = find_in_ranges(*depth, text)) return symbol;
  }
  return binding == nullptr ? nullptr : &binding->symbol;
}

// Registers of ranges are created when first mentioned. A prefix may itself end in digits.
const Symbol* Scopes::find_in_ranges(std::size_t depth, std::string_view text) {
  const auto& ranges = scopes_[depth - 1].ranges;
  std::uint64_t number = 0, power = 1;
  for (std::size_t split = text.size(); split-- > 1 && power <= kMaxRegisters; power *= 10) {
    if (text[split] < '0' || text[split] > '9') break;
    number += power * static_cast<std::uint64_t>(text[split] - '0');
    // %r07 is not a register of %r<8>.
    if (text[split] == '0' && split + 1 != text.size()) continue;
    const auto range = ranges.find(text.substr(0, split));
    if (range == ranges.end() || number >= range->second.count) continue;
    Name& name = names_[text];
    const Symbol& symbol = bind(name, {true, unique(text, name)}, depth);
    function_.registers.push_back({std::string(symbol.name), range->second.type});
    return &symbol;
  }
  return nullptr;
}

void Scopes::refer_to_label(const Token& at, std::string* name) {
  references_.push_back({name, at});
}

}  // namespace assay::sim::ptx
