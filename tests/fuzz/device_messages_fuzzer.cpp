// libFuzzer target of the device process: whatever a worker writes to the link page and the window,
// every call is answered, no answer is larger than the window, and the placed buffers of the case
// stay where they are. PTX that arrives this way is parsed and executed.
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "device/device_fixture.h"
#include "fuzz/promises.h"

namespace {

using namespace assay;
using namespace assay::device;

constexpr std::size_t kMostCalls = 24;
constexpr std::uint64_t kInstructions = 20'000;

class Session {
 public:
  Session() : fixture_(kInstructions) {
    fixture_.place();
    fixture_.start();
    known_ = {fixture_.input(), fixture_.output(), 0, ~0ull};
  }

  void call(fuzz::Input& in) {
    Call c = next_call(in);
    const std::uint8_t text = in.take<std::uint8_t>();
    const std::string_view payload = text == 0   ? kPtx
                                     : text == 1 ? std::string_view("put")
                                                 : in.bytes(text * 16u);
    std::memcpy(fixture_.window(), payload.data(), payload.size());
    c.payload = text == 255 ? in.take<std::uint64_t>() : payload.size();
    fixture_.page().call = c;
    fixture_.server().serve();
    const Answer answer = fixture_.page().answer;
    fuzz::require(answer.payload <= kWindowBytes, "answers fit the window");
    if (c.kind == CallKind::allocate && answer.address != 0) known_[2] = answer.address;
    if (c.kind == CallKind::free && answer.ok != 0) {
      fuzz::require(c.address != fixture_.input() && c.address != fixture_.output(),
                    "the case's buffers are not the worker's to free");
    }
  }

  void end() {
    const Report& report = fixture_.stop();
    for (const std::string_view text :
         {std::string_view(report.first_finding, sizeof report.first_finding),
          std::string_view(report.unsupported, sizeof report.unsupported),
          std::string_view(report.invalid_ptx, sizeof report.invalid_ptx)})
      fuzz::require(text.find('\0') != std::string_view::npos, "texts end within their array");
    fixture_.order(Order::collect);
    fuzz::require(fixture_.control.changed < 2, "a changed input is one of the case's");
    fixture_.order(Order::place);
    fuzz::require(fixture_.control.ok == 0 || fixture_.input() != 0,
                  "the next case finds its place");
  }

 private:
  Call next_call(fuzz::Input& in) {
    Call c;
    c.kind = static_cast<CallKind>(in.take<std::uint8_t>() % 22);  // four of these do not exist
    const std::uint8_t shape = in.take<std::uint8_t>();
    c.id = shape % 4 == 3 ? in.take<std::uint32_t>() : shape % 4;
    c.value = shape;
    c.address = address(in);
    c.from = address(in);
    c.bytes = (shape & 4) != 0 ? in.take<std::uint64_t>() : in.take<std::uint16_t>();
    if (c.kind == CallKind::module_begin && (shape & 8) == 0) c.bytes = kPtx.size();
    if (c.kind != CallKind::launch) return c;
    const auto size = in.take<std::array<std::uint8_t, 6>>();
    c.shape = {{size[0], size[1], size[2]}, {size[3], size[4], size[5]}, c.bytes, shape & 1u};
    if ((shape & 16) != 0) c.shape.grid[0] = in.take<std::uint32_t>();
    return c;
  }

  // Most random addresses are not allocated.
  std::uint64_t address(fuzz::Input& in) {
    const std::uint8_t how = in.take<std::uint8_t>();
    return how < 200 ? known_[how % known_.size()] + how / 8 : in.take<std::uint64_t>();
  }

  ServerFixture fixture_;
  std::array<std::uint64_t, 4> known_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  Session session;
  for (std::size_t i = 0; i < kMostCalls && !in.empty(); ++i) session.call(in);
  session.end();
  return 0;
}
