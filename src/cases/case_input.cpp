#include "cases/case_input.h"

#include <fmt/format.h>

#include <cstring>

#include "assay/error.h"
#include "cases/fill_inputs.h"

namespace assay::cases {

namespace {

void require_due(const CaseSpec& spec, const CasePlan& plan) {
  if (plan.timed_phase < 0 || plan.timed_phase >= plan.phases)
    throw ChallengeError(fmt::format("case {}: its timed phase never comes", spec.name));
  const bool timed = spec.group == CaseGroup::timed;
  bool owes = false;
  for (const BufferPlan& buffer : plan.buffers) {
    if (buffer.role == Role::input || buffer.null) continue;
    const int due = plan.due_phase(buffer, timed);
    if (due < 0 || due >= plan.phases)
      throw ChallengeError(
          fmt::format("case {}: {} is due in a phase that never comes", spec.name, buffer.name));
    owes = owes || due == plan.timed_phase;
  }
  if (timed && !owes && plan.timed_phase + 1 < plan.phases)
    throw ChallengeError(fmt::format(
        "case {}: its timed phase owes nothing when it ends, and others follow it", spec.name));
}

}  // namespace

PlannedCase plan_case(const Challenge& challenge, const CaseSpec& spec, processes::Memory memory,
                      std::size_t skew) {
  PlannedCase planned{&spec, challenge.plan(spec), {}};
  require_due(spec, planned.plan);
  planned.plan.aligned |= spec.aligned;
  planned.layout =
      processes::make_layout(planned.plan, challenge.has_callbacks(spec), memory, skew);
  const bool measured =
      spec.group == CaseGroup::timed || spec.group == CaseGroup::resource || spec.deterministic;
  if (measured && !planned.layout.windows.empty())
    throw ChallengeError(fmt::format(
        "case {}: a sparse buffer in a case that is timed, measured or run twice", spec.name));
  return planned;
}

CaseInput::CaseInput(const Challenge& challenge, const PlannedCase& planned, std::byte* arena,
                     std::byte* device)
    : challenge_(challenge), planned_(planned), arena_(arena), device_(device) {
  for (std::size_t i = 0; i < planned_.plan.buffers.size(); ++i) {
    staging_.push_back(
        staged(i) ? std::make_unique_for_overwrite<std::byte[]>(planned_.layout.slots[i].bytes)
                  : nullptr);
  }
}

bool CaseInput::staged(std::size_t i) const {
  const BufferPlan& buffer = planned_.plan.buffers[i];
  if (planned_.layout.slots[i].bytes == 0) return false;
  return buffer.role == Role::inout ||
         (buffer.role == Role::input && (buffer.phase > 0 || buffer.until >= 0));
}

std::byte* CaseInput::base(std::size_t i, std::byte* output) const {
  if (planned_.layout.on_device[i]) return device_;
  return planned_.layout.slots[i].in_output != 0 ? output : arena_;
}

void CaseInput::draw(std::uint64_t seed) {
  processes::poison_gaps(planned_.plan, planned_.layout, arena_, seed);
  // No output arena exists yet; fill() and reference() do not look at outputs.
  const std::vector<BufferView> buffers = views(nullptr);
  fill_inputs(challenge_, *planned_.spec, planned_.plan, Seeds(seed), buffers);
  reference_ = challenge_.reference(*planned_.spec, planned_.plan, buffers);
}

void CaseInput::begin(std::byte* output, std::uint64_t poison_seed) const {
  processes::poison(planned_.plan, planned_.layout, output, poison_seed, device_);
  for (std::size_t i = 0; i < staging_.size(); ++i) {
    if (staging_[i] == nullptr) continue;
    const wire::BufferSlot& slot = planned_.layout.slots[i];
    if (slot.in_output != 0 || planned_.plan.buffers[i].phase == 0) {
      std::memcpy(base(i, output) + slot.offset, staging_[i].get(), slot.bytes);
    } else {
      std::memset(base(i, output) + slot.offset, 0, slot.bytes);
    }
  }
}

void CaseInput::reveal(int phase) const {
  for (std::size_t i = 0; i < staging_.size(); ++i) {
    const wire::BufferSlot& slot = planned_.layout.slots[i];
    if (staging_[i] == nullptr || slot.in_output != 0) continue;
    const BufferPlan& buffer = planned_.plan.buffers[i];
    if (phase > 0 && buffer.phase == phase)
      std::memcpy(base(i, nullptr) + slot.offset, staging_[i].get(), slot.bytes);
    if (buffer.until >= 0 && buffer.until + 1 == phase)
      std::memset(base(i, nullptr) + slot.offset, 0, slot.bytes);
  }
}

const processes::Windows& CaseInput::windows(std::byte* output) const {
  if (!windows_ || output != windows_output_) windows_.emplace(planned_.layout, arena_, output);
  windows_output_ = output;
  return *windows_;
}

std::vector<BufferView> CaseInput::views(std::byte* output) const {
  std::vector<BufferView> result;
  for (std::size_t i = 0; i < staging_.size(); ++i) {
    const wire::BufferSlot& slot = planned_.layout.slots[i];
    if (slot.null != 0) {
      result.push_back({});
    } else if (slot.window != 0) {
      std::byte* const data = windows(output).data(slot);
      result.push_back({data == nullptr ? nullptr : data + slot.offset,
                        data == nullptr ? 0 : static_cast<std::size_t>(slot.bytes)});
    } else if (slot.in_output == 0) {
      result.push_back(
          {staging_[i] ? staging_[i].get() : base(i, output) + slot.offset, slot.bytes});
    } else if (output != nullptr) {
      result.push_back({base(i, output) + slot.offset, slot.bytes});
    } else {
      result.push_back({staging_[i].get(), staging_[i] ? slot.bytes : 0});
    }
  }
  return result;
}

std::vector<BufferView> CaseInput::first_contents() const {
  std::vector<BufferView> result(staging_.size());
  for (std::size_t i = 0; i < staging_.size(); ++i) {
    if (staging_[i] != nullptr && planned_.layout.slots[i].in_output != 0)
      result[i] = {staging_[i].get(), planned_.layout.slots[i].bytes};
  }
  return result;
}

}  // namespace assay::cases
