// What the decoder derives from a selection, and what it refuses.
#include "sim/operations/alu_fixture.h"

namespace assay::sim {
namespace {

Selection select(const std::string& text) { return *select_alu(instruction(text)); }

TEST(AluSelect, OtherInstructionsAreNotOurs) {
  for (const char* text : {"ld.global.f32 d, a", "mov.u32 d, a", "bra target",
                           "shfl.sync.idx.b32 d, a, b, c, e", "mma.sync d", "st.shared.u32 a, b"}) {
    EXPECT_FALSE(select_alu(instruction(text)).has_value()) << text;
  }
}

TEST(AluSelect, Classes) {
  const std::pair<const char*, InstrClass> rows[] = {
      {"add.s32 d, a, b", InstrClass::integer},
      {"mad.wide.u32 d, a, b, c", InstrClass::integer},
      {"and.pred d, a, b", InstrClass::integer},
      {"setp.lt.s32 p, a, b", InstrClass::integer},
      {"selp.f32 d, a, b, p", InstrClass::integer},
      {"setp.lt.f32 p, a, b", InstrClass::fp32},
      {"max.f32 d, a, b", InstrClass::fp32},
      {"fma.rn.f32 d, a, b, c", InstrClass::fp32},
      {"div.rn.f32 d, a, b", InstrClass::fp32},
      {"div.full.f32 d, a, b", InstrClass::special},
      {"ex2.approx.ftz.f32 d, a", InstrClass::special},
      {"tanh.approx.f16x2 d, a", InstrClass::special},
      {"add.f64 d, a, b", InstrClass::fp64},
      {"fma.rp.f64 d, a, b, c", InstrClass::fp64},
      {"fma.rn.bf16x2 d, a, b, c", InstrClass::fp16},
      {"setp.lt.f16 p, a, b", InstrClass::fp16},
      {"cvt.rn.f16.f32 d, a", InstrClass::conversion},
      {"cvt.u64.u32 d, a", InstrClass::conversion},
  };
  for (const auto& [text, cls] : rows) EXPECT_EQ(select(text).cls, cls) << text;
}

TEST(AluSelect, Flops) {
  const std::pair<const char*, int> rows[] = {
      {"add.f32 d, a, b", 1},       {"sub.rn.ftz.f32 d, a, b", 1},  {"mul.sat.f32 d, a, b", 1},
      {"fma.rn.f32 d, a, b, c", 2}, {"fma.rm.f32 d, a, b, c", 2},   {"mad.rn.f32 d, a, b, c", 2},
      {"div.rn.f32 d, a, b", 0},    {"ex2.approx.f32 d, a", 0},     {"max.f32 d, a, b", 0},
      {"add.f64 d, a, b", 0},       {"fma.rn.f16x2 d, a, b, c", 0}, {"add.s32 d, a, b", 0},
  };
  for (const auto& [text, flops] : rows) EXPECT_EQ(select(text).flops, flops) << text;
}

TEST(AluSelect, Operands) {
  using enum OperandForm;
  EXPECT_EQ(select("mad.wide.s32 d, a, b, c").operands, (std::vector{dst64, src32, src32, src64}));
  EXPECT_EQ(select("shl.b64 d, a, b").operands, (std::vector{dst64, src64, src32}));
  EXPECT_EQ(select("bfi.b64 f, a, b, c, d").operands,
            (std::vector{dst64, src64, src64, src32, src32}));
  EXPECT_EQ(select("lop3.b32 d, a, b, c, 0x80").operands,
            (std::vector{dst32, src32, src32, src32, immediate}));
  EXPECT_EQ(select("setp.lt.and.f64 p|q, a, b, c").operands,
            (std::vector{dst_pred, dst_pred, src64, src64, src_pred}));
  EXPECT_EQ(select("setp.eq.u16 p, a, b").operands, (std::vector{dst_pred, src32, src32}));
  EXPECT_EQ(select("selp.b16 d, a, b, p").operands, (std::vector{dst32, src32, src32, src_pred}));
  EXPECT_EQ(select("popc.b64 d, a").operands, (std::vector{dst32, src64}));
  EXPECT_EQ(select("cvt.rn.f16x2.f32 d, a, b").operands, (std::vector{dst32, src32, src32}));
}

TEST(AluSelect, Refused) {
  for (const char* text : {"add.rn.f32x2 d, a, b", "add.u8 d, a, b",         "add.s32 d, a",
                           "add.f32.f16 d, a, b",  "add.rna.f32 d, a, b",    "mul.u32 d, a, b",
                           "mul.wide.u64 d, a, b", "mad.sat.s32 d, a, b, c", "max.f32 d, a, b, c",
                           "shf.l.b32 d, a, b, c", "prmt.b64 d, a, b, c",    "popc.u32 d, a",
                           "bfe.b32 d, a, b, c",   "div.f32 d, a, b",        "sqrt.rn.sat.f32 d, a",
                           "add.cc.s16 d, a, b",   "setp.lt.pred p, a, b",   "add.s32 d, !a, b",
                           "xor.u32 d, a, b",      "sub.s16x2 d, a, b"}) {
    expect_unsupported(text);
  }
}

}  // namespace
}  // namespace assay::sim
