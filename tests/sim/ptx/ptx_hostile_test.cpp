// Texts that try to crash the parser or to keep it busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <limits>
#include <random>
#include <unordered_map>

#include "sim/ptx/support.h"
#include "sim/ptx/text_hash.h"

namespace assay::sim::ptx {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMegabyte = 1 << 20;

std::string repeat(std::string_view text, std::size_t count) {
  std::string out;
  out.reserve(text.size() * count);
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

// CPU seconds to accept or refuse the text, the least of several attempts: others use the machine
// too.
double seconds(const std::string& text) {
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::clock_t begin = std::clock();
    error_of(text);
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

// A kernel of about `bytes`, in the style of nvcc.
std::string large_kernel(std::size_t bytes) {
  std::string body = ".reg .b32 %n<500000>;\n";
  for (std::size_t i = 0; body.size() < bytes; ++i) {
    const auto r = [&](std::size_t k) { return "%n" + std::to_string((7 * i + k) % 300000); };
    body += "\t.loc\t1 " + std::to_string(i % 400 + 1) + " 9\n";
    body += "\tld.global.nc.v2.u32 \t{" + r(0) + ", " + r(1) + "}, [%rd1+" + std::to_string(i * 8) +
            "];\n";
    body += "\tfma.rn.f32 \t" + r(2) + ", " + r(0) + ", " + r(1) + ", 0f3F800000;\n";
    body += "\tshfl.sync.bfly.b32 \t" + r(3) + "|%p1, " + r(2) + ", 16, 31, -1;\n";
    body += "\t@%p1 bra \t$L__BB0_" + std::to_string(i) + ";\n";
    body += "$L__BB0_" + std::to_string(i) + ":\n";
  }
  return function_text(body);
}

// Eight times the text may take eight times as long, or twice that with colder caches, but not 64
// times.
TEST(PtxHostile, LargeKernelsTakeTimeInProportion) {
  const std::string small = large_kernel(kMegabyte / 2), large = large_kernel(4 * kMegabyte);
  EXPECT_EQ(error_of(large), "no error");
  EXPECT_LT(seconds(large) / seconds(small), 32);
}

// Names that the standard library's hash puts into one bucket.
TEST(PtxHostile, NamesMadeForCollisions) {
  constexpr std::size_t kNames = 3000;
  std::unordered_map<std::string_view, int> plain;
  plain.reserve(kNames);
  ViewTable<int> table;
  table.reserve(kNames);
  std::deque<std::string> names;
  for (std::uint64_t i = 0; names.size() < kNames; ++i) {
    const std::string name = "%n" + std::to_string(i);
    if (plain.bucket(name) == 0) names.push_back(name);
  }
  for (const std::string& name : names) {
    plain.emplace(name, 0);
    table.emplace(name, 0);
  }
  EXPECT_EQ(plain.bucket_size(plain.bucket(names.front())), kNames);
  for (const std::string& name : names) ASSERT_LT(table.bucket_size(table.bucket(name)), 40u);
  EXPECT_TRUE(process_key().low != 0 || process_key().high != 0);
}

// The test vector of the paper's appendix A.
TEST(PtxHostile, NamesAreHashedWithSipHash) {
  std::string text;
  for (char c = 0; c < 15; ++c) text += c;
  const SipKey key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  EXPECT_EQ((siphash<2, 4>(key, text)), 0xa129ca6149be45e5u);
  EXPECT_NE((siphash<1, 3>(key, text)), (siphash<1, 3>(SipKey{1, 0}, text)));
}

TEST(PtxHostile, LongTokens) {
  const std::string a(4 * kMegabyte, 'a'), nine(4 * kMegabyte, '9');
  EXPECT_LT(error_of(a).size(), 200u);
  EXPECT_THAT(error_of(a), HasSubstr("aaaa...'"));
  EXPECT_THAT(error_in_body("foo " + nine + ";"), HasSubstr("does not fit in 64 bits"));
  EXPECT_THAT(error_in_body("foo 0." + nine + ";"), "no error");
  EXPECT_THAT(error_in_body("foo 1." + nine + "e" + nine + ";"), HasSubstr("range"));
  EXPECT_THAT(error_in_body("foo 0x" + nine + ";"), HasSubstr("does not fit"));
  EXPECT_THAT(error_in_body("foo 0f" + nine + ";"), HasSubstr("expected 8"));
  EXPECT_EQ(parse_body(a + ";").body.at(0).opcode.size(), a.size());
  EXPECT_THAT(error_in_body("foo ." + a), HasSubstr("expected an operand"));
}

TEST(PtxHostile, DeepNesting) {
  EXPECT_THAT(error_in_body(repeat("{", kMegabyte)), HasSubstr("nested scopes"));
  EXPECT_THAT(error_in_body("foo " + repeat("{", kMegabyte)),
              HasSubstr("operands are nested too deeply"));
  EXPECT_THAT(error_in_body("foo " + repeat("[", kMegabyte)), HasSubstr("expected a constant"));
  EXPECT_THAT(error_in_body("foo " + repeat("[%rd1,", kMegabyte)), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_in_body("call " + repeat("(", kMegabyte)), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_in_body("foo " + repeat("(", kMegabyte)),
              HasSubstr("expression is nested too deeply"));
  EXPECT_THAT(error_in_body("foo " + repeat("-", kMegabyte) + "1;"),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(error_in_body("foo " + repeat("1?", kMegabyte)), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_in_body("foo " + repeat("!", kMegabyte)), HasSubstr("expected a predicate"));
  EXPECT_THAT(error_in_body("foo [%rd1" + repeat("+-", kMegabyte)), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_in_module(".global .b8 x" + repeat("[1]", kMegabyte)),
              HasSubstr("16 dimensions"));
  EXPECT_THAT(error_in_module(".global .b8 x[2] = " + repeat("{", kMegabyte)),
              HasSubstr("expected a constant"));
  EXPECT_THAT(error_in_module(".section .x " + repeat("{", kMegabyte)), HasSubstr("expected '}'"));
}

TEST(PtxHostile, WideIsNoProblem) {
  EXPECT_EQ(error_in_body("foo " + repeat("1+", kMegabyte / 4) + "1;"), "no error");
  EXPECT_EQ(error_in_body("foo [%rd1" + repeat("+1", kMegabyte / 4) + "];"), "no error");
  EXPECT_EQ(error_in_body("foo {_" + repeat(",_", kMegabyte / 4) + "};"), "no error");
  EXPECT_EQ(error_in_body(repeat("{}", kMegabyte / 4)), "no error");
  EXPECT_EQ(error_in_body(repeat(";", kMegabyte / 4)), "no error");
  EXPECT_THAT(error_in_body("foo" + repeat(".x", kMegabyte / 4) + ";"),
              HasSubstr("more than 32 modifiers"));
}

// Each text is about a megabyte, on which a naive parser would spend quadratic time or memory. None
// may take much longer than a kernel from nvcc.
TEST(PtxHostile, TakesTimeInProportionToTheText) {
  constexpr double kTimesLonger = 10;
  std::string names, ranges, labels, uses, functions, params, files;
  for (int i = 0; i < 30000; ++i) {
    const std::string n = std::to_string(i);
    names += ".reg .b32 x" + n + ";\nfoo x" + n + ";";
    ranges += ".reg .b32 x" + n + "y<9>;\nfoo x" + n + "y8;";
    labels += "bra L" + n + "; L" + n + ": ";
    uses += "{ .reg .b32 x; foo x; }";
    functions += ".func f" + n + "() { .reg .b32 %r<1000000>; foo %r999999; }\n";
    params += ".param .b32 p" + n + ",";
    files += ".loc 1 " + n + " 1, inlined_at 1 " + n + " 2\n";
  }
  const std::string deep = repeat("{ L: .reg .b32 x; .reg .b32 y<2>; ", 30);
  std::vector<std::pair<const char*, std::string>> texts = {
      {"names", function_text(names)},
      {"ranges", function_text(ranges)},
      {"labels", function_text(labels)},
      {"siblings", function_text(uses)},
      {"functions", module_text(functions)},
      {"parameters", module_text(".func f(" + params + ".param .b32 q) { }")},
      {"places", function_text(files)},
      {"labels from within",
       function_text("M: " + deep + repeat("bra M;", 100000) + repeat("}", 30))},
      {"registers from within", function_text(deep + repeat("foo %r1;", 100000) + repeat("}", 30))},
      {"initial values", module_text(".global .b8 x[] = {1" + repeat(",1", kMegabyte / 2) + "};")},
      {"addresses", module_text(".global .b8 x[] = {1" + repeat(",0xff(x)", kMegabyte / 8) + "};")},
      {"call sites", function_text(repeat(".loc 1 1 1, inlined_at 1 1 1\n", 30000))},
      {"comments", module_text(repeat("/**/ // x\n", kMegabyte / 10))},
      {"open comments", module_text(repeat("/*", kMegabyte / 2))},
  };
  const double ordinary = seconds(large_kernel(kMegabyte)) / kMegabyte;
  for (const auto& [what, text] : texts) {
    const double size = static_cast<double>(text.size());
    EXPECT_LT(seconds(text) / size / ordinary, kTimesLonger) << what;
  }
}

// A text cut off anywhere is refused or accepted, and the place of the error lies within it.
TEST(PtxHostile, TruncatedTexts) {
  const std::string text = module_text(R"(
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 8 .b8 t[9] = {1, 0xFF(vprintf), 2}; /* c */
.visible .entry k(.param .u64 .ptr .align 4 p) .maxntid 1, 2, 3
{ .reg .pred %p<2>; .loc 1 2 3, function_name $L+4, inlined_at 1 2 3
  L: @!%p1 ld.global.v2.f32 {%p1, _}, [p+-4]; T: .branchtargets L; brx.idx %tid.x, T;
  { .param .b64 q; call (q), vprintf, (q, 0f3F800000), P; } P: .callprototype _ (.param .b32 _); }
.file 1 "x")");
  EXPECT_EQ(error_of(text), "no error");
  for (std::size_t n = 0; n < text.size(); ++n) {
    try {
      parse(std::string_view(text).substr(0, n));
    } catch (const ParseError& e) {
      ASSERT_GE(e.line, 1u);
      ASSERT_LE(e.line, 12u);
      ASSERT_LE(e.column, 120u);
    }
  }
}

TEST(PtxHostile, DamagedTexts) {
  const std::string text = large_kernel(2000);
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = text;
    for (unsigned k = 0; k < 1 + i % 3u; ++k) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0: damaged[at] = static_cast<char>(random()); break;
        case 1: damaged.erase(at, random() % 20); break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 20));
          break;
      }
    }
    error_of(damaged);  // must return
  }
}

}  // namespace
}  // namespace assay::sim::ptx
