#include "mutate/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace assay::mutate {
namespace {

const std::string kSource =
    "int f(int a) {\n"
    "  if (a <\n"
    "      1)\n"
    "    return 2;\n"
    "  x = a + 1;\n"
    "  x = a + 1;\n"
    "}\n";

std::vector<Mutation> all_of(const std::string& source, const std::string& scope = "a/b") {
  return mutations_of({{"submission.cpp", source}}, scope);
}

const Mutation& find(const std::vector<Mutation>& all, const std::string& after, int nth = 1) {
  const auto found = std::ranges::find_if(
      all, [&](const Mutation& m) { return m.after == after && m.nth == nth; });
  if (found == all.end()) throw std::runtime_error("no mutant '" + after + "'");
  return *found;
}

TEST(Mutations, ShowTheLinesThatTheyTouch) {
  const auto all = all_of(kSource);
  EXPECT_EQ(find(all, "x = a - 1;").before, "x = a + 1;");
  EXPECT_EQ(find(all, "x = a - 1;").line, 5u);
  EXPECT_EQ(find(all, "x = a - 1;", 2).line, 6u);
  EXPECT_EQ(find(all, "if (!(a < 1))").before, "if (a < 1)") << "two lines";
}

TEST(Mutations, ChangeOnePlace) {
  for (const Mutation& m : all_of(kSource)) {
    const std::string text = mutated(kSource, m.edit);
    EXPECT_NE(text, kSource);
    EXPECT_EQ(text.size() - m.edit.replacement.size(), kSource.size() - m.edit.length);
  }
}

TEST(Mutations, HaveNamesThatEditsElsewhereKeep) {
  const auto all = all_of(kSource), later = all_of("// more\nint y = 3;\n" + kSource);
  std::set<std::string> ids;
  for (const Mutation& m : all) {
    EXPECT_EQ(m.id.size(), 10u);
    EXPECT_TRUE(ids.insert(m.id).second) << m.after;
    EXPECT_TRUE(std::ranges::any_of(later, [&](const Mutation& other) {
      return other.id == m.id && other.before == m.before && other.after == m.after &&
             other.line == m.line + 2;
    })) << m.after;
  }
  EXPECT_NE(all_of(kSource, "a/c")[0].id, all[0].id);
}

TEST(Mutations, AreDrawnInAnOrderThatTheNumberDoesNotChange) {
  std::string source;
  for (int i = 0; i < 50; ++i) source += "x" + std::to_string(i) + " = a + b;\n";
  const auto ids = [](const std::vector<Mutation>& all) {
    std::vector<std::string> result;
    for (const Mutation& m : all) result.push_back(m.id);
    return result;
  };
  const auto all = all_of(source);
  const auto drawn = ids(in_drawing_order(all, 1, "a/b"));
  EXPECT_EQ(drawn, ids(in_drawing_order(all, 1, "a/b")));
  EXPECT_NE(drawn, ids(in_drawing_order(all, 2, "a/b")));
  EXPECT_NE(drawn, ids(in_drawing_order(all, 1, "a/c")));
  EXPECT_NE(drawn, ids(all));
  EXPECT_TRUE(std::ranges::is_permutation(drawn, ids(all)));
}

TEST(Mutations, OfSeveralFilesNameTheirs) {
  const auto all = mutations_of({{"submission.cpp", "x = 0;"}, {"b.h", "y = 0;"}}, "a/b");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].file, 1u);
  EXPECT_EQ(all[1].file_name, "b.h");
}

}  // namespace
}  // namespace assay::mutate
