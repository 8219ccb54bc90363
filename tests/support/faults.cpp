#include "support/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace assay::testing {
namespace {

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

Faults::Faults(std::string_view text, std::span<const std::string_view> functions,
               std::string_view list) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    add(text.substr(0, end), functions, list);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void Faults::add(std::string_view rule, std::span<const std::string_view> functions,
                 std::string_view list) {
  const std::size_t colon = rule.find(':'), at = rule.find('@');
  if (colon == std::string_view::npos || at == std::string_view::npos || at < colon) {
    throw std::invalid_argument(fmt::format(
        "'{}' is no fault: write FUNCTION:CODE@CALL, such as {}:2@1", rule, functions.front()));
  }
  const std::string_view function = rule.substr(0, colon);
  const std::string_view effect = rule.substr(colon + 1, at - colon - 1);
  const auto call = number(rule.substr(at + 1));
  if (std::ranges::find(functions, function) == functions.end()) {
    throw std::invalid_argument(
        fmt::format("fault '{}': no function {}: take a name that {} lists", rule, function, list));
  }
  if (!call || *call == 0) {
    throw std::invalid_argument(
        fmt::format("fault '{}': calls are counted from 1, so write @1 for the first", rule));
  }
  const auto code = number(effect);
  if (!code && effect != "hang") {
    throw std::invalid_argument(
        fmt::format("fault '{}': write the number of a result, or hang", rule));
  }
  faults_[{std::string(function), *call}] = {.hangs = !code,
                                             .code = static_cast<int>(code.value_or(0))};
}

std::optional<Fault> Faults::next(const std::string& function) {
  const auto found = faults_.find({function, ++calls_[function]});
  return found == faults_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace assay::testing
