#include "intake/markdown.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>

#include "assay/error.h"
#include "support/error_of.h"

namespace assay::intake {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using Files = std::map<std::string, std::string>;

const ExtractOptions kOptions{{"forward", "backward"}};

constexpr const char* kForward = "int forward() { return 0; }\n";
constexpr const char* kBackward = "int backward() { return 0; }\n";
const std::string kBoth = std::string("#include \"abi.h\"\n") + kForward + kBackward;

Files files_of(const Extracted& e) {
  Files files;
  for (const SourceFile& f : e.files) files[f.name] = f.contents;
  return files;
}

Extracted from(const std::string& text, std::optional<Language> language = {}) {
  return extract(text, language, kOptions);
}

std::string fenced(const std::string& info, const std::string& text, const char* fence = "```") {
  return fence + info + "\n" + text + fence + "\n";
}

// --- one answer, in every shape ------------------------------------------------

struct Shape {
  const char* name;
  std::string text;
  std::string main = "submission.cpp";
  std::string code = kBoth;
};

void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

class OneAnswer : public ::testing::TestWithParam<Shape> {};

TEST_P(OneAnswer, IsFound) {
  const Extracted e = from(GetParam().text);
  ASSERT_FALSE(e.files.empty());
  EXPECT_EQ(e.files.front().name, GetParam().main);
  EXPECT_EQ(e.files.front().contents, GetParam().code);
  EXPECT_EQ(e.files.size(), 1u);
  EXPECT_EQ(e.language, GetParam().main == "submission.cu" ? Language::cuda : Language::cpp);
  EXPECT_FALSE(e.how.empty());
}

std::string with_line_ends(std::string text, const std::string& end) {
  std::string out;
  for (const char c : text) out += c == '\n' ? end : std::string(1, c);
  return out;
}

std::string with_prefix(const std::string& text, const std::string& prefix) {
  std::string out = prefix;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += prefix;
  }
  return out;
}

const std::string kCuda = "__global__ void k() {}\n" + kBoth;
const std::string kSnippet = "for (int i = 0; i < n; ++i) s += x[i];\n";

const Shape kShapes[] = {
    {"plain", "Here you are.\n\n" + fenced("cpp", kBoth) + "\nIt is fast.\n"},
    {"no_info", fenced("", kBoth)},
    {"text_info", fenced("text", kBoth)},
    {"cplusplus_info", fenced("c++", kBoth)},
    {"upper_case_info", fenced("CPP", kBoth)},
    {"attributes", fenced("{.cpp .numberLines}", kBoth)},
    {"blank_before_info", fenced(" cpp", kBoth)},
    {"tildes", fenced("cpp", kBoth, "~~~")},
    {"long_fence", fenced("cpp", kBoth, "`````")},
    {"fence_within_a_longer_one", "````cpp\n/*\n```\nexample\n```\n*/\n" + kBoth + "````\n",
     "submission.cpp", "/*\n```\nexample\n```\n*/\n" + kBoth},
    {"tildes_around_backticks", "~~~cpp\n// ```cpp\n" + kBoth + "~~~\n", "submission.cpp",
     "// ```cpp\n" + kBoth},
    {"closing_fence_longer", "```cpp\n" + kBoth + "`````\n"},
    {"closing_fence_with_blanks", "```cpp\n" + kBoth + "```   \n"},
    {"indented_in_a_list", "1. The code:\n\n" + with_prefix(fenced("cpp", kBoth), "   ")},
    {"behind_a_list_marker", "- ```cpp\n" + with_prefix(kBoth, "  ") + "  ```\n"},
    {"behind_a_number", "1. ```cpp\n" + with_prefix(kBoth, "   ") + "   ```\n"},
    {"deeply_indented", with_prefix(fenced("cpp", kBoth), "        ")},
    {"indented_by_tabs", with_prefix(fenced("cpp", kBoth), "\t")},
    {"only_the_fence_is_indented", "   ```cpp\n" + kBoth + "   ```\n"},
    {"in_a_quote", with_prefix(fenced("cpp", kBoth), "> ")},
    {"quote_without_blanks", with_prefix(fenced("cpp", kBoth), ">")},
    {"crlf", with_line_ends("Text\n" + fenced("cpp", kBoth) + "end\n", "\r\n")},
    {"byte_order_mark", "\xef\xbb\xbf" + fenced("cpp", kBoth)},
    {"no_newline_at_the_end", "```cpp\n" + kBoth + "```"},
    {"wrapped_in_markdown", "```markdown\n# Answer\n\n" + fenced("cpp", kBoth) + "\nDone.\n```\n"},
    {"wrapped_in_longer_markdown", "````md\n" + fenced("cpp", kBoth) + "Done.\n````\nBye.\n"},
    {"thoughts_first",
     "<think>\nMaybe:\n" +
         fenced("cpp", "int forward() { return 1; }\nint backward() { return 1; }\n") +
         "</think>\n\n" + fenced("cpp", kBoth)},
    {"thoughts_with_an_open_fence",
     "<think>\n```cpp\nint forward() {\n</think>\n" + fenced("cpp", kBoth)},
    {"thinking_tag", "<thinking>a ```b``` c</thinking>\n" + fenced("cpp", kBoth)},
    {"thoughts_and_answer_on_a_line", "<think>hm</think>```cpp\n" + kBoth + "```\n"},
    {"thoughts_that_began_in_the_prompt",
     "Let me see\n" + fenced("cpp", kBoth + "// draft\n") + "</think>\n" + fenced("cpp", kBoth)},
    {"an_open_fence_before_the_end_of_thoughts",
     "```cpp\nint forward() {\n</think>\n" + fenced("cpp", kBoth)},
    {"snippets_in_prose", "First\n" + fenced("cpp", kSnippet) + "then\n" +
                              fenced("cpp", "int n = 3;\n") + "and in full:\n" +
                              fenced("cpp", kBoth) + fenced("sh", "g++ -c x.cpp\n")},
    {"declarations_are_no_rivals",
     fenced("cpp", "int forward();\nint backward();\n") + fenced("cpp", kBoth)},
    {"a_call_is_no_rival",
     fenced("cpp", "int main() { if (forward()) { return 1; } }\n") + fenced("cpp", kBoth)},
    {"a_part_is_no_rival_of_the_whole", fenced("cpp", kForward) + fenced("cpp", kBoth)},
    {"a_diff_is_no_rival", fenced("diff", "@@ -1 +1 @@\n+" + kBoth) + fenced("cpp", kBoth)},
    {"a_diff_in_disguise",
     fenced("cpp", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + kBoth) + fenced("cpp", kBoth)},
    {"a_diff_with_a_name",
     fenced("diff submission.cpp", "+int forward() {}\n") + fenced("cpp", kBoth)},
    {"a_command_with_a_name", fenced("bash cat > submission.cpp", kBoth) + fenced("cpp", kBoth)},
    {"python_is_no_rival", fenced("python", "def forward(): pass\n") + fenced("cpp", kBoth)},
    {"the_same_twice", fenced("cpp", kBoth) + "Again:\n" + fenced("cpp", kBoth)},
    {"once_named_once_not", fenced("cpp", kBoth) + "submission.cpp:\n" + fenced("cpp", kBoth)},
    {"the_only_code_defines_nothing", "```cpp\n" + kSnippet + "```\n", "submission.cpp", kSnippet},
    {"cuda_by_its_fence", fenced("cuda", kBoth), "submission.cu"},
    {"cuda_by_its_contents", fenced("cpp", kCuda), "submission.cu", kCuda},
    {"cuda_by_its_name", "submission.cu:\n" + fenced("", kBoth), "submission.cu"},
    {"another_name_is_the_main_file", "kernel.cu\n" + fenced("cpp", kBoth), "submission.cu"},
    {"a_name_no_submission_may_have", "kernel.cxx:\n" + fenced("cpp", kBoth)},
    {"a_hostile_name", fenced("cpp title=\"../../../etc/.hidden.cpp\"", kBoth)},
    {"a_path_as_a_name", fenced("cpp submissions/m/c/submission.cpp", kBoth)},
    {"no_fence_at_all", kBoth},
    {"no_fence_after_thoughts", "<think>hm</think>\n" + kBoth},
    {"the_interface_given_back",
     "abi.h:\n" + fenced("c", "int forward() {}\nint backward() {}\n") + fenced("cpp", kBoth)},
    {"a_sentence_before_it_names_the_interface",
     "Here is the implementation of the interface in `abi.h`:\n" + fenced("cpp", kBoth)},
    {"a_sentence_before_it_names_a_script", "submission.cpp is wrong, says bench.py, so:\n\n" +
                                                fenced("cpp", kSnippet) +
                                                "This passes bench.py:\n" + fenced("cpp", kBoth)},
    {"a_sentence_before_it_names_a_header",
     "It is called like this:\n" + fenced("cpp", kSnippet) +
         "The implementation, with the constants of `config.h`:\n" + fenced("cpp", kBoth)},
    {"empty_blocks_are_none", "```\n```\n" + fenced("cpp", kBoth) + "```cpp\n\n```\n"},
    {"inline_code_is_no_fence", "```cpp forward()``` is what\n" + fenced("cpp", kBoth)},
};

INSTANTIATE_TEST_SUITE_P(Shapes, OneAnswer, ::testing::ValuesIn(kShapes),
                         [](const auto& shape) { return std::string(shape.param.name); });

// --- names ---------------------------------------------------------------------

class NamedBlock : public ::testing::TestWithParam<const char*> {};

TEST_P(NamedBlock, IsThatFile) {
  std::string text = GetParam();
  text.replace(text.find("CODE"), 4, kBoth);
  text += "and\n" + fenced("cpp", "int backward() { return 2; }\n");  // no rival of a named block
  const Extracted e = from(text);
  EXPECT_EQ(files_of(e), (Files{{"submission.cpp", kBoth}}));
}

INSTANTIATE_TEST_SUITE_P(Names, NamedBlock,
                         ::testing::Values("```cpp submission.cpp\nCODE```\n",
                                           "```cpp title=\"submission.cpp\"\nCODE```\n",
                                           "```cpp filename=submission.cpp\nCODE```\n",
                                           "```cpp:submission.cpp\nCODE```\n",
                                           "```submission.cpp\nCODE```\n",
                                           "```{.cpp filename=\"submission.cpp\"}\nCODE```\n",
                                           "**submission.cpp**\n```cpp\nCODE```\n",
                                           "### submission.cpp\n\n```cpp\nCODE```\n",
                                           "`submission.cpp`:\n```\nCODE```\n",
                                           "filename: submission.cpp\n```cpp\nCODE```\n",
                                           "1. **`submission.cpp`**\n\n   ```cpp\nCODE   ```\n"));

TEST(Markdown, NamesTellFilesApart) {
  const Extracted e =
      from("### helper.h\n" + fenced("cpp", "inline int h() { return 1; }\n") +
           "### submission.cpp\n" + fenced("cpp", kBoth) + "### test.cpp\n" +
           fenced("cpp", "int assay_self_test() { return forward(); }\n") + "### build.sh\n" +
           fenced("sh", "g++\n") + "### notes.md\n" + fenced("", "forward() {\n"));
  EXPECT_EQ(files_of(e), (Files{{"submission.cpp", kBoth},
                                {"helper.h", "inline int h() { return 1; }\n"},
                                {"test.cpp", "int assay_self_test() { return forward(); }\n"}}));
  EXPECT_EQ(e.files.front().name, "submission.cpp");
  EXPECT_THAT(e.how,
              HasSubstr("submission.cpp: the fenced block at line 6, named in the line above"));
}

TEST(Markdown, TheFirstLineOfABlockNamesIt) {
  const Extracted e =
      from(fenced("cpp", "// helper.h\nint h();\n") + fenced("cpp", "// submission.cpp\n" + kBoth));
  EXPECT_EQ(files_of(e), (Files{{"submission.cpp", "// submission.cpp\n" + kBoth},
                                {"helper.h", "// helper.h\nint h();\n"}}));
}

TEST(Markdown, TestsAreKnownByTheirFunction) {
  const std::string tests = "extern \"C\" int assay_self_test(assay_ctx*) { return 0; }\n";
  const Extracted e = from(fenced("cpp", kBoth) + "And tests:\n" + fenced("cpp", tests));
  EXPECT_EQ(files_of(e), (Files{{"submission.cpp", kBoth}, {"test.cpp", tests}}));
}

TEST(Markdown, TestsWithoutANameAreInTheLanguageOfTheAnswer) {
  const std::string tests = "extern \"C\" int assay_self_test(assay_ctx*) { return 0; }\n";
  const std::string text = fenced("cuda", kBoth) + "And tests:\n" + fenced("cpp", tests);
  EXPECT_EQ(files_of(from(text)), (Files{{"submission.cu", kBoth}, {"test.cu", tests}}));
  const std::string named = fenced("cuda", kBoth) + "test.cpp:\n" + fenced("cpp", tests);
  EXPECT_EQ(files_of(from(named)), (Files{{"submission.cu", kBoth}, {"test.cpp", tests}}));
}

TEST(Markdown, AHeaderMayHoldWhatTheMainFileIncludes) {
  const Extracted e = from("kernel.h:\n" + fenced("cpp", kBoth) + "submission.cpp:\n" +
                           fenced("cpp", "#include \"kernel.h\"\n"));
  EXPECT_EQ(files_of(e),
            (Files{{"submission.cpp", "#include \"kernel.h\"\n"}, {"kernel.h", kBoth}}));
}

TEST(Markdown, AHeaderMayHoldWhatAnUnnamedBlockIncludes) {
  const Extracted e = from("kernel.h:\n" + fenced("cpp", kBoth) + "and\n" +
                           fenced("cpp", "#include \"kernel.h\"\n"));
  EXPECT_EQ(files_of(e),
            (Files{{"submission.cpp", "#include \"kernel.h\"\n"}, {"kernel.h", kBoth}}));
}

TEST(Markdown, OfSeveralWithOneNameTheWholeOneIsTaken) {
  const Extracted e = from("submission.cpp:\n" + fenced("cpp", "// change this\nint x;\n") +
                           "submission.cpp:\n" + fenced("cpp", kBoth));
  EXPECT_EQ(files_of(e), (Files{{"submission.cpp", kBoth}}));
}

TEST(Markdown, AnAnswerInBothLanguages) {
  const std::string text =
      "submission.cpp\n" + fenced("cpp", kBoth) + "submission.cu\n" + fenced("cuda", kCuda);
  EXPECT_EQ(files_of(from(text)), (Files{{"submission.cpp", kBoth}, {"submission.cu", kCuda}}));
  EXPECT_EQ(files_of(from(text, Language::cpp)), (Files{{"submission.cpp", kBoth}}));
  EXPECT_EQ(files_of(from(text, Language::cuda)), (Files{{"submission.cu", kCuda}}));
}

TEST(Markdown, TheLanguageThatIsAskedForDecidesBetweenBlocks) {
  const std::string text = fenced("cpp", kBoth) + fenced("cuda", kCuda);
  EXPECT_EQ(files_of(from(text, Language::cpp)), (Files{{"submission.cpp", kBoth}}));
  EXPECT_EQ(files_of(from(text, Language::cuda)), (Files{{"submission.cu", kCuda}}));
  EXPECT_THROW(from(text), Ambiguous);
}

TEST(Markdown, WhatIsCalledCppIsCudaWhereThatIsAskedForAndAllThereIs) {
  const Extracted e = from("submission.cpp:\n" + fenced("cpp", kCuda), Language::cuda);
  EXPECT_EQ(files_of(e), (Files{{"submission.cu", kCuda}}));
}

TEST(Markdown, NamesAreThoseThatASubmissionMayHave) {
  const std::string long_name = std::string(200, 'x') + ".h";
  for (const std::string name :
       {"../../x.h", "/etc/x.h", "-o.h", ".x.h", "a b.h", "@x.h", "x\n.h", long_name.c_str()}) {
    const Extracted e =
        from(fenced("cpp", kBoth) + fenced("cpp title=\"" + name + "\"", "int x;\n"));
    for (const SourceFile& f : e.files) {
      EXPECT_EQ(objection_to_name(f.name), "") << name;
      EXPECT_TRUE(is_source_name(f.name)) << name;
    }
  }
}

// --- what does not decide -------------------------------------------------------

TEST(Markdown, SeveralWholeAnswersAreShown) {
  const std::string text =
      "First\n" + fenced("cpp", kBoth) + "Better\n" + fenced("cpp", "// faster\n" + kBoth);
  const std::string error = error_of([&] { from(text); });
  EXPECT_THAT(error, HasSubstr("choose one with --block N"));
  EXPECT_THAT(error, HasSubstr("    1     2  cpp"));
  EXPECT_THAT(error, HasSubstr("    2     8  cpp"));
  EXPECT_THAT(error, HasSubstr("// faster"));
  EXPECT_THAT(error, HasSubstr("2 of 2"));
  EXPECT_EQ(extract(text, {}, {{"forward"}, {2}}).files.front().contents, "// faster\n" + kBoth);
  EXPECT_THAT(extract(text, {}, {{"forward"}, {2}}).how, HasSubstr("as chosen"));
}

TEST(Markdown, PartsOfTheMainFileCanBeJoined) {
  const std::string text = fenced("cpp", kForward) + fenced("cpp", kBackward);
  EXPECT_THROW(from(text), Ambiguous);
  const Extracted e = extract(text, {}, {{"forward", "backward"}, {1, 2}});
  EXPECT_EQ(files_of(e), (Files{{"submission.cpp", std::string(kForward) + kBackward}}));
}

TEST(Markdown, ChosenBlocksKeepTheirNames) {
  const std::string text = "a.h:\n" + fenced("cpp", "int a;\n") + "a.h:\n" +
                           fenced("cpp", "int b;\n") + fenced("cuda", kBoth);
  EXPECT_THROW(from(text), Ambiguous);
  EXPECT_EQ(files_of(extract(text, {}, {{}, {2, 3}})),
            (Files{{"a.h", "int b;\n"}, {"submission.cu", kBoth}}));
  EXPECT_EQ(files_of(extract(text, Language::cpp, {{}, {1}})),
            (Files{{"submission.cpp", "int a;\n"}}));
}

TEST(Markdown, ABlockThatIsNotThereIsAnError) {
  for (const std::size_t number : {std::size_t{0}, std::size_t{2}})
    EXPECT_THAT(error_of([&] {
                  extract(fenced("cpp", kBoth), {}, {{}, {number}});
                }),
                HasSubstr("the answer has 1"));
}

TEST(Markdown, ANamedSnippetBesideAWholeAnswerWithoutANameDecidesNothing) {
  EXPECT_THROW(from("submission.cpp:\n" + fenced("cpp", kSnippet) + "All of it\n\n\n" +
                    fenced("cpp", kBoth)),
               Ambiguous);
}

TEST(Markdown, SeveralSnippetsDecideNothing) {
  EXPECT_THROW(from(fenced("cpp", kSnippet) + fenced("cpp", "int n;\n")), Ambiguous);
}

TEST(Markdown, CodeBetweenProseWithoutAFenceDecidesNothing) {
  EXPECT_THAT(error_of([] { from("Here it is:\n" + kBoth); }), HasSubstr("in no fenced block"));
}

TEST(Markdown, WhatIsShownMovesNothingOnATerminal) {
  const std::string evil = "int forward() {} // \x1b[2J\n";
  const std::string error =
      error_of([&] { from(fenced("cpp \x1b]0;x", evil) + fenced("cpp", kForward)); });
  EXPECT_THAT(error, Not(HasSubstr("\x1b")));
}

// --- no answer --------------------------------------------------------------------

TEST(Markdown, NoCodeIsNoAnswer) {
  const std::map<std::string, std::string> cases{
      {"", "it is empty"},
      {" \n\r\n", "it is empty"},
      {"I cannot help with that.", "no fenced block and no code"},
      {"<think>\n" + fenced("cpp", kBoth), "it ends within its thoughts"},
      {fenced("sh", "rm -rf /\n") + fenced("diff", "@@ -1 +1 @@\n+int forward() {}\n"),
       "none of its 2 fenced blocks holds C++ or CUDA"},
      {fenced("cpp", "int assay_self_test() { return 0; }\n"), "it holds tests"},
  };
  for (const auto& [reply, why] : cases) {
    const std::string& text = reply;
    EXPECT_THROW(from(text), NoAnswer) << text;
    EXPECT_THAT(error_of([&] { from(text); }), HasSubstr(why));
  }
}

// --- cut off, and limits ------------------------------------------------------------

TEST(Markdown, AnAnswerThatWasCutOffIsTakenAndSaid) {
  const Extracted e = from("Here:\n```cpp\n" + kBoth + "int half(");
  EXPECT_TRUE(e.cut_off);
  EXPECT_THAT(e.how, HasSubstr("cut off"));
  EXPECT_EQ(e.files.front().contents, kBoth + "int half(\n");
  EXPECT_FALSE(from(fenced("cpp", kBoth) + "```sh\nmake").cut_off);
}

TEST(Markdown, LimitsAreErrors) {
  EXPECT_THAT(error_of([] { from(std::string((16u << 20) + 1, 'x')); }), HasSubstr("16 MiB"));
  EXPECT_THAT(error_of([] { from(fenced("cpp", kBoth + std::string(4u << 20, ' ') + "\n")); }),
              HasSubstr("4 MiB"));
  std::string files = fenced("cpp submission.cpp", kBoth);
  for (int i = 0; i < 64; ++i) files += fenced(fmt::format("cpp part_{}.h", i), kSnippet);
  EXPECT_THAT(error_of([&] { from(files); }), HasSubstr("more than 64 files"));
  std::string many;
  for (int i = 0; i < 1001; ++i) many += fenced("cpp", kSnippet);
  EXPECT_THAT(error_of([&] { from(many); }), HasSubstr("more than 1000"));
}

// CPU seconds to take or refuse the text, the least of several attempts: others use the machine
// too.
double seconds(const std::string& text) {
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::clock_t begin = std::clock();
    try {
      from(text);
    } catch (const Error&) {
    }
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

// Eight times the text may take eight times as long, but not 64 times. What takes a moment is not
// measured well.
TEST(Markdown, AnyBytesAreReadInTime) {
  constexpr std::size_t kSmall = 1u << 17, kLarge = 1u << 20;
  constexpr double kMoment = 0.02, kMostRatio = 32;
  const std::string pieces[] = {
      "```",      "```cpp\n", "> ", "<think>",  "</think>\n", "</",
      "1. ",      "f.h ",     "\t", "forward(", "R\"",        "```md\n",
      "\xff\x01", "'",        "\n", "{",        "a.h|",       "<think></think>"};
  for (const std::string& piece : pieces) {
    for (const char* before : {"```cpp\nint forward() {}\n", "```", ""}) {
      std::string text = before;
      while (text.size() < kSmall) text += piece;
      const double small = std::max(seconds(text), kMoment);
      while (text.size() < kLarge) text += piece;
      EXPECT_LT(seconds(text) / small, kMostRatio) << before << piece;
    }
  }
}

}  // namespace
}  // namespace assay::intake
