// Every price has a micro-kernel: with more of one thing, the modelled time of just that part grows
// by just its price. Kernels in PTX on a simulated device, priced for an H200.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grade/gpu.h"
#include "sim/device/device_fixture.h"

namespace assay {
namespace {

using sim::Unit;

class PriceList : public sim::DeviceTest {
 protected:
  static constexpr unsigned kTimes = 64;
  const Gpu& gpu_ = gpu_named("h200");

  // `body` repeated kTimes, after `set_up`, in one block of one warp unless stated otherwise.
  SimulatedWork work(const std::string& body, unsigned times, const std::string& set_up = "",
                     const std::string& before = "",
                     const sim::LaunchConfig& config = shape(1, 32)) {
    std::string text = set_up;
    for (unsigned i = 0; i < times; ++i) text += body + "\n";
    load_kernel(text, before);
    const std::uint64_t out = upload(std::vector<std::uint32_t>(1 << 16));
    const std::uint64_t in = upload(std::vector<std::uint32_t>(1 << 16));
    const sim::LaunchResult r = launch(config, "k", out, in);
    EXPECT_EQ(r.status, sim::LaunchStatus::ok) << body.substr(0, 200);
    for (const sim::Finding& f : r.findings) ADD_FAILURE() << f.describe();
    SimulatedWork w;
    w.counters = r.counters;
    return w;
  }
  // What one more repetition of `body` adds to the time of `part`, in GPU clocks.
  double clocks(double ModelledTime::*part, const std::string& body, const std::string& set_up = "",
                const std::string& before = "") {
    const auto time = [&](unsigned times) {
      return modelled_time(work(body, times, set_up, before), gpu_).*part;
    };
    return (time(2 * kTimes) - time(kTimes)) * gpu_.clock_hz / kTimes;
  }
  double bytes_of_memory(const std::string& body, const std::string& set_up = "",
                         const std::string& before = "") {
    return clocks(&ModelledTime::memory, body, set_up, before) / gpu_.clock_hz *
           gpu_.memory_bytes_per_s;
  }
};

TEST_F(PriceList, NoInstructionIsFree) {
  // A quarter of a clock each, since there are four schedulers; a single warp can issue at most one
  // per clock.
  for (const char* body :
       {"mov.u32 %r1, %t;", "nanosleep.u32 1;", "prefetch.global.L2 [%in];", "bar.sync 0;",
        "membar.gl;", "activemask.b32 %r1;", "mov.u64 %rd1, %clock64;"}) {
    EXPECT_NEAR(clocks(&ModelledTime::issue, body), 0.25, 1e-6) << body;
    EXPECT_NEAR(clocks(&ModelledTime::warp, body), 1, 1e-6) << body;
  }
}

TEST_F(PriceList, PipesHaveTheirLanes) {
  const auto arithmetic = [&](const char* body) {
    return clocks(&ModelledTime::arithmetic, body,
                  "cvt.rn.f32.u32 %f1, %t; cvt.f64.f32 %fd1, %f1; mov.u32 %r9, 3; mov.u64 %rd9, 3; "
                  "mov.b16 %h1, 0;");
  };
  EXPECT_NEAR(arithmetic("fma.rn.f32 %f2, %f1, %f1, %f1;"), 32.0 / 128, 1e-6);
  EXPECT_NEAR(arithmetic("add.u32 %r1, %t, %t;"), 32.0 / 64, 1e-6);
  EXPECT_NEAR(arithmetic("fma.rn.f16x2 %r1, %t, %t, %t;"), 32.0 / 128, 1e-6);
  EXPECT_NEAR(arithmetic("fma.rn.f64 %fd2, %fd1, %fd1, %fd1;"), 32.0 / 64, 1e-6);
  EXPECT_NEAR(arithmetic("ex2.approx.f32 %f2, %f1;"), 32.0 / 16, 1e-6);
  EXPECT_NEAR(arithmetic("popc.b32 %r1, %t;"), 32.0 / 16, 1e-6);
  EXPECT_NEAR(arithmetic("cvt.rn.f32.u32 %f2, %t;"), 32.0 / 64, 1e-6);
  EXPECT_NEAR(arithmetic("cvt.f64.f32 %fd2, %f1;"), 32.0 / 16, 1e-6);
}

TEST_F(PriceList, WhatTheHardwareHasNoInstructionForCostsItsProgram) {
  const auto issued = [&](const char* body) {
    return 4 * clocks(&ModelledTime::issue, body,
                      "cvt.rn.f32.u32 %f1, %t; cvt.f64.f32 %fd1, %f1; mov.u32 %r9, 3; "
                      "cvt.u64.u32 %rd9, %r9;");
  };
  EXPECT_NEAR(issued("add.s64 %rd1, %rd9, %rd9;"), 2, 1e-6);
  EXPECT_NEAR(issued("mul.wide.u32 %rd1, %t, %t;"), 1, 1e-6);
  EXPECT_NEAR(issued("mul.lo.s64 %rd1, %rd9, %rd9;"), 3, 1e-6);
  EXPECT_NEAR(issued("div.u32 %r1, %t, %r9;"), 15, 1e-6);
  EXPECT_NEAR(issued("rem.s64 %rd1, %rd9, %rd9;"), 19, 1e-6);
  EXPECT_NEAR(issued("div.rn.f32 %f2, %f1, %f1;"), 8, 1e-6);
  EXPECT_NEAR(issued("sqrt.rn.f32 %f2, %f1;"), 6, 1e-6);
  EXPECT_NEAR(issued("div.rn.f64 %fd2, %fd1, %fd1;"), 8, 1e-6);
}

TEST_F(PriceList, ShufflesAndAccessesShareTheLoadStoreUnits) {
  const auto loads = [&](const char* body) { return clocks(&ModelledTime::loads, body); };
  EXPECT_NEAR(loads("shfl.sync.bfly.b32 %r1, %t, 1, 31, -1;"), 1, 1e-6);
  EXPECT_NEAR(loads("redux.sync.add.u32 %r1, %t, -1;"), 2, 1e-6);
  EXPECT_NEAR(loads("ld.global.u32 %r1, [%out];"), 1, 1e-6);
}

TEST_F(PriceList, ConstantsCostTheirAddresses) {
  const char* const table = ".const .align 4 .b8 table[4096];\n";
  const char* const set_up =
      "mul.wide.u32 %rd1, %t, 4; mov.u64 %rd2, table; add.s64 %rd3, %rd2, %rd1;"
      "cvta.const.u64 %rd4, %rd3;";
  EXPECT_NEAR(clocks(&ModelledTime::loads, "ld.const.u32 %r1, [table];", "", table), 1, 1e-6);
  EXPECT_NEAR(clocks(&ModelledTime::loads, "ld.const.u32 %r1, [%rd3];", set_up, table), 32, 1e-6);
  EXPECT_NEAR(clocks(&ModelledTime::loads, "ld.u32 %r1, [%rd4];", set_up, table), 32, 1e-6)
      << "likewise through a generic address";
  EXPECT_NEAR(clocks(&ModelledTime::loads, "ld.param.u64 %rd1, [in];"), 1, 1e-6);
}

TEST_F(PriceList, SharedMemoryCostsItsPasses) {
  const std::string set_up =
      ".shared .align 16 .b8 s[8192]; mov.u32 %r1, s; mad.lo.u32 %r2, %t, 4, %r1; "
      "mad.lo.u32 %r3, %t, 128, %r1; st.shared.u32 [%r2], %t; st.shared.u32 [%r3], %t; bar.sync 0;";
  const auto shared = [&](const char* body) { return clocks(&ModelledTime::shared, body, set_up); };
  EXPECT_NEAR(shared("ld.shared.u32 %r5, [%r2];"), 1, 1e-6);
  EXPECT_NEAR(shared("ld.shared.u32 %r5, [%r3];"), 32, 1e-6);
  EXPECT_NEAR(shared("red.shared.add.u32 [%r2], 1;"), 1, 1e-6);
  EXPECT_NEAR(shared("red.shared.add.u32 [%r1], 1;"), 32, 1e-6) << "all lanes at one word";
}

TEST_F(PriceList, AsynchronousCopiesCostWhatTheOthersDo) {
  const std::string set_up =
      ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %t, 16, %r1; "
      "mad.wide.u32 %rd1, %t, 16, %in;";
  const char* const copy =
      "cp.async.ca.shared.global [%r2], [%rd1], 16; cp.async.commit_group; cp.async.wait_group 0;";
  EXPECT_NEAR(bytes_of_memory(copy, set_up), 512, 1e-3);
  EXPECT_NEAR(clocks(&ModelledTime::shared, copy, set_up), 4, 1e-6);
  const char* const arrival =
      ".shared .align 8 .b8 b[8]; mov.u32 %r1, b; setp.eq.u32 %p1, %t, 0; "
      "@%p1 mbarrier.init.shared.b64 [%r1], 1048575; bar.sync 0;";
  EXPECT_GE(clocks(&ModelledTime::shared, "mbarrier.arrive.shared.b64 %rd1, [%r1];", arrival), 1);
}

TEST_F(PriceList, MemoryCostsSectors) {
  EXPECT_NEAR(bytes_of_memory("ld.global.u32 %r1, [%out];"), 128, 1e-3);
  EXPECT_NEAR(bytes_of_memory("st.global.u32 [%out], %t;"), 128, 1e-3);
  EXPECT_NEAR(bytes_of_memory("ld.global.u32 %r1, [%rd1];", "mad.wide.u32 %rd1, %t, 64, %in;"),
              32 * 32, 1e-3);
  // The path to the only busy multiprocessor is narrower.
  EXPECT_NEAR(clocks(&ModelledTime::path, "ld.global.u32 %r1, [%out];"), 1, 1e-6);
}

TEST_F(PriceList, LocalMemoryCostsSectorsToo) {
  const std::string set_up =
      ".local .align 4 .b8 a[256]; mov.u64 %rd1, a; and.b32 %r1, %t, 31; "
      "mad.wide.u32 %rd2, %r1, 4, %rd1; st.local.u32 [%rd1], %t; st.local.u32 [%rd2], %t;";
  EXPECT_NEAR(bytes_of_memory("st.local.u32 [%rd1], %t;", set_up), 128, 1e-3);
  EXPECT_NEAR(bytes_of_memory("ld.local.u32 %r2, [%rd2];", set_up), 32 * 32, 1e-3)
      << "each lane at another offset";
}

TEST_F(PriceList, AtomicsReadAndWriteTheirSectors) {
  for (const char* body :
       {"atom.global.or.b32 %r1, [%out], 0;", "atom.global.exch.b32 %r1, [%out], %t;",
        "red.global.add.u32 [%out], 1;", "atom.add.u32 %r1, [%out], 1;"}) {
    EXPECT_NEAR(bytes_of_memory(body), 2 * 128, 1e-3) << body;
    EXPECT_NEAR(clocks(&ModelledTime::path, body), 2, 1e-6) << body;
  }
}

TEST_F(PriceList, AtomicsOfOneAddressGoOneAfterAnother) {
  EXPECT_NEAR(clocks(&ModelledTime::atomics, "red.global.add.u32 [%in], 1;"), 32, 1e-6);
  // 4 sectors, in up to 4 slices.
  const double spread = clocks(&ModelledTime::atomics, "red.global.add.u32 [%out], 1;");
  EXPECT_GE(spread, 1 - 1e-6);
  EXPECT_LE(spread, 4 + 1e-6);
  // From many blocks as well: they share one address.
  const auto hot = [&](unsigned blocks) {
    return modelled_time(work("red.global.add.u32 [%in], 1;", 1, "", "", shape(blocks, 32)), gpu_)
        .atomics;
  };
  EXPECT_NEAR(hot(512) / hot(1), 512, 1e-6);
}

TEST_F(PriceList, AtomicsOfManyAddressesAreSpreadOverTheSlices) {
  const char* const set_up =
      "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 32, %t; "
      "mad.wide.u32 %rd1, %r1, 4, %base;";
  const SimulatedWork w = work("red.global.add.u32 [%rd1], 1;", 1, set_up, "", shape(1024, 32));
  EXPECT_EQ(w.counters.atomic_sectors, 4096u);
  EXPECT_EQ(w.counters.atomic_passes, 4096u);
  EXPECT_GE(w.counters.atomic_hot_passes, 4096u / sim::kL2Slices);
  EXPECT_LE(w.counters.atomic_hot_passes, 3 * 4096u / sim::kL2Slices);
}

TEST_F(PriceList, EachMatrixTypeHasItsRate) {
  struct Case {
    const char* instruction;
    double operations, rate;  // of the whole GPU, from its data sheet
  };
  const char* const f32 = "{%f1, %f2, %f3, %f4}";
  const auto mma = [&](const char* type, const char* d, const char* a, const char* b) {
    return fmt::format("mma.sync.aligned.{} {}, {}, {}, {};", type, d, a, b, d);
  };
  const std::string a4 = "{%r1, %r2, %r3, %r4}", b2 = "{%r5, %r6}",
                    s32 = "{%r11, %r12, %r13, %r14}";
  const auto time = [&](const std::string& body) {
    return clocks(&ModelledTime::tensor, body) / gpu_.clock_hz;
  };
  // One multiprocessor has its share of the data sheet's rate. Single warps reach a part of that,
  // but all of it for types that warpgroups do not multiply.
  constexpr double kShare = 0.629;
  const auto expected = [&](double m, double n, double k, double rate) {
    return 2 * m * n * k / (rate / 132);
  };
  const auto near = [](double value, double about) { EXPECT_NEAR(value / about, 1, 1e-6); };
  near(time(mma("m16n8k8.row.col.f32.tf32.tf32.f32", f32, a4.c_str(), b2.c_str())),
       expected(16, 8, 8, kShare * 494.5e12));
  near(time(mma("m16n8k16.row.col.f32.bf16.bf16.f32", f32, a4.c_str(), b2.c_str())),
       expected(16, 8, 16, kShare * 989.5e12));
  near(time(mma("m16n8k16.row.col.f32.f16.f16.f32", f32, a4.c_str(), b2.c_str())),
       expected(16, 8, 16, kShare * 989.5e12));
  near(time(mma("m16n8k32.row.col.f32.e4m3.e4m3.f32", f32, a4.c_str(), b2.c_str())),
       expected(16, 8, 32, kShare * 1979e12));
  near(time(mma("m16n8k32.row.col.s32.s8.s8.s32", s32.c_str(), a4.c_str(), b2.c_str())),
       expected(16, 8, 32, kShare * 1979e12));
  near(time(mma("m16n8k64.row.col.s32.s4.s4.s32", s32.c_str(), a4.c_str(), b2.c_str())),
       expected(16, 8, 64, 1979e12));
  near(time("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd1, "
            "%fd2};"),
       expected(8, 8, 4, 67e12));
  near(time("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc " + s32 + ", " + a4 + ", " +
            b2 + ", " + s32 + ";"),
       expected(16, 8, 256, 1979e12));
}

TEST_F(PriceList, ProductsOfWarpgroupsReachTheDataSheetsRate) {
  // Both matrices are the 2 KiB at the start of shared memory, without swizzle. Four warps.
  const auto time = [&](const char* types, const char* d, const char* literals) {
    const std::string body = fmt::format(
        "wgmma.mma_async.sync.aligned.m64n8{} {}, %rd1, %rd1, %p1{};", types, d, literals);
    const std::string set_up =
        "mov.u64 %rd1, 0x800400000; setp.eq.u32 %p1, %t, 4096;\n"
        "mov.u32 %r1, memory; mad.lo.u32 %r1, %t, 16, %r1;\n"
        "st.shared.v2.u64 [%r1], {%rd2, %rd2}; bar.sync 0;\n";
    const auto tensor = [&](unsigned times) {
      return modelled_time(
                 work(body, times, set_up, ".shared .align 1024 .b8 memory[2048];", shape(1, 128)),
                 gpu_)
          .tensor;
    };
    return (tensor(2 * kTimes) - tensor(kTimes)) / kTimes;
  };
  const char *const f32 = "{%f1, %f2, %f3, %f4}", *const s32 = "{%r1, %r2, %r3, %r4}";
  const auto near = [](double value, double k, double rate) {
    EXPECT_NEAR(value / (2 * 64 * 8 * k / (rate / 132)), 1, 1e-6);
  };
  near(time("k16.f32.f16.f16", f32, ", 1, 1, 0, 0"), 16, 989.5e12);
  near(time("k8.f32.tf32.tf32", f32, ", 1, 1"), 8, 494.5e12);
  near(time("k32.s32.s8.s8", s32, ""), 32, 1979e12);
}

TEST_F(PriceList, IdleBlocksKeepNoMultiprocessorBusy) {
  // Block 0 works; the others check their number and leave.
  const std::string body = "fma.rn.f32 %f1, %f1, %f1, %f1;";
  const std::string alone = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra done;";
  const auto time = [&](unsigned blocks, bool all) {
    std::string text = all ? "" : alone;
    for (int i = 0; i < 200; ++i) text += body;
    return modelled_time(work(text + "done:", 1, "mov.f32 %f1, 0f3F800000;", "", shape(blocks, 32)),
                         gpu_);
  };
  const double one = time(1, false).arithmetic;
  EXPECT_NEAR(time(1000, false).arithmetic / one, 1, 1e-9);
  EXPECT_NEAR(time(132, true).arithmetic / one, 1, 1e-9) << "a block for each multiprocessor";
  EXPECT_NEAR(time(132 * 8, true).arithmetic / one, 8, 1e-9);
}

TEST_F(PriceList, EachUnitHasALongestBlockOfItsOwn) {
  // The other blocks are busy too, but with cheap work.
  const std::string set_up =
      "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; mov.f64 %fd1, 0d3FF0000000000000;"
      "@%p1 bra other;";
  std::string text;
  for (int i = 0; i < 256; ++i) text += "fma.rn.f64 %fd1, %fd1, %fd1, %fd1;";
  text += "bra done; other:";
  for (int i = 0; i < 256; ++i) text += "mov.u32 %r2, %t;";
  const SimulatedWork w = work(text + "done:", 1, set_up, "", shape(264, 32));
  EXPECT_EQ(w.counters.total[Unit::fp64], 256u);
  EXPECT_EQ(w.counters.critical[Unit::fp64], 256u) << "not 1 / 132 of it";
}

TEST_F(PriceList, PrintfWritesItsArguments) {
  const char* const before =
      ".global .align 1 .b8 format[2] = {120, 0};\n"
      ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n";
  const char* const body =
      "{ .param .b64 a; .param .b64 b; .param .b32 c; mov.u64 %rd1, format; cvta.global.u64 %rd2, "
      "%rd1; "
      "st.param.b64 [a], %rd2; st.param.b64 [b], 0; call.uni (c), vprintf, (a, b); }";
  EXPECT_NEAR(bytes_of_memory(body, "", before), 32 * 32, 1e-3);
}

TEST_F(PriceList, GridBarriersCostTheirAtomics) {
  const SimulatedWork w =
      work("atom.add.release.gpu.u32 %r1, [%in], 1;", 1, "", "", shape(100, 32));
  EXPECT_EQ(w.counters.atomic_hot_passes, 3200u);
}

}  // namespace
}  // namespace assay
