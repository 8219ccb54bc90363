// How fast the simulator executes kernels of three kinds, on one host thread, with its checks and
// without: warp instructions per second.
//
//   ninja -C build sim_speed && build/benchmarks/sim_speed [rounds [name]]
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "sim/device.h"

namespace {

using assay::sim::Device;
using assay::sim::DeviceOptions;
using assay::sim::LaunchConfig;
using assay::sim::LaunchResult;
using assay::sim::LaunchStatus;

constexpr const char* kHeader = ".version 9.0\n.target sm_80\n.address_size 64\n";
constexpr const char* kRegisters =
    ".reg .pred %p<16>; .reg .b32 %r<64>; .reg .f32 %f<256>; .reg .b64 %rd<64>;\n";

std::string f(const char* format, auto... values) {
  return fmt::format(fmt::runtime(format), values...);
}

// Sixteen independent chains of fused multiply-adds.
std::string fma_loop() {
  std::string t =
      std::string(kHeader) + ".visible .entry k(.param .u64 out, .param .u64 in) {\n" + kRegisters;
  t += "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %f0, %r1;\nmov.u32 %r2, "
       "0;\n";
  for (int i = 1; i <= 16; ++i) t += f("add.f32 %f{}, %f0, 0f3F800000;\n", i);
  t += "loop:\n";
  for (int round = 0; round < 4; ++round) {
    for (int i = 1; i <= 16; ++i) t += f("fma.rn.f32 %f{0}, %f{0}, 0f3F7FFFFF, 0f3A83126F;\n", i);
  }
  t += "add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r2, 500;\n@%p1 bra loop;\n";
  for (int i = 2; i <= 16; ++i) t += f("add.f32 %f1, %f1, %f{};\n", i);
  t += "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r5, %r3, %r4, %r1;\n"
       "mul.wide.s32 %rd2, %r5, 4;\nadd.s64 %rd3, %rd1, %rd2;\nst.global.f32 [%rd3], "
       "%f1;\nret;\n}\n";
  return t;
}

// One block of 256 threads per row of 1024: mean and variance by warp shuffles and shared memory,
// then the normalised row.
std::string layer_norm() {
  std::string t =
      std::string(kHeader) + ".visible .entry k(.param .u64 out, .param .u64 in) {\n" + kRegisters;
  t += ".shared .align 4 .b8 part[64];\n"
       "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, "
       "%ctaid.x;\n"
       "shl.b32 %r3, %r2, 10;\nshl.b32 %r4, %r1, 2;\nadd.s32 %r3, %r3, %r4;\n"
       "mul.wide.s32 %rd3, %r3, 4;\nadd.s64 %rd4, %rd2, %rd3;\nadd.s64 %rd5, %rd1, %rd3;\n"
       "ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];\n"
       "mov.u32 %r5, part;\nshr.u32 %r6, %r1, 5;\nshl.b32 %r6, %r6, 2;\nadd.s32 %r7, %r5, %r6;\n"
       "and.b32 %r8, %r1, 31;\nsetp.eq.s32 %p1, %r8, 0;\nand.b32 %r9, %r1, 7;\nshl.b32 %r9, %r9, "
       "2;\n"
       "add.s32 %r10, %r5, %r9;\n";
  const auto reduce = [&](int value) {
    for (int step = 16; step > 0; step /= 2) {
      t +=
          f("mov.b32 %r20, %f{0};\nshfl.sync.bfly.b32 %r21|%p2, %r20, {1}, 31, -1;\n"
            "mov.b32 %f90, %r21;\nadd.f32 %f{0}, %f{0}, %f90;\n",
            value, step);
    }
    t += f("@%p1 st.shared.f32 [%r7], %f{0};\nbar.sync 0;\nld.shared.f32 %f{0}, [%r10];\n", value);
    for (int step = 4; step > 0; step /= 2) {
      t +=
          f("mov.b32 %r20, %f{0};\nshfl.sync.bfly.b32 %r21|%p2, %r20, {1}, 31, -1;\n"
            "mov.b32 %f90, %r21;\nadd.f32 %f{0}, %f{0}, %f90;\n",
            value, step);
    }
    t += "bar.sync 0;\n";
  };
  t += "add.f32 %f10, %f1, %f2;\nadd.f32 %f11, %f3, %f4;\nadd.f32 %f10, %f10, %f11;\n";
  reduce(10);
  t += "mul.f32 %f12, %f10, 0f3A800000;\n";
  for (int i = 1; i <= 4; ++i) t += f("sub.f32 %f{}, %f{}, %f12;\n", 20 + i, i);
  t += "mul.f32 %f13, %f21, %f21;\n";
  for (int i = 2; i <= 4; ++i) t += f("fma.rn.f32 %f13, %f{0}, %f{0}, %f13;\n", 20 + i);
  reduce(13);
  t += "fma.rn.f32 %f14, %f13, 0f3A800000, 0f3727C5AC;\nrsqrt.approx.f32 %f15, %f14;\n";
  for (int i = 1; i <= 4; ++i) t += f("mul.f32 %f{0}, %f{0}, %f15;\n", 20 + i);
  t += "st.global.v4.f32 [%rd5], {%f21, %f22, %f23, %f24};\nret;\n}\n";
  return t;
}

// Attention forward with head size 64: a block of 32 threads has 32 queries, one per thread in
// registers, and streams tiles of 32 keys and values through shared memory with an online softmax.
std::string attention() {
  std::string t =
      std::string(kHeader) + ".visible .entry k(.param .u64 out, .param .u64 in) {\n" + kRegisters;
  t += ".shared .align 16 .b8 keys[8192];\n"
       "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, "
       "%ctaid.x;\n"
       "shl.b32 %r3, %r2, 5;\nadd.s32 %r3, %r3, %r1;\nmul.wide.s32 %rd3, %r3, 256;\n"
       "add.s64 %rd4, %rd2, %rd3;\nadd.s64 %rd5, %rd1, %rd3;\nmov.u32 %r4, keys;\n"
       "mad.lo.s32 %r5, %r1, 16, %r4;\nmul.wide.s32 %rd7, %r1, 16;\nadd.s64 %rd6, %rd2, %rd7;\n";
  for (int d = 0; d < 64; d += 4) {
    t += f("ld.global.nc.v4.f32 {{%f{}, %f{}, %f{}, %f{}}}, [%rd4+{}];\n", d, d + 1, d + 2, d + 3,
           4 * d);
  }
  for (int d = 64; d < 128; ++d) t += f("mov.f32 %f{}, 0f00000000;\n", d);
  t += "mov.f32 %f200, 0fFF800000;\nmov.f32 %f201, 0f00000000;\nmov.u32 %r10, 0;\ntile:\nbar.sync "
       "0;\n";
  for (int i = 0; i < 16; ++i) {
    t +=
        f("ld.global.nc.v4.f32 {{%f210, %f211, %f212, %f213}}, [%rd6+{0}];\n"
          "st.shared.v4.f32 [%r5+{0}], {{%f210, %f211, %f212, %f213}};\n",
          512 * i);
  }
  t += "bar.sync 0;\nmov.u32 %r11, 0;\nmov.u32 %r12, %r4;\nkey:\nmov.f32 %f202, 0f00000000;\n";
  for (int d = 0; d < 64; d += 4) {
    t += f("ld.shared.v4.f32 {{%f{}, %f{}, %f{}, %f{}}}, [%r12+{}];\n", 128 + d, 129 + d, 130 + d,
           131 + d, 4 * d);
    for (int i = 0; i < 4; ++i)
      t += f("fma.rn.f32 %f202, %f{}, %f{}, %f202;\n", d + i, 128 + d + i);
  }
  t += "mul.f32 %f202, %f202, 0f3E38AA3B;\nmax.f32 %f203, %f200, %f202;\nsub.f32 %f204, %f200, "
       "%f203;\n"
       "ex2.approx.f32 %f205, %f204;\nsub.f32 %f206, %f202, %f203;\nex2.approx.f32 %f207, %f206;\n"
       "fma.rn.f32 %f201, %f201, %f205, %f207;\nmov.f32 %f200, %f203;\n";
  for (int d = 0; d < 64; ++d) {
    t += f("mul.f32 %f{0}, %f{0}, %f205;\nfma.rn.f32 %f{0}, %f{1}, %f207, %f{0};\n", 64 + d,
           128 + d);
  }
  t += "add.s32 %r12, %r12, 256;\nadd.s32 %r11, %r11, 1;\nsetp.lt.s32 %p1, %r11, 32;\n@%p1 bra "
       "key;\n"
       "add.s64 %rd6, %rd6, 8192;\nadd.s32 %r10, %r10, 1;\nsetp.lt.s32 %p2, %r10, 16;\n@%p2 bra "
       "tile;\n"
       "rcp.approx.f32 %f208, %f201;\n";
  for (int d = 0; d < 64; d += 4) {
    for (int i = 0; i < 4; ++i) t += f("mul.f32 %f{0}, %f{0}, %f208;\n", 64 + d + i);
    t += f("st.global.v4.f32 [%rd5+{}], {{%f{}, %f{}, %f{}, %f{}}};\n", 4 * d, 64 + d, 65 + d,
           66 + d, 67 + d);
  }
  return t + "ret;\n}\n";
}

// CPU time of this thread, so that other work on the machine matters little.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Workload {
  const char* name;
  std::string ptx;
  std::uint32_t blocks, threads;
  std::uint64_t bytes;  // of in and of out
};

// Millions of warp instructions per second, the best of the rounds.
double measure(const Workload& work, bool checks, int rounds) {
  DeviceOptions options;
  options.check_races = options.check_uninitialised = checks;
  Device device(options);
  const auto kernel = device.kernel(device.load_module(work.ptx), "k");
  const std::uint64_t addresses[2] = {device.allocate(work.bytes), device.allocate(work.bytes)};
  std::vector<float> values(work.bytes / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) * 0.01f;
  device.write(addresses[1], std::as_bytes(std::span(values)));
  LaunchConfig config;
  config.grid.x = work.blocks;
  config.block.x = work.threads;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const double begin = cpu_seconds();
    const LaunchResult r = device.launch(kernel, config, std::as_bytes(std::span(addresses)));
    const double seconds = cpu_seconds() - begin;
    if (r.status != LaunchStatus::ok || !r.findings.empty()) {
      fmt::print(stderr, "{}: {}\n", work.name,
                 r.findings.empty() ? "failed" : r.findings[0].describe());
      std::exit(1);
    }
    best = std::max(best, static_cast<double>(r.counters.instructions) / seconds / 1e6);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 5;
  std::string only;
  bool smoke = false;
  CLI::App app{"Times the simulator on programs of known work"};
  app.add_option("rounds", rounds, "The best of so many")->check(CLI::Range(1, 1000));
  app.add_option("name", only, "Only programs with this in their names");
  app.add_flag("--smoke", smoke, "Only show that it works: one round of a few blocks");
  CLI11_PARSE(app, argc, argv);
  const std::uint32_t share = smoke ? 8 : 1;
  const Workload workloads[] = {
      {"fp32 FMA loop", fma_loop(), 8 / share, 128, 8 * 128 * 4},
      {"layer norm 1024 x 1024", layer_norm(), 1024 / share, 256, 1024 * 1024 * 4},
      {"attention 512 x 64", attention(), 16 / share, 32, 512 * 64 * 4},
  };
  fmt::print("{:<24} {:>12} {:>12} {:>8}   M warp instructions/s, one thread\n", "", "checks",
             "none", "ratio");
  for (const Workload& work : workloads) {
    if (std::strstr(work.name, only.c_str()) == nullptr) continue;
    const double with = measure(work, true, smoke ? 1 : rounds),
                 without = measure(work, false, smoke ? 1 : rounds);
    fmt::print("{:<24} {:>12.1f} {:>12.1f} {:>8.2f}\n", work.name, with, without, with / without);
  }
}
