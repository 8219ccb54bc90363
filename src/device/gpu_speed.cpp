#include "device/gpu_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::device {
namespace {

// kSums: sums a warp keeps in flight, so that none waits for the one before. kWarps: warps per
// block. Each multiprocessor has one block: two warps for each of its four matrix units.
constexpr std::uint32_t kSums = 8, kWarps = 8;
constexpr double kFlops = 2.0 * 16 * 8 * 16;  // flops of one mma.m16n8k16

double seconds_of(Gpu& gpu, const std::function<bool()>& work) {
  gpu.begin_phase(0);
  const bool done = work();
  const PhaseTime time = gpu.end_phase();
  if (!time.failure.empty()) throw std::runtime_error("measuring the GPU: " + time.failure);
  if (!done || !(time.seconds > 0))
    throw std::runtime_error("measuring the GPU: it did not do what was measured");
  return time.seconds;
}

double least_seconds(Gpu& gpu, int tries, const std::function<bool()>& work) {
  double least = seconds_of(gpu, work);
  while (--tries > 0) least = std::min(least, seconds_of(gpu, work));
  return least;
}

// A kernel that multiplies `times` times. Operands have either sign and magnitudes between a half
// and one, with bits that differ in every lane: zeros would draw less power than a submission's
// matrices. It writes nothing unless the sum of all equals `never`.
std::string matrix_kernel() {
  std::string ptx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry multiply(.param .u64 out, .param .f32 never, .param .u32 times)
{
  .reg .pred %p<3>;
  .reg .b32 %a<4>, %b<16>, %r<4>;
  .reg .f32 %f<32>, %s, %n;
  .reg .b64 %out;
  ld.param.u32 %r1, [times];
  mov.u32 %r2, %tid.x;
)";
  const auto operand = [&](char name, std::uint32_t i) {
    ptx += fmt::format(
        "  mad.lo.u32 %r3, %r2, 2654435761, {0};\n"
        "  shr.u32 %{1}{2}, %r3, 7;\n"
        "  xor.b32 %r3, %r3, %{1}{2};\n"
        "  and.b32 %r3, %r3, 0x807f807f;\n"
        "  or.b32 %{1}{2}, %r3, 0x3f003f00;\n",
        2246822519u * (i + 1 + (name == 'b' ? 4u : 0u)), name, i);
  };
  for (std::uint32_t i = 0; i < 4; ++i) operand('a', i);
  for (std::uint32_t i = 0; i < 2 * kSums; ++i) operand('b', i);
  for (std::uint32_t i = 0; i < 4 * kSums; ++i)
    ptx += fmt::format("  mov.f32 %f{}, 0f00000000;\n", i);
  ptx += "again:\n";
  for (std::uint32_t i = 0; i < kSums; ++i) {
    const std::string sum =
        fmt::format("{{%f{}, %f{}, %f{}, %f{}}}", 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
    ptx += fmt::format(
        "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {0}, {{%a0, %a1, %a2, %a3}}, "
        "{{%b{1}, %b{2}}}, {0};\n",
        sum, 2 * i, 2 * i + 1);
  }
  ptx += R"(
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra again;
  mov.f32 %s, %f0;
)";
  for (std::uint32_t i = 1; i < 4 * kSums; ++i) ptx += fmt::format("  add.f32 %s, %s, %f{};\n", i);
  ptx += R"(
  ld.param.f32 %n, [never];
  setp.eq.f32 %p2, %s, %n;
  ld.param.u64 %out, [out];
  @%p2 st.global.f32 [%out], %s;
  ret;
}
)";
  return ptx;
}

}  // namespace

double copy_bytes_per_s(Gpu& gpu, std::uint64_t bytes) {
  constexpr int kTries = 9;
  const std::uint64_t from = gpu.allocate(bytes), to = gpu.allocate(bytes);
  if (from == 0 || to == 0) throw std::runtime_error("measuring the GPU: no memory for copies");
  const double seconds =
      least_seconds(gpu, kTries, [&] { return gpu.copy(to, from, bytes, nullptr); });
  gpu.free(from);
  gpu.free(to);
  return 2 * static_cast<double>(bytes) / seconds;
}

double bf16_flops_per_s(Gpu& gpu, std::uint32_t multiprocessors) {
  constexpr int kTries = 3;
  // Long enough that neither the launch nor the ramp-up to full clock speed matters.
  constexpr double kLeastSeconds = 5e-3;
  constexpr std::uint32_t kMostTimes = 1 << 24;
  const sim::KernelId kernel = gpu.kernel(gpu.load_module(matrix_kernel()), "multiply");
  const std::uint64_t out = gpu.allocate(sizeof(float));
  if (out == 0) throw std::runtime_error("measuring the GPU: no memory for a sum");
  sim::LaunchConfig shape;
  shape.grid.x = multiprocessors;
  shape.block.x = 32 * kWarps;
  std::uint32_t times = 1;
  const auto multiply = [&] {
    struct {
      std::uint64_t out;
      float never;
      std::uint32_t times;
    } const params{out, -1, times};
    const auto block = std::as_bytes(std::span(&params, 1));
    return gpu.launch(kernel, shape, block, nullptr).status == sim::LaunchStatus::ok;
  };
  double seconds = seconds_of(gpu, multiply);
  while (seconds < kLeastSeconds && times < kMostTimes) {
    times *= 2;
    seconds = seconds_of(gpu, multiply);
  }
  seconds = std::min(seconds, least_seconds(gpu, kTries, multiply));
  gpu.free(out);
  return kFlops * kSums * kWarps * multiprocessors * times / seconds;
}

}  // namespace assay::device
