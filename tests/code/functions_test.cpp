#include "code/functions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::sources {
namespace {

// "name:line lines/complexity/nesting" per function, separated by blanks.
std::string read(std::string_view source) {
  std::string text;
  for (const Function& f : functions_of(source)) {
    text += fmt::format("{}{}:{} {}/{}/{}", text.empty() ? "" : " ", f.name, f.line, f.lines,
                        f.complexity, f.nesting);
  }
  return text;
}

// "complexity/nesting" of the one function with this body.
std::string body(const std::string& statements) {
  const auto found = functions_of("void f() {\n" + statements + "\n}\nvoid last() {}\n");
  // Whatever the body, its end must be found.
  if (found.size() != 2 || found[1].name != "last" || found[1].lines != 1) return "not understood";
  return fmt::format("{}/{}", found[0].complexity, found[0].nesting);
}

TEST(Functions, AreDefinitionsAndNothingElse) {
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("int f(int);\nint g(int a) { return a; }\n"), "g:2 1/1/0");
  EXPECT_EQ(read("int a[] = {1, 2};\nstruct S { int x{3}; };\nunion alignas(8) { int b; };\nenum "
                 "class E : int { A };\n"),
            "");
  EXPECT_EQ(read("namespace {\nnamespace a::b {\nvoid f()\n{\n}\n}\n}\n"), "f:3 3/1/0");
  EXPECT_EQ(read("extern \"C\" {\nint f() {\n}\n}\nextern \"C\" int g() { return 0; }"),
            "f:2 2/1/0 g:5 1/1/0");
}

TEST(Functions, HeadsMayBeLong) {
  EXPECT_EQ(read("template <class T, int N = (3 > 2)>\n"
                 "[[nodiscard]] std::vector<std::pair<T, int>>\n"
                 "name(T a = T{}, int b[N] = {}) noexcept(noexcept(T())) {\n}\n"),
            "name:3 4/1/0");
  EXPECT_EQ(read("auto f(int a) -> decltype(g(a)) { return g(a); }"), "f:1 1/1/0");
  EXPECT_EQ(read("template <class T>\n  requires requires(T t) { t.x(); }\nvoid f(T) {}\n"),
            "f:3 3/1/0");
  EXPECT_EQ(read("struct X* f() { return nullptr; }"), "f:1 1/1/0");
  EXPECT_EQ(read("template <>\nint f<int>(int a) { return a; }"), "f:2 2/1/0");
  EXPECT_EQ(read("int f() try { return 1; } catch (...) { return 2; }").substr(0, 3), "f:1");
}

TEST(Functions, AreNamedWithTheirClasses) {
  EXPECT_EQ(read("struct A {\n  struct alignas(16) B : C<int> {\n    void f() {}\n  };\n"
                 "  A() : a_(1), b_{2} {}\n  ~A() {}\n  int a_, b_;\n};\n"
                 "void A::B::g() {}\ntemplate <class T> T D<T>::h() const { return {}; }\n"),
            "A::B::f:3 1/1/0 A::A:5 1/1/0 A::~A:6 1/1/0 A::B::g:9 1/1/0 D::h:10 1/1/0");
  EXPECT_EQ(read("bool operator<(A a, A b) { return a.x < b.x; }\n"
                 "struct P {\n  int operator()(int i) const { return i; }\n"
                 "  explicit operator bool() const { return true; }\n"
                 "  float& operator[](int i) { return p[i]; }\n};\n"),
            "operator<:1 1/1/0 P::operator():3 1/1/0 P::operator bool:4 1/1/0 "
            "P::operator[]:5 1/1/0");
}

TEST(Functions, KernelsAreFunctions) {
  EXPECT_EQ(read("template <int D, class T>\n"
                 "__global__ void __launch_bounds__(kThreads<D>)\n"
                 "    attend(const T* q, float* o) {\n"
                 "  __shared__ float tile[D];\n"
                 "  for (int i = 0; i < D; ++i)\n    if (q[i] > 0 && o) tile[i] = q[i];\n}\n"
                 "int launch() {\n"
                 "  attend<64, float><<<dim3(1, 2), 256, 0, stream>>>(q, o);\n"
                 "  return cudaGetLastError() == cudaSuccess ? 0 : 1;\n}\n"),
            "attend:3 7/4/2 launch:8 4/2/0");
}

TEST(Functions, DecisionsAreCounted) {
  EXPECT_EQ(body("return;"), "1/0");
  EXPECT_EQ(body("if (a) b();"), "2/1");
  EXPECT_EQ(body("if (a) { b(); } else if (c) { d(); } else { e(); }"), "3/1");
  EXPECT_EQ(body("for (int i = 0; i < 3; ++i) { while (a) b(); }"), "3/2");
  EXPECT_EQ(body("do { a(); } while (b);"), "2/1");
  EXPECT_EQ(body("do a(); while (b);"), "2/1");
  EXPECT_EQ(body("switch (a) { case 1: b(); break; case 2: { c(); } default: d(); }"), "3/1");
  EXPECT_EQ(body("try { a(); } catch (int) { b(); } catch (...) { c(); }"), "3/1");
  EXPECT_EQ(body("x = a ? b : c && d || e;"), "4/0");
  EXPECT_EQ(body("x = a and b or c;"), "3/0");
  EXPECT_EQ(body("if constexpr (A) b();"), "2/1");
  EXPECT_EQ(body("if (a) [[likely]] { b(); } else { c(); } if (d) e();"), "3/1");
}

TEST(Functions, AReferenceIsNoDecision) {
  EXPECT_EQ(body("auto&& a = b; for (auto&& c : d) e(c); f<int&&>(static_cast<T&&>(g));"), "2/1");
  EXPECT_EQ(body("T&& a = b; auto g = [](T&& x) { return x; };"), "1/1");
  EXPECT_EQ(body("x = a && b; y = a&&b; z = (a) && !b; w = a\n    && b;"), "5/0");
}

TEST(Functions, StatementsWithoutBracketsNestLikeThoseWithThem) {
  EXPECT_EQ(body("for (;;) for (;;) if (a) b();"), "4/3");
  EXPECT_EQ(body("for (;;) if (a) b(); else c();  d();"), "3/2");
  EXPECT_EQ(body("for (;;) if (a) b(); else while (c) d();"), "4/3");
  EXPECT_EQ(body("if (a) if (b) c(); else d(); e(); if (f) g();"), "4/2");
  EXPECT_EQ(body("if (a) for (;;) b(); else while (c) d();"), "4/2");
  EXPECT_EQ(body("for (;;) { if (a) continue; b(); } if (c) d();"), "4/2");
  EXPECT_EQ(body("while (a); if (b) c();"), "3/1");
  EXPECT_EQ(body("for (;;) do { a(); } while (b); if (c) d();"), "4/2");
  EXPECT_EQ(body("for (;;) try { a(); } catch (...) { b(); } if (c) d();"), "4/2");
}

TEST(Functions, LambdasBelongToTheirFunction) {
  EXPECT_EQ(body("auto g = [&](int a) { if (a) return 1; return 2; }; if (b) c();"), "3/2");
  EXPECT_EQ(body("if (any_of(v, [](auto x) { return x && y; })) { a(); } else b();"), "3/1");
  EXPECT_EQ(body("for (auto& [k, v] : m) { a[k] = {v, 1}; delete[] v; }"), "2/1");
  EXPECT_EQ(body("std::sort(a, b, [&](int x, int y) -> bool { for (;;) { } return x < y; });"),
            "2/2");
  EXPECT_EQ(read("auto g = [](int a) { if (a) return 1; return 2; };\nint f() { return 0; }"),
            "f:2 1/1/0");
}

TEST(Functions, BracesInStringsAndCommentsAreText) {
  EXPECT_EQ(body("a(\"}{\\\"}\"); b('{'); c('\\''); // }\n/* } \" */ d(R\"x(} )\" })x\");"), "1/0");
  EXPECT_EQ(body("int n = 1'000'000; if (n) a();"), "2/1");
}

TEST(Functions, DirectivesAreNoCode) {
  EXPECT_EQ(read("#define BEGIN if (a) { \\\n  b();\n#define END }\nint f() { return 0; }\n"),
            "f:4 1/1/0");
  EXPECT_EQ(read("#if A\nint f(int a) {\n#else\nint f() {\n#endif\n  return 1;\n}\nint g() {}\n"),
            "f:4 4/1/0 g:8 1/1/0");
  EXPECT_EQ(body("#ifdef A\nif (a) {\n#elif B\nif (b) {\n#else\nif (c) {\n#endif\nd();\n}"), "4/1");
  EXPECT_EQ(body("#if 0\n}}} if (a)\n#if B\n{\n#else\n{\n#endif\n#else\nif (b) c();\n#endif\nd();"),
            "2/1");
  EXPECT_EQ(read("#endif\n#else\nint f() { return 0; }\n"), "f:3 1/1/0");
}

// Text that is not C++ takes linear time: quadratic time would mean minutes at these lengths.
TEST(Functions, HostileTextIsReadInNoTime) {
  const auto many = [](std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_EQ(functions_of(many("{", 1'000'000)).size(), 0u);
  EXPECT_EQ(functions_of(many("}", 1'000'000)).size(), 0u);
  EXPECT_EQ(functions_of("void f() {" + many("{", 1'000'000)).size(), 1u);
  EXPECT_EQ(functions_of("void f() {" + many("if (a) ", 100'000) + ";" + many("\n#x", 300'000))
                .front()
                .complexity,
            100'001);
  EXPECT_EQ(functions_of(many("\n#if 1\nvoid f() {{{\n#else\n", 20'000)).size(), 0u);
  EXPECT_EQ(functions_of(many("R\"", 500'000)).size(), 0u);
  EXPECT_EQ(functions_of(many("x<", 300'000) + "f() {}").size(), 0u);
  EXPECT_EQ(functions_of(many("struct a {", 100'000) + many("void f() {}", 100)).size(), 100u);
  EXPECT_EQ(functions_of("\"" + many("{", 1'000'000)).size(), 0u);
  EXPECT_EQ(
      functions_of("void f(){" + many("do ", 170'000) + "\n#if a\n;" + many("\n#el\n;", 87'000))
          .size(),
      1u);
  EXPECT_EQ(
      functions_of("struct " + std::string(500'000, 'x') + " {" + many("a(){} ", 80'000)).size(),
      80'000u);
}

TEST(Functions, AShiftInATemplateHeadIsNoBracket) {
  EXPECT_EQ(read("template <int N = 1 << 3> void f() { if (a) b(); }\nint g() { return 0; }\n"),
            "f:1 1/2/1 g:2 1/1/0");
  EXPECT_EQ(read("template <int N = n << 3> void f() {}\nA<B<int>> g() { return {}; }\n"),
            "f:1 1/1/0 g:2 1/1/0");
}

TEST(Functions, ZeroBytesAndOpenEndsAreRead) {
  using namespace std::string_literals;
  EXPECT_EQ(read("void f() {\0 if (a)\0 b(); }\nvoid g() {}\n"s), "f:1 1/2/1 g:2 1/1/0");
  EXPECT_EQ(read("void f() {\n  if (a) {\n    b(\"open);\n"), "f:1 3/2/1");
  EXPECT_EQ(read("void f() { /* open\n}\n"), "f:1 1/1/0");
}

}  // namespace
}  // namespace assay::sources
