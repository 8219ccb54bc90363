#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "sim/ptx/support.h"

namespace assay::sim::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Variable variable(std::string_view declaration) {
  return parse_module(std::string(".global .b32 g; .func f(); ") + std::string(declaration))
      .variables.at(1);
}

template <class T>
std::vector<T> values(const Variable& v) {
  std::vector<T> out(v.initial.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), v.initial.data(), v.initial.size());
  return out;
}

TEST(PtxVariable, SpacesTypesAndSizes) {
  const Module module = parse_module(R"(
.visible .const .align 4 .b8 coefficients[64];
.visible .global .align 8 .u64 counter;
.shared .align 16 .b8 tile[4096];
.local .f64 scratch[4][2];
.extern .shared .align 16 .b8 smem[];
.extern .global .f32 elsewhere[8];
.common .global .b16 shared_by_modules;
.global .v4 .f32 vector;
.global .attribute(.managed) .align 4 .u32 managed, another[3];
)");
  const auto& v = module.variables;
  ASSERT_EQ(v.size(), 10u);
  EXPECT_EQ(v[0].space, Space::constant);
  EXPECT_EQ(v[0].bytes, 64u);
  EXPECT_EQ(v[0].align, 4u);
  EXPECT_EQ(v[1].space, Space::global);
  EXPECT_EQ(v[1].type, Type::u64);
  EXPECT_EQ(v[1].bytes, 8u);
  EXPECT_EQ(v[2].space, Space::shared);
  EXPECT_EQ(v[3].space, Space::local);
  EXPECT_EQ(v[3].bytes, 64u);
  EXPECT_EQ(v[3].align, 8u);
  EXPECT_TRUE(v[4].is_extern);
  EXPECT_EQ(v[4].bytes, 0u);
  EXPECT_EQ(v[4].align, 16u);
  EXPECT_TRUE(v[5].is_extern);
  EXPECT_EQ(v[5].bytes, 32u);
  EXPECT_EQ(v[6].bytes, 2u);
  EXPECT_FALSE(v[6].is_extern);
  EXPECT_EQ(v[7].bytes, 16u);
  EXPECT_EQ(v[7].align, 16u);
  EXPECT_TRUE(v[8].managed);
  EXPECT_EQ(v[9].name, "another");
  EXPECT_EQ(v[9].bytes, 12u);
  EXPECT_EQ(v[9].where.line, 13u);
  for (const Variable& each : v) EXPECT_TRUE(each.initial.empty());
}

TEST(PtxVariable, ScalarValues) {
  EXPECT_THAT(values<std::uint32_t>(variable(".global .u32 x = 7;")), ElementsAre(7u));
  EXPECT_THAT(values<std::int16_t>(variable(".const .s16 x = -2;")), ElementsAre(-2));
  EXPECT_THAT(values<std::uint64_t>(variable(".const .b64 x = 0xFEDCBA9876543210;")),
              ElementsAre(0xfedcba9876543210u));
  EXPECT_THAT(values<std::uint8_t>(variable(".const .u8 x = (1<<4)|3;")), ElementsAre(19));
  EXPECT_THAT(values<float>(variable(".global .f32 x = 0f3F800000;")), ElementsAre(1.0f));
  EXPECT_THAT(values<float>(variable(".global .f32 x = -2.5;")), ElementsAre(-2.5f));
  EXPECT_THAT(values<double>(variable(".global .f64 x = 0d4000000000000000;")), ElementsAre(2.0));
  EXPECT_THAT(values<float>(variable(".global .b32 x = 0d4000000000000000;")), ElementsAre(2.0f));
  EXPECT_THAT(values<std::uint8_t>(variable(".global .b8 x = 300;")), ElementsAre(44));
  EXPECT_THAT(values<std::int64_t>(variable(".global .b128 x = -2;")), ElementsAre(-2, -1));
}

TEST(PtxVariable, Arrays) {
  EXPECT_THAT(values<char>(variable(".const .align 1 .b8 s[4] = {37, 100, 10};")),
              ElementsAre('%', 'd', '\n', '\0'));
  EXPECT_THAT(values<float>(variable(".const .f32 b[] = {-1.0, 0f40000000};")),
              ElementsAre(-1.0f, 2.0f));
  EXPECT_EQ(variable(".const .f32 b[] = {-1.0, 1.0};").bytes, 8u);
  EXPECT_THAT(values<int>(variable(".global .s32 o[][2] = { {-1, 0}, {0, -1}, {1} };")),
              ElementsAre(-1, 0, 0, -1, 1, 0));
  EXPECT_THAT(values<int>(variable(".global .s32 o[2][2] = { {1}, {2} };")),
              ElementsAre(1, 0, 2, 0));
  EXPECT_THAT(values<int>(variable(".global .s32 o[2][2][2] = { {{1, 2}, {3}}, {{4}} };")),
              ElementsAre(1, 2, 3, 0, 4, 0, 0, 0));
  EXPECT_THAT(values<int>(variable(".global .v2 .s32 o[2] = { {1, 2}, {3, 4} };")),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values<int>(variable(".global .s32 o[3] = {};")), ElementsAre(0, 0, 0));
}

TEST(PtxVariable, Addresses) {
  const Variable v =
      variable(".global .align 8 .u64 t[4] = {f, g+4, generic(g)+8, generic(g+2)-1};");
  ASSERT_EQ(v.relocations.size(), 4u);
  EXPECT_EQ(v.initial.size(), 32u);
  EXPECT_EQ(v.relocations[0].symbol, "f");
  EXPECT_EQ(v.relocations[0].at, 0u);
  EXPECT_EQ(v.relocations[0].bytes, 8u);
  EXPECT_EQ(v.relocations[1].addend, 4);
  EXPECT_FALSE(v.relocations[1].generic);
  EXPECT_EQ(v.relocations[2].at, 16u);
  EXPECT_TRUE(v.relocations[2].generic);
  EXPECT_EQ(v.relocations[2].addend, 8);
  EXPECT_EQ(v.relocations[3].addend, 1);
}

TEST(PtxVariable, BytesOfAddressesJoin) {
  const Variable v = variable(
      ".global .align 8 .b8 t[10] = {1, 0xFF(g+4), 0xFF00(g+4), 0xFF0000(g+4), 0xFF000000(g+4), "
      "0xFF00(generic(g)), 0xFF00(f), 7};");
  ASSERT_EQ(v.relocations.size(), 3u);
  EXPECT_EQ(v.relocations[0].at, 1u);
  EXPECT_EQ(v.relocations[0].bytes, 4u);
  EXPECT_EQ(v.relocations[0].shift, 0u);
  EXPECT_EQ(v.relocations[0].addend, 4);
  EXPECT_EQ(v.relocations[1].at, 5u);
  EXPECT_EQ(v.relocations[1].bytes, 1u);
  EXPECT_EQ(v.relocations[1].shift, 8u);
  EXPECT_TRUE(v.relocations[1].generic);
  EXPECT_EQ(v.relocations[2].symbol, "f");
  EXPECT_EQ(static_cast<int>(v.initial[7]), 7);
}

TEST(PtxVariable, MayReferToItself) {
  EXPECT_EQ(variable(".global .u64 x = x;").relocations.at(0).symbol, "x");
}

TEST(PtxVariable, DeclaredAgain) {
  EXPECT_EQ(parse_module(".extern .global .b32 a; .global .b32 a = 1;").variables.size(), 2u);
  EXPECT_EQ(error_in_module(".global .b32 a; .global .b32 a;"), "4:30: 'a' is declared twice");
  EXPECT_EQ(error_in_module(".global .b32 a; .func a();"), "4:23: 'a' is declared twice");
}

TEST(PtxVariable, Errors) {
  EXPECT_EQ(error_in_module(".global x;"), "4:9: expected a type, found 'x'");
  EXPECT_EQ(error_in_module(".global .texref x;"), "4:9: expected a type, found '.texref'");
  EXPECT_EQ(error_in_module(".global .align 3 .b8 x;"),
            "4:16: expected a power of two as alignment, found '3'");
  EXPECT_EQ(error_in_module(".global .b8 x"),
            "4:14: expected ';' after a declaration, found the end of the text");
  EXPECT_EQ(error_in_module(".global .pred x;"), "4:15: only registers can be predicates");
  EXPECT_THAT(error_in_module(".global .b8 x[0];"),
              HasSubstr("4:15: expected the size of an array, found '0'"));
  EXPECT_THAT(error_in_module(".global .b8 x[2][];"),
              HasSubstr("4:18: expected a constant, found ']'"));
  EXPECT_THAT(error_in_module(".global .b8 x[];"), HasSubstr("4:13: 'x' has neither a size nor"));
  EXPECT_THAT(error_in_module(".shared .b8 x = 1;"), HasSubstr("4:15: only .global and .const"));
  EXPECT_THAT(error_in_module(".extern .global .b8 x = 1;"), HasSubstr("only .global and .const"));
  EXPECT_THAT(error_in_module(".global .b8 x[2] = 1;"), HasSubstr("4:20: expected '{'"));
  EXPECT_THAT(error_in_module(".global .b8 x[2] = {1,2,3};"),
              HasSubstr("4:25: more initial values"));
  EXPECT_THAT(error_in_module(".global .b8 x[2] = {{1}};"),
              HasSubstr("4:21: expected a constant, found '{'"));
  EXPECT_THAT(error_in_module(".global .b8 x[2][2] = {1,{2}};"),
              HasSubstr("4:24: expected '{' before"));
  EXPECT_THAT(error_in_module(".global .f32 x = 1;"),
              HasSubstr("4:18: expected a value of type .f32, found '1'"));
  EXPECT_THAT(error_in_module(".global .u32 x = 1.0;"), HasSubstr("expected a value of type .u32"));
  EXPECT_THAT(error_in_module(".global .f64 x = 0f3F800000;"), HasSubstr("of type .f64"));
  EXPECT_THAT(error_in_module(".global .f16 x = 1.0;"), HasSubstr("of type .f16"));
  EXPECT_THAT(error_in_module(".global .u64 x = y;"), HasSubstr("4:18: nothing declares 'y'"));
  EXPECT_THAT(error_in_module(".global .b8 y; .global .b8 x = 0xF(y);"),
              HasSubstr("expected a mask of one byte"));
  EXPECT_THAT(error_in_module(".global .b8 y; .global .b64 x = 0xFF(y);"),
              HasSubstr("for arrays of bytes"));
  EXPECT_THAT(error_in_module(".global .b8 x[] = {};"), HasSubstr("give the size of the array"));
}

TEST(PtxVariable, SizesAreBounded) {
  EXPECT_EQ(variable(".global .b8 x[1099511627776];").bytes, std::uint64_t{1} << 40);
  EXPECT_THAT(error_in_module(".global .b16 x[1099511627776];"), HasSubstr("more than 1 TiB"));
  EXPECT_THAT(error_in_module(".global .b8 x[4294967296][4294967296];"), HasSubstr("1 TiB"));
  EXPECT_THAT(error_in_module(".global .b8 x[][4294967296][4294967296] = {{}};"),
              HasSubstr("1 TiB"));
  EXPECT_THAT(error_in_module(".global .b8 x[1073741824] = {1};"), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_in_module(".global .b8 x[][1073741824] = {{},{}};"),
              HasSubstr("more than 64 MiB"));
  EXPECT_THAT(error_in_module(".global .b8 x[50000000] = {1}; .global .b8 y[50000000] = {1};"),
              HasSubstr("more than 64 MiB"));
}

}  // namespace
}  // namespace assay::sim::ptx
