// libFuzzer target of what a worker leaves behind: any bytes in its outputs, any callback requests,
// any status. Each challenge's server and check judge them without harm, inputs stay unchanged, and
// an answer that was not asked for never passes.
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "assay/abi.h"
#include "cases/challenge_registry.h"
#include "cases/fill_inputs.h"
#include "cases/judge.h"
#include "fuzz/promises.h"
#include "processes/layout.h"
#include "spec/spec.h"
#include "support/arena.h"
#include "support/inout_copies.h"
#include "support/paths.h"

namespace {

using namespace assay;

constexpr std::size_t kLargestArena = 256 << 10;  // small cases are judged fast
constexpr std::uint64_t kSeed = 1, kPoison = 2;

// A case as the harness holds it: its inputs are drawn and its reference is known.
class Subject {
 public:
  Subject(const Challenge& challenge, const CaseSpec& spec)
      : challenge_(challenge),
        spec_(spec),
        plan_(challenge.plan(spec_)),
        layout_(processes::make_layout(plan_, false)) {}  // requests come from elsewhere here

  std::size_t arenas() const { return layout_.input_bytes + layout_.output_bytes; }

  void prepare() {
    if (reference_ != nullptr) return;
    memory_ = std::make_unique<Memory>(layout_);
    cases::fill_inputs(challenge_, spec_, plan_, Seeds(kSeed), buffers());
    processes::poison(plan_, layout_, memory_->output.data(), kPoison);
    reference_ = challenge_.reference(spec_, plan_, buffers());
    first_output_ = copy(memory_->output);
    first_inouts_.emplace(plan_, buffers());
  }

  void judge(fuzz::Input& in) {
    std::ranges::copy(first_output_, output().begin());
    const std::vector<std::byte> inputs = copy(memory_->input);
    const auto server = challenge_.callbacks(spec_, plan_, buffers());
    const auto status = static_cast<std::int32_t>(in.take<std::int8_t>() % 8);
    if (server != nullptr) ask(*server, in);
    const bool touched = write_outputs(in);
    CaseResult result;
    cases::judge(challenge_,
                 {.spec = &spec_,
                  .plan = &plan_,
                  .layout = &layout_,
                  .reference = reference_.get(),
                  .buffers = buffers(),
                  .first = first_inouts_->views(),
                  .output = output().data(),
                  .poison_seed = kPoison,
                  .status = status,
                  .server = server.get()},
                 result);
    fuzz::require(std::ranges::equal(memory_->input.bytes(), inputs), "judging changes no input");
    if (result.verdict != Verdict::ok)
      fuzz::require(!result.detail.empty(), "what is wrong has a reason");
    if (status != spec_.expect_status)
      fuzz::require(result.verdict != Verdict::ok, "another status is no answer");
    if (spec_.expect_status != ASSAY_OK && touched)
      fuzz::require(result.verdict != Verdict::ok || outputs_as_at_first(),
                    "a call that fails leaves its outputs alone");
  }

 private:
  struct Memory {
    explicit Memory(const processes::Layout& layout)
        : input(layout.input_bytes),
          output(layout.output_bytes),
          windows(layout, input.data(), output.data()),
          buffers(processes::views(layout, input.data(), output.data(), nullptr, &windows)) {}

    testing::Arena input, output;
    processes::Windows windows;
    std::vector<BufferView> buffers;
  };

  static std::vector<std::byte> copy(const testing::Arena& arena) {
    const std::span<const std::byte> bytes = arena.bytes();
    return {bytes.begin(), bytes.end()};
  }
  std::span<std::byte> output() const { return memory_->output.bytes(); }
  const std::vector<BufferView>& buffers() const { return memory_->buffers; }

  // Compares each output's own bytes; the arena's bytes between them belong to no output.
  bool outputs_as_at_first() const {
    const auto as_at_first = [&](std::size_t offset, std::size_t bytes) {
      return std::ranges::equal(output().subspan(offset, bytes),
                                std::span(first_output_).subspan(offset, bytes));
    };
    return std::ranges::all_of(layout_.slots, [&](const wire::BufferSlot& slot) {
      if (slot.null != 0 || slot.in_output == 0) return true;
      if (slot.window == 0) return as_at_first(slot.offset, slot.bytes);
      const wire::Window& window = layout_.windows[slot.window - 1];
      return std::ranges::all_of(
          std::span(layout_.parts).subspan(window.first_part, window.parts),
          [&](const wire::WindowPart& part) { return as_at_first(part.offset, part.bytes); });
    });
  }

  void ask(CallbackServer& server, fuzz::Input& in) {
    constexpr int kMostRequests = 8;
    std::vector<std::byte> response;
    for (int n = in.take<std::uint8_t>() % kMostRequests; n > 0; --n) {
      const std::uint32_t kind = in.take<std::uint8_t>();
      const std::string_view request = in.bytes(in.take<std::uint8_t>());
      const std::vector<std::byte> own(
          reinterpret_cast<const std::byte*>(request.data()),
          reinterpret_cast<const std::byte*>(request.data()) + request.size());
      response.assign(in.take<std::uint16_t>(), std::byte{});
      server.serve(kind, own, response);
    }
  }

  // Writes pieces anywhere in the arena, or repeats them all over one buffer that is not sparse.
  bool write_outputs(fuzz::Input& in) {
    const std::span<std::byte> arena = output();
    bool any = false;
    while (!in.empty() && !arena.empty()) {
      const std::uint8_t how = in.take<std::uint8_t>();
      const std::size_t slot = how % layout_.slots.size();
      const auto& where = layout_.slots[slot];
      if (how < 16) {
        const std::size_t at = in.take<std::uint32_t>() % arena.size();
        const std::string_view piece = in.bytes(in.take<std::uint8_t>());
        std::memcpy(arena.data() + at, piece.data(), std::min(piece.size(), arena.size() - at));
      } else if (where.in_output != 0 && where.window == 0 && where.bytes > 0) {
        const auto word = in.take<std::array<std::byte, 8>>();
        const std::size_t begin = (how & 64) != 0 ? in.take<std::uint16_t>() % where.bytes : 0;
        const std::size_t end = (how & 128) != 0 ? where.bytes : std::min(where.bytes, begin + 8);
        for (std::size_t i = begin; i < end; ++i) arena[where.offset + i] = word[i % 8];
      }
      any = true;
    }
    return any;
  }

  const Challenge& challenge_;
  CaseSpec spec_;
  CasePlan plan_;
  processes::Layout layout_;
  std::unique_ptr<Memory> memory_;
  std::vector<std::byte> first_output_;
  std::optional<testing::InoutCopies> first_inouts_;
  std::unique_ptr<Reference> reference_;
};

std::vector<Subject> subjects() {
  std::vector<Subject> found;
  for (const ChallengeRow& row : challenge_rows()) {
    const ChallengeSpec spec =
        load_spec(std::filesystem::path(assay::testing::source_dir()) / "challenges" / row.name);
    for (const CaseSpec& c : spec.cases) {
      if (c.group == CaseGroup::timed || c.group == CaseGroup::resource || c.exclusive || c.drawn)
        continue;
      Subject subject(row.get(), c);
      if (subject.arenas() <= kLargestArena) found.push_back(std::move(subject));
    }
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::vector<Subject> all = subjects();
  fuzz::Input in(data, size);
  Subject& subject = all[in.take<std::uint16_t>() % all.size()];
  subject.prepare();
  subject.judge(in);
  return 0;
}
