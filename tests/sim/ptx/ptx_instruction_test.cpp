#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/ptx/support.h"

namespace assay::sim::ptx {
namespace {

using Kind = Operand::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PtxInstruction, OpcodeModifiersAndOperands) {
  const Instruction load = parse_instruction("ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+16];");
  EXPECT_EQ(load.opcode, "ld");
  EXPECT_THAT(load.modifiers, ElementsAre("global", "nc", "v2", "f32"));
  EXPECT_EQ(load.full_name(), "ld.global.nc.v2.f32");
  EXPECT_FALSE(load.guarded);
  ASSERT_EQ(load.operands.size(), 2u);
  EXPECT_EQ(load.operands[0].kind, Kind::vector);
  EXPECT_EQ(load.operands[1].kind, Kind::address);
  EXPECT_EQ(load.operands[1].offset, 16);
  EXPECT_EQ(load.operands[1].elements.at(0).name, "%rd1");
}

TEST(PtxInstruction, MayHaveNoOperands) {
  EXPECT_TRUE(parse_instruction("ret;").operands.empty());
  EXPECT_EQ(parse_instruction("bar.warp.sync -1;").full_name(), "bar.warp.sync");
}

TEST(PtxInstruction, ModifiersMayStandApart) {
  EXPECT_EQ(parse_instruction("ld .global\n.L2::128B .u32 %r1, [%rd1];").full_name(),
            "ld.global.L2::128B.u32");
}

TEST(PtxInstruction, Guards) {
  const Instruction plain = parse_instruction("@%p1 exit;");
  EXPECT_TRUE(plain.guarded);
  EXPECT_FALSE(plain.guard_negated);
  EXPECT_EQ(plain.guard, "%p1");
  const Instruction negated = parse_instruction("@!%p2 exit;");
  EXPECT_TRUE(negated.guard_negated);
  EXPECT_EQ(negated.guard, "%p2");
}

TEST(PtxInstruction, LiteralOperands) {
  EXPECT_EQ(parse_operand("42").value, 42u);
  EXPECT_EQ(parse_operand("-1").value, ~std::uint64_t{0});
  EXPECT_EQ(parse_operand("0xFFFFFFFF").value, 0xffffffffu);
  EXPECT_EQ(parse_operand("-9223372036854775808").value, std::uint64_t{1} << 63);
  EXPECT_EQ(parse_operand("0f3F800000").kind, Kind::real32);
  EXPECT_EQ(parse_operand("-0f3F800000").value, 0xbf800000u);
  EXPECT_EQ(parse_operand("0d3FF0000000000000").kind, Kind::real64);
  EXPECT_EQ(parse_operand("1.0").value, 0x3ff0000000000000u);
  EXPECT_EQ(parse_operand("-1.0").value, 0xbff0000000000000u);
  EXPECT_EQ(parse_operand("WARP_SZ").value, 32u);
}

TEST(PtxInstruction, ConstantExpressions) {
  const auto value = [](std::string_view text) {
    return static_cast<std::int64_t>(parse_operand(text).value);
  };
  EXPECT_EQ(value("1 + 2*3"), 7);
  EXPECT_EQ(value("(1+2)*3"), 9);
  EXPECT_EQ(value("10 - 4 - 3"), 3);
  EXPECT_EQ(value("1<<4|3"), 19);
  EXPECT_EQ(value("~0 & 0xf0 ^ 0x11"), 0xe1);
  EXPECT_EQ(value("-7/2"), -3);
  EXPECT_EQ(value("-7 % 3"), -1);
  EXPECT_EQ(value("-1 >> 1"), -1);
  EXPECT_EQ(value("0xFFFFFFFFFFFFFFFF >> 63"), 1);
  EXPECT_EQ(value("-1 < 1"), 1);
  EXPECT_EQ(value("-1 < 1U"), 0);
  EXPECT_EQ(value("(.s64) -1 < 1"), 1);
  EXPECT_EQ(value("1 ? 2 : 3"), 2);
  EXPECT_EQ(value("0 ? 2 : 0 ? 3 : 4"), 4);
  EXPECT_EQ(value("1 == 1 && 2 != 2 || 3 >= 3"), 1);
  EXPECT_EQ(value("1 << 64"), 0);
  EXPECT_EQ(value("(.s64)0x8000000000000000 / -1"), std::numeric_limits<std::int64_t>::min());
  EXPECT_THAT(error_in_body("foo 1/0;"), HasSubstr("divides by zero"));
  EXPECT_THAT(error_in_body("foo 1.0+2;"), HasSubstr("7:8: expected integers as operands of '+'"));
}

TEST(PtxInstruction, Registers) {
  EXPECT_EQ(parse_operand("%r1").kind, Kind::reg);
  EXPECT_EQ(parse_operand("%r1").name, "%r1");
  const Operand negated = parse_operand("!%p1");
  EXPECT_EQ(negated.kind, Kind::reg);
  EXPECT_TRUE(negated.negated);
  EXPECT_EQ(negated.name, "%p1");
}

TEST(PtxInstruction, PartsOfRegisters) {
  EXPECT_STREQ(parse_operand("%r1.b3").selector, "b3");
  EXPECT_STREQ(parse_operand("%r1.h1").selector, "h1");
  EXPECT_STREQ(parse_operand("%r1").selector, "");
  EXPECT_EQ(parse_operand("%r1.b3").name, "%r1");
  EXPECT_EQ(error_in_body("foo %r1.x;"), "7:8: expected a part of a register, found '.x'");
  EXPECT_THAT(error_in_body("foo %r1.h2;"), HasSubstr("expected a part of a register"));
}

TEST(PtxInstruction, SpecialRegisters) {
  for (const char* name : {"%tid.x", "%ntid.y", "%ctaid.z", "%laneid", "%clock64", "%lanemask_lt",
                           "%envreg31", "%pm7", "%pm0_64", "%globaltimer", "%cluster_ctarank",
                           "%dynamic_smem_size", "%nwarpid", "%smid", "%gridid", "%clock_hi"}) {
    EXPECT_EQ(parse_operand(name).kind, Kind::special) << name;
    EXPECT_EQ(parse_operand(name).name, name);
  }
  EXPECT_THAT(error_in_body("foo %envreg32;"), HasSubstr("7:5: nothing declares '%envreg32'"));
  EXPECT_THAT(error_in_body("foo %tid.q;"),
              HasSubstr("7:9: expected a component of '%tid', found '.q'"));
}

TEST(PtxInstruction, Addresses) {
  const auto rendered = [](std::string_view text) { return render(parse_operand(text)); };
  EXPECT_EQ(rendered("[%rd1]"), "[%rd1]");
  EXPECT_EQ(rendered("[%rd1+4]"), "[%rd1+4]");
  EXPECT_EQ(rendered("[%rd1 + -4]"), "[%rd1+-4]");
  EXPECT_EQ(rendered("[%rd1-4]"), "[%rd1+-4]");
  EXPECT_EQ(rendered("[%rd1+4*8-2]"), "[%rd1+30]");
  EXPECT_EQ(rendered("[k_param_0]"), "[k_param_0]");
  EXPECT_EQ(rendered("[k_param_0+8]"), "[k_param_0+8]");
  EXPECT_EQ(rendered("[64]"), "[64]");
  EXPECT_EQ(rendered("[0x10+2]"), "[18]");
  EXPECT_TRUE(parse_operand("[64]").elements.empty());
  EXPECT_EQ(rendered("[%rd1, {%r1, %r2}]"), "[%rd1,{%r1,%r2}]");
  EXPECT_EQ(parse_operand("[k_param_0+8]").elements.at(0).offset, 0);
}

TEST(PtxInstruction, VectorsSinksAndPairs) {
  EXPECT_EQ(render(parse_operand("{%r1, 0, _, 0f00000000}")), "{%r1,0,_,0f00000000}");
  EXPECT_EQ(parse_operand("_").kind, Kind::sink);
  const Instruction shuffle = parse_instruction("shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;");
  EXPECT_TRUE(shuffle.paired);
  ASSERT_EQ(shuffle.operands.size(), 6u);
  EXPECT_EQ(shuffle.operands[1].name, "%p1");
  EXPECT_EQ(render(parse_instruction("elect.sync _|%p1, -1;")), "elect.sync_|%p1,-1;");
  EXPECT_FALSE(parse_instruction("setp.eq.s32 %p1, %r1, 1|2;").paired);
}

TEST(PtxInstruction, Symbols) {
  const Module module = parse_module(
      ".global .b32 table[4]; .func f() { .reg .b64 a; mov.u64 a, table+8; mov.u64 a, f; }");
  const auto& body = module.functions.at(0).body;
  EXPECT_EQ(body.at(0).operands.at(1).kind, Kind::symbol);
  EXPECT_EQ(render(body.at(0)), "mov.u64a,table+8;");
  EXPECT_EQ(render(body.at(1)), "mov.u64a,f;");
}

TEST(PtxInstruction, Calls) {
  const Module module = parse_module(R"(
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func k() {
  .reg .b32 %r<3>; .reg .b64 %rd<3>;
  { .param .b64 param0; .param .b64 param1; .param .b32 retval0;
    st.param.b64 [param0+0], %rd1;
    call.uni (retval0), vprintf, (param0, param1);
    ld.param.b32 %r1, [retval0+0]; }
  call vprintf, (%rd1, 7);
  call vprintf;
  call (%r1), %rd1, (%r2), proto;
  proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]);
})");
  const Function& k = module.functions.at(1);
  EXPECT_EQ(render(k.body.at(1)), "call.uni(retval0),vprintf,(param0,param1);");
  EXPECT_EQ(k.body.at(1).operands.at(0).kind, Kind::list);
  EXPECT_EQ(k.body.at(1).operands.at(2).elements.at(0).kind, Kind::symbol);
  EXPECT_EQ(render(k.body.at(3)), "callvprintf,(%rd1,7);");
  EXPECT_EQ(render(k.body.at(4)), "callvprintf;");
  EXPECT_EQ(render(k.body.at(5)), "call(%r1),%rd1,(%r2),proto;");
  const Function& prototype = k.prototypes.at("proto");
  ASSERT_EQ(prototype.parameters.size(), 2u);
  EXPECT_EQ(prototype.results.at(0).bytes, 4u);
  EXPECT_EQ(prototype.parameters[1].bytes, 16u);
  EXPECT_EQ(prototype.parameters[1].align, 8u);
}

TEST(PtxInstruction, UnknownOpcodesParse) {
  EXPECT_EQ(
      render(parse_instruction("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
                               "{%f1,%f2,%f3,%f4}, %rd1, %rd2, %p1, 1, -1, 0, 1;")),
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16{%f1,%f2,%f3,%f4},%rd1,%rd2,%p1,1,-1,0,1;");
  EXPECT_EQ(
      render(parse_instruction("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
                               "complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];")),
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes[%r1],[%rd1,"
      "{%r2,%r3}],[%r4];");
}

TEST(PtxInstruction, Errors) {
  EXPECT_EQ(error_in_body("add.s32 %r1, %r2, %r3\nret;"),
            "8:1: expected ';' or ',' after an operand, found 'ret'");
  EXPECT_EQ(error_in_body("add.s32 %r1, , %r3;"), "7:14: expected an operand, found ','");
  EXPECT_EQ(error_in_body("add.s32 %r1, %r99;"), "7:14: nothing declares '%r99'");
  EXPECT_EQ(error_in_body("ld.u32 %r1, [%rd1;"), "7:18: expected ']' after an address, found ';'");
  EXPECT_EQ(error_in_body("ld.u32 %r1, [nowhere];"), "7:14: nothing declares 'nowhere'");
  EXPECT_EQ(error_in_body("ld.u32 %r1, [%tid.x];"),
            "7:14: expected a register or variable as address, found '%tid'");
  EXPECT_EQ(error_in_body("mov.b64 {%r1 %r2}, %rd1;"),
            "7:14: expected '}' or ',' after an element, found '%r2'");
  EXPECT_EQ(error_in_body("@%p9 ret;"), "7:2: nothing declares the register '%p9'");
  EXPECT_EQ(error_in_body("@ret;"), "7:2: nothing declares the register 'ret'");
  EXPECT_EQ(error_in_body("and.pred %p1, !k_param_0, %p2;"),
            "7:16: nothing declares the register 'k_param_0'");
  EXPECT_EQ(error_in_body("%r1 ret;"), "7:1: expected an instruction, found '%r1'");
  EXPECT_EQ(error_in_body("@%p1 42;"), "7:6: expected an instruction, found '42'");
}

}  // namespace
}  // namespace assay::sim::ptx
