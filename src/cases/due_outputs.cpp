#include "cases/due_outputs.h"

#include <cstring>

namespace assay::cases {
namespace {

// Calls part(first byte, bytes) once for a whole buffer, or for each piece of a sparse one.
template <class Part>
void for_each_part(const BufferPlan& buffer, std::size_t bytes, Part part) {
  if (buffer.pieces.empty()) return part(std::size_t{0}, bytes);
  for (const Piece& piece : buffer.pieces) {
    part(static_cast<std::size_t>(piece.first) * size_of(buffer.dtype),
         static_cast<std::size_t>(piece.count) * size_of(buffer.dtype));
  }
}

}  // namespace

bool DueOutputs::any(int phase) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (is_due(i, phase)) return true;
  }
  return false;
}

void DueOutputs::take(int phase) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!is_due(i, phase)) continue;
    BufferView& view = buffers_[i];
    ReservedMemory& copy = copies_.emplace_back(view.bytes);
    for_each_part(planned_.plan.buffers[i], view.bytes, [&](std::size_t first, std::size_t bytes) {
      std::memcpy(copy.data() + first, static_cast<const std::byte*>(view.data) + first, bytes);
    });
    view.data = copy.data();
  }
}

DueOutputs::Contents DueOutputs::contents() const {
  Contents all(buffers_.size());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (planned_.plan.buffers[i].role == Role::input) continue;
    append(i, all[i]);
  }
  return all;
}

std::string DueOutputs::changed_since(const Contents& before) const {
  const Contents now = contents();
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] != before[i]) return planned_.plan.buffers[i].name;
  }
  return {};
}

std::vector<std::byte> DueOutputs::compared() const {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const BufferPlan& buffer = planned_.plan.buffers[i];
    if (buffer.role == Role::input || !buffer.compared) continue;
    append(i, bytes);
  }
  return bytes;
}

bool DueOutputs::is_due(std::size_t i, int phase) const {
  const BufferPlan& buffer = planned_.plan.buffers[i];
  return buffer.role != Role::input && buffers_[i].bytes > 0 &&
         planned_.plan.due_phase(buffer, planned_.spec->group == CaseGroup::timed) == phase;
}

void DueOutputs::append(std::size_t i, std::vector<std::byte>& to) const {
  const auto* const data = static_cast<const std::byte*>(buffers_[i].data);
  for_each_part(planned_.plan.buffers[i], buffers_[i].bytes,
                [&](std::size_t first, std::size_t bytes) {
                  to.insert(to.end(), data + first, data + first + bytes);
                });
}

}  // namespace assay::cases
