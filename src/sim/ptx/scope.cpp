#include "sim/ptx/scope.h"

#include <fmt/format.h>

#include "sim/ptx/cursor.h"

namespace assay::sim::ptx {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::uint64_t kMaxRegisters = std::uint64_t{1} << 20;

}  // namespace

void Scopes::open(const Token& brace) {
  if (scopes_.size() == kMaxDepth) {
    Cursor::fail(brace, fmt::format("more than {} nested scopes", kMaxDepth));
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
  scopes_.pop_back();
  if (!scopes_.empty()) return;
  for (const Reference& reference : references_) {
    if (!module_has(reference.at.text)) {
      Cursor::fail(reference.at, fmt::format("nothing declares {}", describe(reference.at)));
    }
  }
  references_.clear();
}

std::string_view Scopes::unique(std::string_view name) {
  const auto [use, first] = uses_.try_emplace(name, 0);
  if (first && !module_has(name)) return name;
  return renamed_.emplace_back(fmt::format("{}#{}", name, ++use->second));
}

void Scopes::declare(const Token& name, const Symbol& symbol) {
  if (!scopes_.back().symbols.emplace(name.text, symbol).second) {
    Cursor::fail(name, fmt::format("{} is declared twice in one scope", describe(name)));
  }
}

void Scopes::count_registers(const Token& at, std::uint64_t count) {
  if (count > kMaxRegisters - registers_) {
    Cursor::fail(at, fmt::format("more than {} registers in one function", kMaxRegisters));
  }
  registers_ += count;
}

void Scopes::declare_register(const Token& name, Type type) {
  count_registers(name, 1);
  const std::string_view unique_name = unique(name.text);
  declare(name, {true, unique_name});
  function_.registers.push_back({std::string(unique_name), type});
}

void Scopes::declare_registers(const Token& prefix, Type type, std::uint64_t count) {
  count_registers(prefix, count);
  if (!scopes_.back().ranges.try_emplace(prefix.text, Range{type, count}).second) {
    Cursor::fail(prefix, fmt::format("{} is declared twice in one scope", describe(prefix)));
  }
}

std::string_view Scopes::declare_variable(const Token& name) {
  const std::string_view unique_name = unique(name.text);
  declare(name, {false, unique_name});
  return unique_name;
}

std::string_view Scopes::declare_static(const Token& name) {
  const std::string_view unique_name =
      renamed_.emplace_back(fmt::format("{}#{}", function_.name, unique(name.text)));
  declare(name, {false, unique_name});
  return unique_name;
}

std::string_view Scopes::declare_label(const Token& name) {
  const auto [label, fresh] = scopes_.back().labels.try_emplace(name.text);
  if (!fresh)
    Cursor::fail(name, fmt::format("label {} is declared twice in one scope", describe(name)));
  return label->second = unique(name.text);
}

const Symbol* Scopes::find(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto symbol = scope->symbols.find(name); symbol != scope->symbols.end()) {
      return &symbol->second;
    }
    if (scope->ranges.empty()) continue;
    if (const Symbol* symbol = find_in_ranges(*scope, name)) return symbol;
  }
  return nullptr;
}

// Registers of ranges come into being when they are first mentioned. A prefix may end in digits
// itself.
const Symbol* Scopes::find_in_ranges(Scope& scope, std::string_view name) {
  std::uint64_t number = 0, power = 1;
  for (std::size_t split = name.size(); split-- > 1 && power <= kMaxRegisters; power *= 10) {
    if (name[split] < '0' || name[split] > '9') break;
    number += power * static_cast<std::uint64_t>(name[split] - '0');
    // %r07 is no register of %r<8>.
    if (name[split] == '0' && split + 1 != name.size()) continue;
    const auto range = scope.ranges.find(name.substr(0, split));
    if (range == scope.ranges.end() || number >= range->second.count) continue;
    const std::string_view unique_name = unique(name);
    function_.registers.push_back({std::string(unique_name), range->second.type});
    return &scope.symbols.emplace(name, Symbol{true, unique_name}).first->second;
  }
  return nullptr;
}

void Scopes::refer_to_label(const Token& at, std::string* name) {
  references_.push_back({name, at});
}

}  // namespace assay::sim::ptx
