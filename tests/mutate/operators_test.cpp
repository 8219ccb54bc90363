#include "mutate/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mutate/mutation.h"

namespace assay::mutate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// The sources that the operator makes of this one.
std::vector<std::string> made(Operator op, const std::string& source) {
  std::vector<std::string> all;
  for (const Edit& edit : edits_of(source)) {
    if (edit.op == op) all.push_back(mutated(source, edit));
  }
  return all;
}

TEST(Operators, ArithmeticBecomesItsOpposite) {
  EXPECT_THAT(made(Operator::arithmetic, "x = a + b * c;"),
              ElementsAre("x = a - b * c;", "x = a + b / c;"));
  EXPECT_THAT(made(Operator::arithmetic, "x += a % 2;"), ElementsAre("x -= a % 2;", "x += a * 2;"));
  EXPECT_THAT(made(Operator::arithmetic, "x = a << 1 | b;"),
              ElementsAre("x = a >> 1 | b;", "x = a << 1 & b;"));
  EXPECT_THAT(made(Operator::arithmetic, "const float* p = *q; return -x;"), IsEmpty());
}

TEST(Operators, BoundsMoveByOne) {
  EXPECT_THAT(made(Operator::bound, "i < n; j >= 0;"),
              ElementsAre("i <= n; j >= 0;", "i < n; j > 0;"));
  EXPECT_THAT(made(Operator::bound, "std::vector<int> v; p->x;"), IsEmpty());
}

TEST(Operators, RelationsTurn) {
  EXPECT_THAT(made(Operator::relational, "a < b; c == d;"),
              ElementsAre("a > b; c == d;", "a < b; c != d;"));
}

TEST(Operators, LogicChanges) {
  EXPECT_THAT(made(Operator::logical, "a && b || !c;"),
              ElementsAre("a || b || !c;", "a && b && !c;"));
  EXPECT_THAT(made(Operator::logical, "auto&& x = y;"), IsEmpty());
}

TEST(Operators, ConstantsMoveByOne) {
  EXPECT_THAT(made(Operator::constant, "f(0);"), ElementsAre("f(1);"));
  EXPECT_THAT(made(Operator::constant, "f(1);"), ElementsAre("f(2);", "f(0);"));
  EXPECT_THAT(made(Operator::constant, "f(0x10u);"), ElementsAre("f(0x11u);", "f(0xfu);"));
  EXPECT_THAT(made(Operator::constant, "f(0xe5);"), ElementsAre("f(0xe6);", "f(0xe4);"));
  EXPECT_THAT(made(Operator::constant, "f(1.5f);"), ElementsAre("f(2.5f);", "f(0.5f);"));
  EXPECT_THAT(made(Operator::constant, "f(0.0);"), ElementsAre("f(1.0);"));
  EXPECT_THAT(made(Operator::constant, "f(true, \"1\", '1');"),
              ElementsAre("f(false, \"1\", '1');"));
  EXPECT_THAT(made(Operator::constant, "x1 = y2;"), IsEmpty());
}

TEST(Operators, TypesNarrow) {
  EXPECT_THAT(
      made(Operator::type, "std::int64_t i; double d; float f;"),
      ElementsAre("std::int32_t i; double d; float f;", "std::int64_t i; float d; float f;"));
}

TEST(Operators, StatementsGo) {
  EXPECT_THAT(made(Operator::statement, "void f() { x = 1; g(x); ++x; }"),
              ElementsAre("void f() { ; g(x); ++x; }", "void f() { x = 1; ; ++x; }",
                          "void f() { x = 1; g(x); ; }"));
  EXPECT_THAT(made(Operator::statement, "void f() { if (a) return 1; return 2; }"),
              ElementsAre("void f() { if (a) ; return 2; }"));
  EXPECT_THAT(made(Operator::statement, "void f() { for (;;) break; }"),
              ElementsAre("void f() { for (;;) ; }"));
  EXPECT_THAT(made(Operator::statement, "void f() { a[i] = {1, 2}; }"),
              ElementsAre("void f() { ; }"));
  EXPECT_THAT(made(Operator::statement, "void f() { g([&] { x = 1; }); }"),
              UnorderedElementsAre("void f() { ; }", "void f() { g([&] { ; }); }"));
}

TEST(Operators, DeclarationsAndHeadsStay) {
  for (const char* const source :
       {"int x = 1;", "void f() { int x = 1; }", "void f() { std::vector<float> v(n); }",
        "void f() { const auto x = g(); }", "struct S { float a, b; int f(); };",
        "void f() { for (i = 0; i < n; ++i) { } }", "enum class E { a, b };",
        "void f() { Row* row = g(); }", "void f() { x =\n#if A\n 1;\n#endif\n }"}) {
    EXPECT_THAT(made(Operator::statement, source), IsEmpty()) << source;
  }
}

TEST(Operators, NeighbouringArgumentsSwap) {
  EXPECT_THAT(made(Operator::arguments, "f(a, g(b, c), d);"),
              UnorderedElementsAre("f(g(b, c), a, d);", "f(a, d, g(b, c));", "f(a, g(c, b), d);"));
  EXPECT_THAT(made(Operator::arguments, "Reader dy(*p, data);"),
              ElementsAre("Reader dy(data, *p);"));
}

TEST(Operators, ParametersAndCommutativeCallsStay) {
  for (const char* const source :
       {"int f(int a, int b) {", "void f(const float* a, const float* b);", "std::max(a, b);",
        "std::min<std::int64_t>(a, b);", "if (a, b) {", "f(a, a);", "f(a);", "f();"}) {
    EXPECT_THAT(made(Operator::arguments, source), IsEmpty()) << source;
  }
}

TEST(Operators, ConditionsAreNegated) {
  EXPECT_THAT(made(Operator::condition, "if (a && b) { } while (c) { }"),
              ElementsAre("if (!(a && b)) { } while (c) { }", "if (a && b) { } while (!(c)) { }"));
  EXPECT_THAT(made(Operator::condition, "if (int s = f(); s != 0) return;"),
              ElementsAre("if (int s = f(); !(s != 0)) return;"));
}

TEST(Operators, SurviveWhatIsNoCode) {
  for (const char* const source :
       {"", "(", ")", "if (", "f(a,", "x = ;", "1.", "{ x = 1", "if (;)", "f(,)"})
    EXPECT_NO_THROW(edits_of(source)) << source;
}

}  // namespace
}  // namespace assay::mutate
