// wgmma: products of small integers, which are exact, compared with a plain loop over matrices that
// the test lays out in shared memory by itself.
#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sim/device/device_fixture.h"
#include "sim/math/formats.h"

namespace assay::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr unsigned kMemory = 49152, kRowsOfA = 64;

// How many bytes each row, or each k, of a block of eight takes.
enum class Width : unsigned { w16 = 16, w32 = 32, w64 = 64, w128 = 128 };

// A matrix of some rows and 32 bytes of k: where it is in shared memory.
struct Layout {
  bool k_major = true;
  Width width = Width::w128;
  std::uint32_t start = 0;
  std::uint32_t rows = 64;
  std::uint32_t element_bytes = 2;

  unsigned w() const { return static_cast<unsigned>(width); }
  unsigned depth() const { return 32 / element_bytes; }

  // Blocks of eight lines of w() bytes; a line is a row, or all rows of one k. They lie as in the
  // figures of the PTX ISA.
  std::uint32_t at(std::uint32_t row, std::uint32_t k) const {
    const std::uint32_t line = k_major ? row : k;
    const std::uint32_t in_line = (k_major ? k : row) * element_bytes;
    const std::uint32_t block = line / 8 * blocks_across() + in_line / w();
    const std::uint32_t lines = std::array{1u, 1u, 1u, 2u, 4u, 8u}.at(std::countr_zero(w()) - 2u);
    // A swizzle repeats after 128 bytes times the number of its pieces.
    const std::uint32_t linear = start + block * 8 * w() + line % 8 * w() + in_line % w();
    const std::uint32_t turn = w() == 16 ? 0 : linear / 128 % lines;
    return linear / 128 * 128 + (linear / 16 % 8 ^ turn) * 16 + linear % 16;
  }
  std::uint32_t blocks_across() const {
    const std::uint32_t bytes = (k_major ? depth() : rows) * element_bytes;
    return (bytes + w() - 1) / w();
  }
  std::uint32_t bytes() const {
    const std::uint32_t lines = k_major ? rows : depth();
    return (lines + 7) / 8 * blocks_across() * 8 * w();
  }
  std::uint64_t descriptor() const {
    const std::uint32_t down = blocks_across() * 8 * w(), across = 8 * w();
    // Without swizzle a block has eight lines of 16 bytes.
    std::uint32_t leading = across, stride = down;
    if (!k_major && w() == 16) std::swap(leading, stride);
    const std::uint64_t mode = w() == 16 ? 0 : w() == 128 ? 1 : w() == 64 ? 2 : 3;
    return start / 16 | std::uint64_t{leading / 16} << 16 | std::uint64_t{stride / 16} << 32 |
           mode << 62;
  }
};

struct Problem {
  std::string a_type = "f16", b_type, d_type = "f32";
  std::uint32_t n = 64;
  Layout a, b;
  bool a_in_registers = false, adds = true;
  int scale_a = 1, scale_b = 1;

  Problem& types(const std::string& d, const std::string& multiplied, std::uint32_t bytes) {
    d_type = d;
    a_type = b_type = multiplied;
    a.element_bytes = b.element_bytes = bytes;
    return *this;
  }
  std::uint32_t k() const { return a.depth(); }
  bool floating() const { return d_type != "s32"; }
  std::uint32_t registers() const { return d_type == "f16" ? n / 4 : n / 2; }
};

Problem problem(std::uint32_t n, bool a_k_major = true, Width a_width = Width::w128,
                bool b_k_major = true, Width b_width = Width::w128) {
  Problem p;
  p.types("f32", "f16", 2);
  p.n = n;
  p.a = {a_k_major, a_width, 0, kRowsOfA, 2};
  p.b = {b_k_major, b_width, 0, n, 2};
  return p;
}

std::uint32_t encoded(const std::string& type, int value) {
  if (type == "f16") return to_half<Half>(static_cast<float>(value)).bits;
  if (type == "bf16") return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
  if (type == "tf32" || type == "f32")
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint32_t>(value);
}

class WgmmaTest : public DeviceTest {
 protected:
  // Shared memory begins as `image`. Register i of D of thread t is out[128 i + t], before and
  // after. `between`: after the products, `before`: before them.
  static std::string kernel(const Problem& p, const std::string& between = {},
                            const std::string& before = {}) {
    std::string text = R"(
.visible .entry k(.param .u64 image, .param .u64 out, .param .u64 a, .param .u64 b,
                  .param .u32 adds) {
  .reg .pred %p<8>; .reg .b32 %d<129>, %a<4>, %r<32>; .reg .b64 %rd<16>;
  .reg .b32 %t; .reg .b64 %out, %image, %da, %db;
  .shared .align 1024 .b8 memory[49152];
  mov.u32 %t, %tid.x;
  ld.param.u64 %image, [image];
  ld.param.u64 %out, [out];
  ld.param.u64 %da, [a];
  ld.param.u64 %db, [b];
  ld.param.u32 %r1, [adds];
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r2, memory;
  cvt.u64.u32 %rd1, %r2;
  shr.u64 %rd1, %rd1, 4;
  add.u64 %da, %da, %rd1;
  add.u64 %db, %db, %rd1;
  mul.lo.u32 %r3, %t, 16;
fill:
  setp.ge.u32 %p2, %r3, 49152;
  @%p2 bra filled;
  cvt.u64.u32 %rd2, %r3;
  add.u64 %rd2, %image, %rd2;
  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2];
  add.u32 %r8, %r2, %r3;
  st.shared.v4.u32 [%r8], {%r4, %r5, %r6, %r7};
  add.u32 %r3, %r3, 2048;
  bra fill;
filled:
  mad.wide.u32 %rd3, %t, 4, %out;
)";
    for (std::uint32_t r = 0; r < p.registers(); ++r)
      text += fmt::format("  ld.global.u32 %d{}, [%rd3+{}];\n", r, r * 512);
    for (std::uint32_t r = 0; p.a_in_registers && r < 4; ++r)
      text += fmt::format("  ld.global.u32 %a{}, [%rd3+{}];\n", r, (p.registers() + r) * 512);
    text += "  fence.proxy.async;\n  bar.sync 0;\n" + before;
    text += "  wgmma.fence.sync.aligned;\n" + product(p) + "  wgmma.commit_group.sync.aligned;\n";
    text += between + "  wgmma.wait_group.sync.aligned 0;\n";
    for (std::uint32_t r = 0; r < p.registers(); ++r)
      text += fmt::format("  st.global.u32 [%rd3+{}], %d{};\n", r * 512, r);
    return text + "  ret;\n}\n";
  }
  static std::string product(const Problem& p) {
    std::string d = "{", literals;
    for (std::uint32_t r = 0; r < p.registers(); ++r)
      d += (r == 0 ? "%d" : ", %d") + std::to_string(r);
    if (p.floating()) literals = fmt::format(", {}, {}", p.scale_a, p.scale_b);
    if (p.a.element_bytes == 2) {
      if (!p.a_in_registers) literals += p.a.k_major ? ", 0" : ", 1";
      literals += p.b.k_major ? ", 0" : ", 1";
    }
    return fmt::format("  wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {}}}, {}, %db, %p1{};\n",
                       p.n, p.k(), p.d_type, p.a_type, p.b_type, d,
                       p.a_in_registers ? "{%a0, %a1, %a2, %a3}" : "%da", literals);
  }

  int value(const std::string& type) {
    const int v = static_cast<int>(random_() % 9);
    return type == "u8" ? v : v - 4;
  }
  void fill(const Problem& p) {
    a_.assign(std::size_t{kRowsOfA} * p.k(), 0);
    b_.assign(std::size_t{p.n} * p.k(), 0);
    c_.assign(std::size_t{kRowsOfA} * p.n, 0);
    for (int& v : a_) v = value(p.a_type);
    for (int& v : b_) v = value(p.b_type);
    for (int& v : c_) v = value("s32");
  }
  static void put(std::vector<std::byte>& image, const Layout& l, const std::vector<int>& matrix,
                  const std::string& type) {
    for (std::uint32_t row = 0; row < l.rows; ++row) {
      for (std::uint32_t k = 0; k < l.depth(); ++k) {
        const std::uint32_t bits = encoded(type, matrix[row * l.depth() + k]);
        std::memcpy(image.data() + l.at(row, k), &bits, l.element_bytes);
      }
    }
  }
  // f(register, thread, shift in it, row, column) for each element of D.
  static void for_elements(const Problem& p,
                           const std::function<void(std::uint32_t, std::uint32_t, std::uint32_t,
                                                    std::uint32_t, std::uint32_t)>& f) {
    for (std::uint32_t t = 0; t < 128; ++t) {
      for (std::uint32_t i = 0; i < p.n / 2; ++i) {
        const std::uint32_t row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
        const std::uint32_t column = i / 4 * 8 + t % 4 * 2 + i % 2;
        const bool half = p.d_type == "f16";
        f(half ? i / 2 : i, t, half ? i % 2 * 16 : 0, row, column);
      }
    }
  }
  std::vector<std::byte> image_of(Problem& p) {
    p.b.start = (p.a.bytes() + 1023) / 1024 * 1024;
    EXPECT_LE(p.b.start + p.b.bytes(), kMemory);
    std::vector<std::byte> image(kMemory);
    put(image, p.a, a_, p.a_type);
    put(image, p.b, b_, p.b_type);
    return image;
  }
  std::vector<std::uint32_t> registers_of(const Problem& p) {
    std::vector<std::uint32_t> registers(std::size_t{p.registers() + 4} * 128);
    for_elements(p, [&](auto r, auto t, auto shift, auto row, auto column) {
      registers[r * 128 + t] |=
          (encoded(p.d_type, c_[row * p.n + column]) & (p.d_type == "f16" ? 0xffffu : ~0u))
          << shift;
    });
    const std::uint32_t per_word = 4 / p.a.element_bytes;
    for (std::uint32_t t = 0; t < 128; ++t) {
      for (std::uint32_t r = 0; r < 4; ++r) {
        std::uint32_t word = 0;
        const std::uint32_t row = t / 32 * 16 + t % 32 / 4 + r % 2 * 8;
        for (std::uint32_t e = 0; e < per_word; ++e) {
          const std::uint32_t k = r / 2 * p.k() / 2 + t % 4 * per_word + e;
          const std::uint32_t bits = encoded(p.a_type, a_[row * p.k() + k]);
          word |= (bits & (p.a.element_bytes == 4 ? ~0u : (1u << 8 * p.a.element_bytes) - 1))
                  << (8 * p.a.element_bytes * e);
        }
        registers[(p.registers() + r) * 128 + t] = word;
      }
    }
    return registers;
  }
  LaunchResult start(const Problem& p, std::uint64_t image, std::uint64_t out) {
    return launch(shape(1, 128), "k", image, out, p.a.descriptor(), p.b.descriptor(),
                  std::uint32_t{p.adds});
  }
  void check(Problem p) {
    fill(p);
    const std::uint64_t image = upload(image_of(p));
    const std::uint64_t out = upload(registers_of(p));
    load(kernel(p), "sm_90a");
    const LaunchResult r = start(p, image, out);
    ASSERT_THAT(r.findings, IsEmpty()) << r.findings[0].describe();
    const auto d = download<std::uint32_t>(out, std::size_t{p.registers()} * 128);
    unsigned wrong = 0;
    for_elements(p, [&](auto reg, auto t, auto shift, auto row, auto column) {
      int sum = p.adds ? c_[row * p.n + column] : 0;
      for (std::uint32_t k = 0; k < p.k(); ++k)
        sum += p.scale_a * a_[row * p.k() + k] * p.scale_b * b_[column * p.k() + k];
      const std::uint32_t mask = p.d_type == "f16" ? 0xffff : ~0u;
      wrong += (d[reg * 128 + t] >> shift & mask) != (encoded(p.d_type, sum) & mask);
    });
    EXPECT_EQ(wrong, 0u);
    result = r;
    device.free(image);
    device.free(out);
  }

  std::mt19937 random_{7};
  std::vector<int> a_, b_, c_;  // by rows; B by columns
};

TEST_F(WgmmaTest, EveryLayout) {
  for (const bool a_k_major : {true, false}) {
    for (const bool b_k_major : {true, false}) {
      for (const Width w : {Width::w16, Width::w32, Width::w64, Width::w128}) {
        SCOPED_TRACE(fmt::format("{} {} {}", a_k_major, b_k_major, static_cast<unsigned>(w)));
        check(problem(64, a_k_major, w, b_k_major, w));
      }
    }
  }
  check(problem(128, true, Width::w128, false, Width::w64));
  check(problem(96, false, Width::w128, true, Width::w32));
}

TEST_F(WgmmaTest, EveryType) {
  for (const bool registers : {false, true}) {
    const auto with = [&](const char* d, const char* type, std::uint32_t bytes) {
      SCOPED_TRACE(fmt::format("{} {}", type, registers));
      Problem p = problem(32);
      p.types(d, type, bytes).a_in_registers = registers;
      check(p);
    };
    with("f32", "f16", 2);
    with("f16", "f16", 2);
    with("f32", "bf16", 2);
    with("f32", "tf32", 4);
    with("s32", "s8", 1);
    with("s32", "u8", 1);
  }
  Problem mixed = problem(16).types("s32", "s8", 1);
  mixed.b_type = "u8";
  check(mixed);
  std::swap(mixed.a_type, mixed.b_type);
  check(mixed);
}

TEST_F(WgmmaTest, EveryWidth) {
  for (const std::uint32_t n : {8u, 24u, 40u, 256u}) {
    SCOPED_TRACE(n);
    check(problem(n));
  }
}

TEST_F(WgmmaTest, ScalesAndNegates) {
  Problem p = problem(32);
  p.adds = false;
  check(p);
  p.scale_a = -1;
  check(p);
  p.adds = true;
  check(p);
  p.scale_b = -1;
  check(p);
  p.scale_a = 1;
  p.types("f32", "tf32", 4);
  check(p);
}

TEST_F(WgmmaTest, CountsWhatHardwareReads) {
  Problem p = problem(64);
  check(p);
  EXPECT_EQ(result.counters.tensor_flops, 2u * 64 * 64 * 16);
  const std::uint64_t with_both = result.counters.shared_bytes;
  p.a_in_registers = true;
  check(p);
  EXPECT_EQ(with_both - result.counters.shared_bytes, 64u * 32) << "A once";
  p.n = p.b.rows = 128;
  const std::uint64_t narrow = result.counters.shared_bytes;
  check(p);
  EXPECT_EQ(result.counters.shared_bytes - narrow, 64u * 32) << "B once, not by each warp";
}

TEST_F(WgmmaTest, WhatItReadsMustNotChangeBeforeTheWait) {
  Problem p = problem(64);
  fill(p);
  const std::uint64_t image = upload(image_of(p)), out = upload(registers_of(p));
  const auto found = [&](const std::string& between, const std::string& before = {}) {
    load(kernel(p, between, before), "sm_90a");
    return kinds(start(p, image, out));
  };
  // The first warp overwrites a row of A that the last one multiplies.
  const std::string overwrite = fmt::format(
      "  setp.eq.u32 %p3, %t, 0;\n  @%p3 st.shared.u32 [memory+{}], 5;\n", p.a.at(62, 0));
  EXPECT_THAT(found(""), IsEmpty());
  EXPECT_THAT(found(overwrite), Contains(FindingKind::shared_race));
  EXPECT_THAT(found("  bar.sync 0;\n" + overwrite), Contains(FindingKind::shared_race))
      << "all have begun it, but not waited";
  EXPECT_THAT(found("  wgmma.wait_group.sync.aligned 0;\n" + overwrite), IsEmpty());
  EXPECT_THAT(found("  wgmma.wait_group.sync.aligned 1;\n  bar.sync 0;\n" + overwrite),
              Contains(FindingKind::shared_race))
      << "one group may still run";
  EXPECT_THAT(found("", overwrite), IsEmpty()) << "they meet before they begin";
}

// As a producer does that one warp tells when the buffers are free.
TEST_F(WgmmaTest, WhoHasWaitedSpeaksForItsWarpgroup) {
  Problem p = problem(64);
  check(p);
  load(kernel(p, fmt::format(R"(  wgmma.wait_group.sync.aligned 0;
  setp.eq.u32 %p3, %t, 0;
  @%p3 st.shared.u32 [memory+{}], 5;
)",
                             p.a.at(62, 0))),
       "sm_90a");
  EXPECT_THAT(start(p, upload(image_of(p)), upload(registers_of(p))).findings, IsEmpty());
}

TEST_F(WgmmaTest, UndefinedElements) {
  Problem p = problem(16);
  fill(p);
  const std::uint64_t out = upload(registers_of(p));
  // Of A, row 20 is not written; or of B, column 9.
  const auto undefined = [&](std::uint32_t at, const std::string& after) {
    std::string text = kernel(p, "", "  mov.u32 %r20, memory;\n");
    const std::string store = "  st.shared.v4.u32 [%r8], {%r4, %r5, %r6, %r7};\n";
    text.replace(text.find(store), store.size(),
                 fmt::format("  setp.eq.u32 %p4, %r3, {};\n  @!%p4", at) + store);
    text.replace(text.rfind("  st.global.u32 [%rd3+0], %d0;\n"), 0, after);
    load(text, "sm_90a");
    return start(p, upload(image_of(p)), out);
  };
  // Row 20: registers 2 and 3, 6 and 7 of lanes 16 to 19 of the second warp.
  const std::uint32_t in_a = p.a.at(20, 0);
  EXPECT_THAT(kinds(undefined(in_a, "")), IsEmpty()) << "nobody has read what was stored";
  const auto decides = [](unsigned lane, unsigned reg) {
    return fmt::format(
        "  setp.eq.u32 %p5, %t, {};\n  setp.eq.and.u32 %p6, %d{}, 77, %p5;\n"
        "  @%p6 st.global.u32 [%rd3], 1;\n",
        lane, reg);
  };
  EXPECT_THAT(kinds(undefined(in_a, decides(32 + 17, 0))), ElementsAre(FindingKind::uninitialised));
  EXPECT_THAT(kinds(undefined(in_a, decides(32 + 17, 2))), IsEmpty()) << "row 28";
  EXPECT_THAT(kinds(undefined(in_a, decides(32 + 13, 0))), IsEmpty()) << "row 19";
  EXPECT_THAT(kinds(undefined(in_a, decides(17, 0))), IsEmpty()) << "row 4";
  const std::uint32_t in_b = image_of(p).empty() ? 0 : p.b.at(9, 0);
  EXPECT_THAT(kinds(undefined(in_b, decides(64, 5))), ElementsAre(FindingKind::uninitialised));
  EXPECT_THAT(kinds(undefined(in_b, decides(64, 4))), IsEmpty()) << "column 8";
  EXPECT_THAT(kinds(undefined(in_b, decides(64, 1))), IsEmpty()) << "column 1";
}

TEST_F(WgmmaTest, UndefinedAccumulators) {
  Problem p = problem(16);
  fill(p);
  const std::uint64_t image = upload(image_of(p)), out = device.allocate(4 * 128 * 12);
  const std::string decides = "  setp.eq.u32 %p6, %d1, 77;\n  @%p6 st.global.u32 [%rd3], 1;\n";
  load(kernel(p, decides), "sm_90a");
  EXPECT_THAT(kinds(start(p, image, out)), ElementsAre(FindingKind::uninitialised));
  p.adds = false;
  EXPECT_THAT(kinds(start(p, image, out)), IsEmpty()) << "they are replaced";
}

TEST_F(WgmmaTest, WrongUses) {
  Problem p = problem(64);
  fill(p);
  const std::uint64_t image = upload(image_of(p)), out = upload(registers_of(p));
  load(kernel(p), "sm_90a");
  Problem beyond = p;
  beyond.b.start = kMemory - 1024;
  LaunchResult r = start(beyond, image, out);
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  EXPECT_THAT(kinds(r), ElementsAre(FindingKind::out_of_bounds));
  r = launch(shape(1, 64), "k", image, out, p.a.descriptor(), p.b.descriptor(), 1u);
  ASSERT_THAT(kinds(r), ElementsAre(FindingKind::warp_sync));
  EXPECT_THAT(r.findings[0].describe(), HasSubstr("fewer than four warps"));
  const std::uint64_t offset = p.a.descriptor() | std::uint64_t{1} << 49;
  EXPECT_THROW(launch(shape(1, 128), "k", image, out, offset, p.b.descriptor(), 1u), Unsupported);
}

// A warp that does not take part: the others wait for it.
TEST_F(WgmmaTest, AWarpThatStaysAway) {
  Problem p = problem(16);
  fill(p);
  load(kernel(p, R"(  setp.ge.u32 %p3, %t, 96;
  @%p3 bar.sync 1;
)"),
       "sm_90a");
  const LaunchResult r = start(p, upload(image_of(p)), upload(registers_of(p)));
  EXPECT_THAT(kinds(r), Contains(FindingKind::deadlock));
}

TEST_F(WgmmaTest, RefusedForms) {
  const auto refusal = [&](const std::string& instruction) {
    load(".visible .entry k() {\n .reg .b32 %d<8>, %a<4>; .reg .b64 %da, %db; .reg .pred %p1;\n" +
             instruction + "\n ret;\n}\n",
         "sm_90a");
    try {
      launch(shape(1, 128), "k");
    } catch (const Unsupported& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string d = "{%d0, %d1, %d2, %d3}";
  const std::string name = "wgmma.mma_async.sync.aligned.m64n8k";
  EXPECT_THAT(refusal(name + "32.f32.e4m3.e4m3 " + d + ", %da, %db, %p1, 1, 1;"),
              HasSubstr("not documented"));
  EXPECT_THAT(refusal(name + "256.s32.b1.b1.and.popc " + d + ", %da, %db, %p1;"),
              HasSubstr("wgmma"));
  EXPECT_THAT(refusal("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 " + d +
                      ", %da, %db, %d4, 0, %p1, 1, 1, 0, 0;"),
              HasSubstr("sparse"));
  for (const char* wrong : {"16.f32.f16.bf16 {%d0, %d1, %d2, %d3}, %da, %db, %p1, 1, 1, 0, 0;",
                            "8.f32.f16.f16 {%d0, %d1, %d2, %d3}, %da, %db, %p1, 1, 1, 0, 0;",
                            "16.f32.f16.f16 {%d0, %d1}, %da, %db, %p1, 1, 1, 0, 0;",
                            "16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %da, %db, %p1, 1, 2, 0, 0;",
                            "16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %da, %db, %p1, 1, 1, 0;",
                            "16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %da, %db, %p1, 1, 1, 0, 2;",
                            "32.s32.s8.s8 {%d0, %d1, %d2, %d3}, %da, %db, %p1, 1;"})
    EXPECT_THAT(refusal(name + wrong), HasSubstr("wgmma")) << wrong;
  const std::string right = name + "16.f32.f16.f16 " + d + ", %da, %db, %p1, 1, 1, 0, 0;";
  EXPECT_THAT(refusal("setp.eq.u32 %p1, 1, 2;\nmov.b64 %da, 0;\nmov.b64 %db, 0;\n" + right),
              IsEmpty());
}

}  // namespace
}  // namespace assay::sim
