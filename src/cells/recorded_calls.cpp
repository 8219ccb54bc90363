#include "cells/recorded_calls.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "assay/witness.h"

namespace assay::cells {
namespace {

template <class T>
std::optional<T> read(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// `fields` is everything after the head.
std::optional<RecordedCall> call_of(const witness::CallHead& head,
                                    std::span<const std::byte> fields) {
  RecordedCall call;
  call.entry = head.entry;
  for (std::uint32_t i = 0; i < head.fields; ++i) {
    const auto field = read<witness::FieldHead>(fields);
    if (!field) return std::nullopt;
    fields = fields.subspan(sizeof *field);
    if (field->bytes > fields.size() || witness::padded(field->bytes) > fields.size())
      return std::nullopt;
    const auto data = fields.first(field->bytes);
    fields = fields.subspan(witness::padded(field->bytes));
    if (field->handle == witness::kParams) {
      call.params = data;
    } else {
      call.arrays.push_back({field->handle, field->null != 0, data});
    }
  }
  return call;
}

}  // namespace

Recording read_recording(std::span<const std::byte> shared) {
  Recording recording;
  const auto account = read<witness::Account>(shared);
  if (!account) return recording;
  shared = shared.subspan(sizeof *account);
  recording.dropped = account->dropped;
  recording.strange = account->strange;
  recording.memory.assign(
      shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(
                                           std::min<std::uint64_t>(account->used, shared.size())));
  std::span<const std::byte> rest = recording.memory;
  std::unordered_set<std::string_view> known;
  while (const auto head = read<witness::CallHead>(rest)) {
    if (head->bytes < sizeof *head || head->bytes > rest.size()) break;
    const auto whole = rest.first(head->bytes);
    const auto call = call_of(*head, whole.subspan(sizeof *head));
    if (!call) break;
    rest = rest.subspan(head->bytes);
    const std::string_view text(reinterpret_cast<const char*>(whole.data()), whole.size());
    if (!known.insert(text).second) continue;
    if (recording.calls.size() == kMostCalls) {
      ++recording.dropped;
      known.erase(text);
    } else {
      recording.calls.push_back(*call);
    }
  }
  std::ranges::reverse(recording.calls);
  return recording;
}

}  // namespace assay::cells
