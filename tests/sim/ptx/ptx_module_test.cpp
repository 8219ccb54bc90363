#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/ptx/support.h"

namespace assay::sim::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(PtxModule, Header) {
  const Module module = parse("// c\n.version 8.5\n.target sm_90a, debug\n.address_size 64\n");
  EXPECT_EQ(module.version_major, 8u);
  EXPECT_EQ(module.version_minor, 5u);
  EXPECT_EQ(module.target, "sm_90a");
  EXPECT_EQ(module.address_bytes, 8u);
  EXPECT_TRUE(module.functions.empty());
  EXPECT_EQ(error_of(""), "1:1: expected '.version' at the beginning, found the end of the text");
  EXPECT_EQ(error_of(".target sm_80"),
            "1:1: expected '.version' at the beginning, found '.target'");
  EXPECT_THAT(error_of(".version 9"), HasSubstr("1:10: expected a version such as 9.0, found '9'"));
  EXPECT_THAT(error_of(".version 9.0e1"), HasSubstr("1:10: expected a version"));
  EXPECT_THAT(error_of(".version 9.0"), HasSubstr("1:13: expected '.target' after the version"));
  EXPECT_THAT(error_of(".version 9.0 .target 80"), HasSubstr("expected an architecture"));
  EXPECT_THAT(error_of(".version 9.0 .target sm_80 .address_size 32"),
              HasSubstr("1:42: only addresses of 64"));
}

TEST(PtxModule, TrailingNulsAreNoText) {
  EXPECT_EQ(parse(std::string(".version 9.0 .target sm_80\n") + std::string(5, '\0')).target,
            "sm_80");
}

TEST(PtxModule, EntryWithParametersAndDirectives) {
  const Module module = parse_module(R"(
.visible .entry _Z1kPf(
	.param .u64 .ptr .global .align 16 _Z1kPf_param_0,
	.param .align 8 .b8 _Z1kPf_param_1[24],
	.param .f32 _Z1kPf_param_2
)
.maxntid 16, 16, 2
.minnctapersm 3
.maxnreg 64
{
	ret;
}
.entry small .reqntid 128 .pragma "nounroll"; .explicitcluster .reqnctapercluster 2, 1, 1 {}
)");
  const Function& k = module.functions.at(0);
  EXPECT_TRUE(k.entry);
  EXPECT_TRUE(k.defined);
  EXPECT_EQ(k.name, "_Z1kPf");
  EXPECT_EQ(k.where.line, 5u);
  ASSERT_EQ(k.parameters.size(), 3u);
  EXPECT_EQ(k.parameters[0].name, "_Z1kPf_param_0");
  EXPECT_EQ(k.parameters[0].type, Type::u64);
  EXPECT_EQ(k.parameters[0].align, 8u);  // .align 16 is the alignment of what it points to
  EXPECT_EQ(k.parameters[0].space, Space::param);
  EXPECT_EQ(k.parameters[1].bytes, 24u);
  EXPECT_EQ(k.parameters[1].align, 8u);
  EXPECT_EQ(k.parameters[2].bytes, 4u);
  EXPECT_EQ(k.max_threads, 512u);
  EXPECT_EQ(k.min_blocks, 3u);
  EXPECT_EQ(k.required_threads[0], 0u);
  EXPECT_EQ(k.required_cluster[0], 0u);
  EXPECT_EQ(k.body.size(), 1u);
  const Function& small = module.functions.at(1);
  EXPECT_THAT(small.required_threads, ElementsAre(128u, 1u, 1u));
  EXPECT_THAT(small.required_cluster, ElementsAre(2u, 1u, 1u));
  EXPECT_FALSE(small.blocks_are_clusters);
  EXPECT_TRUE(small.defined);
  EXPECT_TRUE(small.body.empty());
}

TEST(PtxModule, FunctionsWithResults) {
  const Module module = parse_module(R"(
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
.extern .func __assertfail (.param .b64 a) .noreturn;
.weak .func (.param .align 16 .b8 r[32]) f (.param .b32 f_param_0) { ret; }
.func (.reg .u32 out) g (.reg .u32 in) { add.u32 out, in, 1; ret; }
.func h { ret; }
)");
  ASSERT_EQ(module.functions.size(), 5u);
  EXPECT_FALSE(module.functions[0].defined);
  EXPECT_FALSE(module.functions[0].entry);
  EXPECT_EQ(module.functions[0].results.at(0).name, "func_retval0");
  EXPECT_TRUE(module.functions[1].noreturn);
  EXPECT_EQ(module.functions[2].results.at(0).bytes, 32u);
  const Function& g = module.functions[3];
  EXPECT_EQ(g.results.at(0).space, Space::reg);
  ASSERT_EQ(g.registers.size(), 2u);
  EXPECT_EQ(g.registers[1].name, "in");
  EXPECT_EQ(render(g.body.at(0)), "add.u32out,in,1;");
}

TEST(PtxModule, DeclarationsPrecedeUse) {
  EXPECT_EQ(parse_module(".func f(); .func g() { call f; } .func f() { call g; }").functions.size(),
            3u);
  EXPECT_EQ(error_in_module(".func g() { call f; } .func f() {}"), "4:18: nothing declares 'f'");
  EXPECT_EQ(error_in_module(".func f() {} .func f() {}"), "4:20: 'f' is declared twice");
  EXPECT_EQ(error_in_module(".func f(); .func f() {} .func f() {}"), "4:31: 'f' is declared twice");
  EXPECT_EQ(parse_module(".func f() { call f; }").functions.size(), 1u);
}

TEST(PtxModule, VariablesOfAFunctionThatAreTheModules) {
  const Module module = parse_module(
      ".global .b32 x; .func f() { .global .b32 x = 7; { .const .b8 x[2]; foo [x]; } foo [x]; }"
      ".func g() { .global .b32 x; foo [x]; }");
  ASSERT_EQ(module.variables.size(), 4u);
  EXPECT_EQ(module.variables[1].name, "f#x#1");
  EXPECT_EQ(module.variables[1].initial.size(), 4u);
  EXPECT_EQ(module.variables[2].space, Space::constant);
  EXPECT_EQ(render(module.functions.at(0).body.at(0)), "foo[" + module.variables[2].name + "];");
  EXPECT_EQ(render(module.functions.at(0).body.at(1)), "foo[" + module.variables[1].name + "];");
  EXPECT_EQ(render(module.functions.at(1).body.at(0)), "foo[" + module.variables[3].name + "];");
  EXPECT_NE(module.variables[1].name, module.variables[3].name);
}

TEST(PtxModule, AliasesAreReplaced) {
  const Module module = parse_module(R"(
.func f(); .func g() { ret; }
.func k() { .reg .b64 a; call f; mov.u64 a, f; T: .calltargets f, g; call a, T; }
.alias f, g;
.global .u64 table[1] = { f };
)");
  const Function& k = module.functions.at(2);
  EXPECT_EQ(render(k.body.at(0)), "callg;");
  EXPECT_EQ(render(k.body.at(1)), "mov.u64a,g;");
  EXPECT_THAT(k.call_targets.at("T"), ElementsAre("g", "g"));
  EXPECT_EQ(module.variables.at(0).relocations.at(0).symbol, "g");
  EXPECT_EQ(error_in_module(".func f(); .alias f, g;"), "4:22: nothing declares the function 'g'");
}

TEST(PtxModule, PlacesInTheSource) {
  const Module module = parse_module(R"(
.func f() {
  add;
  .loc 1 42 7
  sub;
  .loc 2 12 3, function_name $L__info_string0, inlined_at 1 50 9
  mul;
  .loc 1 51 1
  ret;
}
.func g() { ret; }
.file 1 "/home/someone/kernel.cu", 1700000000, 123
.file 2 "reduce.h"
.section .debug_str
{
$L__info_string0:
.b8 95,90,0 // name
}
)");
  EXPECT_THAT(module.files, ElementsAre(Pair(1, "/home/someone/kernel.cu"), Pair(2, "reduce.h")));
  const auto& body = module.functions.at(0).body;
  EXPECT_EQ(module.describe(body.at(0).where), "PTX line 6");
  EXPECT_EQ(module.describe(body.at(1).where), "kernel.cu:42");
  EXPECT_EQ(body.at(1).where.line, 8u);
  EXPECT_EQ(module.describe(body.at(2).where), "reduce.h:12, inlined at kernel.cu:50");
  EXPECT_EQ(module.describe(body.at(3).where), "kernel.cu:51");
  EXPECT_EQ(module.describe(module.functions.at(1).body.at(0).where), "PTX line 14");
}

TEST(PtxModule, InlinedCodeWithinInlinedCode) {
  const Module module = parse_module(R"(
.func f() {
  .loc 2 5 3, function_name $L__info_string0, inlined_at 1 50 9
  add;
  .loc 3 6 1, function_name $L__info_string0+12, inlined_at 2 5 3
  sub;
  .loc 3 7 1, function_name $L__info_string0+12, inlined_at 2 5 3
  mul;
  .loc 2 5 3
  .loc 3 6 1, function_name $L__info_string0+12, inlined_at 2 5 3
  div;
}
.file 1 "a.cu"
.file 2 "b.h"
.file 3 "c.h"
)");
  const auto& body = module.functions.at(0).body;
  EXPECT_EQ(module.describe(body.at(1).where), "c.h:6, inlined at b.h:5, inlined at a.cu:50");
  const std::vector<SourceLine> places{{"c.h", 6}, {"b.h", 5}, {"a.cu", 50}};
  EXPECT_EQ(module.places(body.at(1).where), places);
  EXPECT_EQ(module.describe(body.at(2).where), "c.h:7, inlined at b.h:5, inlined at a.cu:50");
  EXPECT_EQ(module.describe(body.at(3).where), "c.h:6, inlined at b.h:5");
  EXPECT_EQ(module.call_sites.size(), 3u);
}

// The description of code that inlines itself is cut off.
TEST(PtxModule, CallChainsEnd) {
  std::string text = ".file 1 \"a.cu\"\n.func f() {\n";
  for (int i = 0; i < 30; ++i) text += ".loc 1 5 3, inlined_at 1 5 3\nadd;\n";
  const Module module = parse_module(text + "}");
  EXPECT_THAT(module.describe(module.functions.at(0).body.at(3).where),
              HasSubstr("a.cu:5, inlined at a.cu:5"));
  EXPECT_THAT(module.describe(module.functions.at(0).body.back().where),
              ::testing::EndsWith(", ..."));
}

TEST(PtxModule, SectionsAreSkipped) {
  EXPECT_EQ(
      parse_module(".section .debug_info { .b32 .debug_abbrev .b8 1 { .b64 $L__b0-4 } } .func f();")
          .functions.size(),
      1u);
  EXPECT_EQ(error_in_module(".section .debug_info { .b8 1"),
            "4:29: expected '}' after the content of a section, found the end of the text");
}

TEST(PtxModule, Errors) {
  EXPECT_EQ(error_in_module("foo"), "4:1: expected a directive, found 'foo'");
  EXPECT_EQ(error_in_module(".foo 1"), "4:1: unknown directive '.foo'");
  EXPECT_EQ(error_in_module(".visible .file 1"),
            "4:10: expected a function or variable after '.visible', found '.file'");
  EXPECT_EQ(error_in_module(".entry 5"), "4:8: expected the name of a function, found '5'");
  EXPECT_EQ(error_in_module(".entry f .foo {}"),
            "4:10: unknown directive '.foo' in the head of a function");
  EXPECT_EQ(error_in_module(".entry f(.global .b32 x)"),
            "4:10: expected '.param' or '.reg', found '.global'");
  EXPECT_EQ(error_in_module(".entry f(.param .b32 x"),
            "4:23: expected ')' after the parameters, found the end of the text");
  EXPECT_EQ(error_in_module(".entry f()"),
            "4:11: expected ';' or a body after the head of a function, found the end of the text");
  EXPECT_EQ(error_in_module(".extern .func f() {}"),
            "4:19: expected ';' after an external function, found '{'");
  EXPECT_EQ(error_in_module(".entry f() .maxntid 70000, 70000 {}"),
            "4:12: too many threads in a block");
  EXPECT_EQ(error_in_module(".entry f() .maxnreg 4294967296 {}"),
            "4:21: expected a number of at most 32 bits, found '4294967296'");
  EXPECT_EQ(error_in_module(".entry f() { ret; "),
            "4:19: expected an instruction, or '}' at the end of the function, found the end of "
            "the text");
  EXPECT_EQ(error_in_module(".entry f() { .foo; }"),
            "4:14: unknown directive '.foo' in a function");
  EXPECT_EQ(error_in_module(".entry f() {} }"), "4:15: expected a directive, found '}'");
  EXPECT_EQ(error_in_module(".file 1"),
            "4:8: expected the name of a file, found the end of the text");
  EXPECT_EQ(error_in_module(".entry f() { .loc 1 2; }"),
            "4:22: expected a column number, found ';'");
}

TEST(PtxModule, NamesOfTypesAndSpaces) {
  EXPECT_EQ(size_of(Type::bf16x2), 4u);
  EXPECT_EQ(size_of(Type::b128), 16u);
  EXPECT_EQ(size_of(Type::pred), 0u);
  EXPECT_STREQ(to_string(Type::u8), "u8");
  EXPECT_STREQ(to_string(Space::constant), "const");
  for (int i = 1; i <= static_cast<int>(Type::f64); ++i) {
    EXPECT_EQ(type_named(to_string(static_cast<Type>(i))), static_cast<Type>(i));
  }
  EXPECT_EQ(type_named("none"), std::nullopt);
  EXPECT_EQ(type_named(""), std::nullopt);
}

}  // namespace
}  // namespace assay::sim::ptx
