#include "cases/given_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "processes/layout.h"

namespace assay::cases {
namespace {

constexpr std::size_t kMostBytes = 256u << 20;  // of all buffers of a case

// Calls f(array) for each piece of an array in the call, until they hold `most` bytes or more:
// pieces past the end are not part of the case.
template <class F>
void each_piece(const RecordedCall& call, std::int32_t handle, std::size_t most, F f) {
  std::size_t bytes = 0;
  for (const RecordedCall::Array& array : call.arrays) {
    if (array.handle != handle) continue;
    if (bytes >= most) return;
    bytes += array.bytes.size();
    f(array);
  }
}

// The pieces of an array, concatenated.
std::vector<std::byte> joined(const RecordedCall& call, std::int32_t handle, std::size_t most) {
  std::vector<std::byte> all;
  each_piece(call, handle, most, [&](const RecordedCall::Array& array) {
    all.insert(all.end(), array.bytes.begin(), array.bytes.end());
  });
  return all;
}

// Whether the call's arrays fit the case's buffers. An array may be shorter than its buffer,
// because a case also pads the last row.
bool agrees(const CasePlan& plan, const RecordedCall& call) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferPlan& buffer = plan.buffers[i];
    if (buffer.null) continue;
    if (std::ranges::any_of(buffer.shape, [](std::int64_t n) { return n < 0; })) return false;
    if (buffer.bytes() > kMostBytes - bytes) return false;
    bytes += buffer.bytes();
    const RecordedCall::Array* given = call.find(static_cast<std::int32_t>(i));
    if (given == nullptr || buffer.role == Role::output) continue;
    if (given->null && buffer.bytes() > 0) return false;
    std::size_t held = 0;
    each_piece(call, static_cast<std::int32_t>(i), buffer.bytes(),
               [&](const RecordedCall::Array& array) { held += array.bytes.size(); });
    if (held > buffer.bytes()) return false;
  }
  return plan.params.size() == call.params.size();
}

std::string value_at(Dtype dtype, std::span<const std::byte> bytes, std::size_t i) {
  const auto read = [&](auto value) {
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
  };
  switch (dtype) {
    case Dtype::f32: return fmt::format("{:.9g}", read(float{}));
    case Dtype::bf16: return fmt::format("{:.4g}", bf16_to_float(read(std::uint16_t{})));
    case Dtype::f16: return fmt::format("{:.4g}", f16_to_float(read(std::uint16_t{})));
    case Dtype::i32: return fmt::format("{}", read(std::int32_t{}));
    case Dtype::i64: return fmt::format("{}", read(std::int64_t{}));
    case Dtype::u64: return fmt::format("{}", read(std::uint64_t{}));
    default: return fmt::format("{}", static_cast<int>(read(std::uint8_t{})));
  }
}

}  // namespace

std::optional<CaseSpec> GivenInputs::take(const RecordedCall& call) {
  call_ = nullptr;
  auto params = of_.recorded(call);
  if (!params) return std::nullopt;
  CaseSpec spec;
  spec.name = "recorded";
  spec.group = CaseGroup::edge;
  spec.time_limit_s = 20;
  spec.params = *std::move(params);
  const CasePlan planned = of_.plan(spec);
  if (planned.entry != call.entry || !agrees(planned, call)) return std::nullopt;
  call_ = &call;
  if (!is_legal(spec, planned)) return std::nullopt;
  return spec;
}

// Checks the inputs in temporary memory, before there is a case.
bool GivenInputs::is_legal(const CaseSpec& spec, const CasePlan& planned) const {
  std::vector<std::vector<std::byte>> memory;
  std::vector<BufferView> views;
  for (const BufferPlan& buffer : planned.buffers) {
    const bool there = !buffer.null && buffer.role != Role::output;
    memory.emplace_back(there ? buffer.bytes() : 0);
    views.push_back({memory.back().empty() ? nullptr : memory.back().data(), memory.back().size()});
  }
  return fill_and_adopt(spec, planned, views);
}

bool GivenInputs::fill_and_adopt(const CaseSpec& spec, const CasePlan& planned,
                                 BufferViews buffers) const {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (planned.buffers[i].role == Role::output || buffers[i].bytes == 0) continue;
    const bool is_given = call_->find(static_cast<std::int32_t>(i)) != nullptr;
    const std::vector<std::byte> given =
        joined(*call_, static_cast<std::int32_t>(i), buffers[i].bytes);
    auto* const to = static_cast<std::byte*>(buffers[i].data);
    const auto copy = [&](std::size_t at, std::size_t bytes) {
      const std::size_t here = std::min(bytes, given.size() - std::min(given.size(), at));
      if (here > 0) std::memcpy(to + at, given.data() + at, here);
      std::memset(to + at + here, is_given ? 0xff : 0, bytes - here);
    };
    const std::size_t size = size_of(planned.buffers[i].dtype);
    if (planned.buffers[i].pieces.empty()) copy(0, buffers[i].bytes);
    for (const Piece& piece : planned.buffers[i].pieces)
      copy(static_cast<std::size_t>(piece.first) * size,
           static_cast<std::size_t>(piece.count) * size);
  }
  return of_.adopt(spec, planned, buffers);
}

std::string describe_inputs(const CasePlan& plan, const RecordedCall& call) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (const RecordedCall::Array& array : call.arrays) {
    const auto at = static_cast<std::size_t>(array.handle);
    if (array.handle < 0 || at >= plan.buffers.size() || array.bytes.empty()) continue;
    if (call.find(array.handle) != &array) continue;  // a further piece
    const Dtype dtype = plan.buffers[at].dtype;
    const std::size_t elements = array.bytes.size() / size_of(dtype);
    text += fmt::format("{}{} =", text.empty() ? "" : "; ", plan.buffers[at].name);
    for (std::size_t i = 0; i < std::min(elements, kShown); ++i)
      text += fmt::format("{}{}", i == 0 ? " " : ", ", value_at(dtype, array.bytes, i));
    if (elements > kShown) text += fmt::format(", ... {} values", elements);
  }
  return text;
}

}  // namespace assay::cases
