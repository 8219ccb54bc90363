#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/ptx/support.h"

namespace assay::sim::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::vector<std::string> rendered(const Function& function) {
  std::vector<std::string> out;
  for (const Instruction& instruction : function.body) out.push_back(render(instruction));
  return out;
}

Type type_of(const Function& function, std::string_view name) {
  for (const Register& r : function.registers) {
    if (r.name == name) return r.type;
  }
  return Type::none;
}

TEST(PtxScope, RegistersOfRangesAppearWhenMentioned) {
  const Function k = parse_body("add.s32 %r98, %r0, %r0; mov.pred %p8, %p0;");
  EXPECT_EQ(k.registers.size(), 4u);
  EXPECT_EQ(type_of(k, "%r98"), Type::b32);
  EXPECT_EQ(type_of(k, "%p8"), Type::pred);
}

TEST(PtxScope, SingleRegistersAndLists) {
  const Function k = parse_body(".reg .f64 a, b<2>, c; foo a, b1, c;");
  EXPECT_EQ(type_of(k, "a"), Type::f64);
  EXPECT_EQ(type_of(k, "b1"), Type::f64);
  EXPECT_EQ(type_of(k, "c"), Type::f64);
}

TEST(PtxScope, RangesEndBeforeTheirCount) {
  EXPECT_THAT(error_in_body(".reg .b32 a<8>; foo a8;"), HasSubstr("7:21: nothing declares 'a8'"));
  EXPECT_THAT(error_in_body(".reg .b32 a<8>; foo a07;"), HasSubstr("nothing declares 'a07'"));
  EXPECT_THAT(error_in_body(".reg .b32 a<8>; foo a;"), HasSubstr("nothing declares 'a'"));
  EXPECT_EQ(type_of(parse_body(".reg .b16 a1<8>; .reg .b32 a<3>; foo a17, a2;"), "a17"), Type::b16);
}

TEST(PtxScope, InnerRegistersHideOuterOnes) {
  const Function k = parse_body(
      "mov %r1, 0; { .reg .b64 %r1; mov %r1, 1; { .reg .f32 %r1; mov %r1, 2; } mov %r1, 3; } mov "
      "%r1, 4;");
  EXPECT_THAT(rendered(k),
              ElementsAre("mov%r1,0;", "mov%r1#1,1;", "mov%r1#2,2;", "mov%r1#1,3;", "mov%r1,4;"));
  EXPECT_EQ(type_of(k, "%r1"), Type::b32);
  EXPECT_EQ(type_of(k, "%r1#1"), Type::b64);
  EXPECT_EQ(type_of(k, "%r1#2"), Type::f32);
}

TEST(PtxScope, InnerRangesHideOuterOnes) {
  const Function k =
      parse_body("mov %r1, 0; { .reg .b64 %r<4>; mov %r1, 1; mov %r5, 1; } mov %r1, 2;");
  EXPECT_THAT(rendered(k), ElementsAre("mov%r1,0;", "mov%r1#1,1;", "mov%r5,1;", "mov%r1,2;"));
  EXPECT_EQ(type_of(k, "%r1#1"), Type::b64);
}

// Inline assembly does this: the same names in consecutive scopes.
TEST(PtxScope, SiblingsHaveRegistersOfTheirOwn) {
  const Function k = parse_body(
      "{ .reg .pred p; mov p, 1; } { .reg .b32 p; mov p, 2; } { .reg .b64 p; mov p, 3; }");
  EXPECT_THAT(rendered(k), ElementsAre("movp,1;", "movp#1,2;", "movp#2,3;"));
  EXPECT_EQ(k.registers.size(), 3u);
}

TEST(PtxScope, CallSequencesHaveParametersOfTheirOwn) {
  const Function k = parse_body(
      "{ .param .b64 param0; st.param.b64 [param0], %rd1; }"
      "{ .param .align 16 .b8 param0[32]; st.param.b64 [param0+8], %rd2; }");
  ASSERT_EQ(k.locals.size(), 2u);
  EXPECT_EQ(k.locals[0].name, "param0");
  EXPECT_EQ(k.locals[1].name, "param0#1");
  EXPECT_EQ(k.locals[1].bytes, 32u);
  EXPECT_THAT(rendered(k),
              ElementsAre("st.param.b64[param0],%rd1;", "st.param.b64[param0#1+8],%rd2;"));
}

TEST(PtxScope, LocalsThatHideNamesOfTheModuleAreRenamed) {
  const Module module = parse_module(
      ".shared .b32 x; .func f() { { .local .b32 x; st.local [x], 0; } st.shared [x], 1; }");
  EXPECT_THAT(rendered(module.functions.at(0)), ElementsAre("st.local[x#1],0;", "st.shared[x],1;"));
}

TEST(PtxScope, GuardsAreRenamedToo) {
  const Function k = parse_body("{ .reg .pred %p1; @!%p1 foo !%p1; } @%p1 foo;");
  EXPECT_THAT(rendered(k), ElementsAre("@!%p1foo!%p1;", "@%p1#1foo;"));
}

TEST(PtxScope, LabelsPointToTheNextInstruction) {
  const Function k = parse_body("bra C; A: add; { B: .loc 1 2 3\n sub; } bra A; C: D:");
  EXPECT_THAT(k.labels, ElementsAre(Pair("A", 1), Pair("B", 2), Pair("C", 4), Pair("D", 4)));
}

TEST(PtxScope, LabelsMayFollowTheirUse) {
  EXPECT_THAT(rendered(parse_body("@%p1 bra $L2; $L1: bra.uni $L1; $L2:")),
              ElementsAre("@%p1bra$L2;", "bra.uni$L1;"));
}

TEST(PtxScope, LabelsOfSiblingsDiffer) {
  const Function k = parse_body("{ W: @%p1 bra D; bra W; D: } { W: @%p1 bra D; bra W; D: }");
  EXPECT_THAT(rendered(k), ElementsAre("@%p1braD;", "braW;", "@%p1braD#1;", "braW#1;"));
  EXPECT_THAT(k.labels, ElementsAre(Pair("D", 2), Pair("D#1", 4), Pair("W", 0), Pair("W#1", 2)));
}

// Even if the outer label comes first: what an inner scope hides does not depend on the order in
// the text.
TEST(PtxScope, InnerLabelsHideOuterOnes) {
  EXPECT_THAT(rendered(parse_body("L: bra L; { bra L; L: bra L; } bra L;")),
              ElementsAre("braL;", "braL#1;", "braL#1;", "braL;"));
}

TEST(PtxScope, LabelsOfInnerScopesAreUnknownOutside) {
  EXPECT_EQ(error_in_body("bra L; { L: }"), "7:5: nothing declares 'L'");
}

TEST(PtxScope, BranchTargets) {
  const Function k = parse_body(
      "{ T: .branchtargets A, B, A; brx.idx %r1, T; A: B: } { T: .branchtargets A; A: brx.idx %r1, "
      "T; }");
  EXPECT_THAT(k.branch_targets,
              ElementsAre(Pair("T", ElementsAre("A", "B", "A")), Pair("T#1", ElementsAre("A#1"))));
  EXPECT_THAT(rendered(k), ElementsAre("brx.idx%r1,T;", "brx.idx%r1,T#1;"));
  EXPECT_FALSE(k.labels.contains("T"));
  EXPECT_THAT(error_in_body("T: .branchtargets A, B; A:"), HasSubstr("7:22: nothing declares 'B'"));
}

TEST(PtxScope, CallTargets) {
  const Module module = parse_module(
      ".func f(); .func g(); .func k() { .reg .b64 a; T: .calltargets f, g; call a, T; }");
  EXPECT_THAT(module.functions.at(2).call_targets, ElementsAre(Pair("T", ElementsAre("f", "g"))));
  EXPECT_THAT(error_in_module(".func k() { T: .calltargets f; }"),
              HasSubstr("nothing declares 'f'"));
}

TEST(PtxScope, OneScopeDeclaresANameOnce) {
  EXPECT_EQ(error_in_body(".reg .b32 a; .reg .b64 a;"), "7:24: 'a' is declared twice in one scope");
  EXPECT_EQ(error_in_body(".reg .b32 a<2>; .reg .b64 a<3>;"),
            "7:27: 'a' is declared twice in one scope");
  EXPECT_EQ(error_in_body("L: L:"), "7:4: label 'L' is declared twice in one scope");
  EXPECT_EQ(error_in_body(".shared .b32 a, a;"), "7:17: 'a' is declared twice in one scope");
  EXPECT_THAT(error_in_module(".func f(.param .b32 a, .param .b32 a) {}"), HasSubstr("twice"));
  EXPECT_THAT(error_in_module(".func f(.param .b32 a) { .reg .b32 a; }"), HasSubstr("twice"));
}

TEST(PtxScope, Limits) {
  std::string open, close;
  for (int i = 0; i < 31; ++i) open += "{", close += "}";
  EXPECT_EQ(error_in_body(open + close), "no error");
  EXPECT_EQ(error_in_body("{" + open + close + "}"), "7:32: more than 32 nested scopes");
  EXPECT_THAT(error_in_body(".reg .b32 x<4000000000>;"),
              HasSubstr("7:11: more than 1048576 registers"));
  EXPECT_THAT(error_in_body(".reg .b32 x<1000000>; { .reg .b32 y<1000000>; }"),
              HasSubstr("registers"));
  EXPECT_THAT(error_in_body(".reg .b32 x<18446744073709551615>;"), HasSubstr("registers"));
  EXPECT_EQ(parse_body(".reg .b32 x<1000000>; foo x999999;").registers.size(), 1u);
}

TEST(PtxScope, UniqueNamesAreUnique) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "{ .reg .b32 %r<9>, a; .local .b8 b; L: foo a, %r1, b; bra L; }";
  const Function k = parse_body(text);
  std::set<std::string> names;
  for (const Register& r : k.registers) EXPECT_TRUE(names.insert(r.name).second) << r.name;
  for (const Variable& v : k.locals) EXPECT_TRUE(names.insert(v.name).second) << v.name;
  EXPECT_EQ(names.size(), 150u);
  EXPECT_EQ(k.labels.size(), 50u);
}

}  // namespace
}  // namespace assay::sim::ptx
