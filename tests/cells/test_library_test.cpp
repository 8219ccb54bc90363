#include "cells/test_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <regex>

#include "assay/error.h"
#include "util/files.h"

namespace assay::cells {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kFunctions{"f_one", "f_two"};

// As g++ writes it.
const std::string kAssembly =
    "\t.file\t\"implementation.cpp\"\n"
    "\t.text\n"
    "\t.globl\tnaive_f_one\n"
    "\t.type\tnaive_f_one, @function\n"
    "naive_f_one:\n"
    "\tmovl\t$1, %eax\n"
    "\taddl\t$1, %eax\n"
    "\tret\n"
    "\t.globl\tf_one\n"
    "\t.type\tf_one, @function\n"
    "f_one:\n"
    "\tcall\tnaive_f_one@PLT\n"
    "\tcall\tf_one@PLT\n"
    "\tcall\tmemcpy@PLT\n"
    "\trex64\n"
    "\tcall\t_ZSt4copy@PLT\n"
    "\tret\n"
    "\t.section\t.text._ZSt4copy,\"axG\",@progbits,_ZSt4copy,comdat\n"
    "\t.weak\t_ZSt4copy\n"
    "_ZSt4copy:\n"
    "\tret\n"
    "\t.section\t.rodata\n"
    "\t.string\t\"f_one\"\n"
    "\t.weak\t__cxa_atexit\n"
    "\t.type\tunique, @gnu_unique_object\n"
    "unique:\n"
    "\t.long\t1\n";

std::string without_idle(std::string text) {
  static const std::regex idle(
      "\t(nop[lw]?|xchgw|leaq|movq)(\t(%ax, %ax|8?\\(%rax\\)|0\\(%rax,%rax,1\\)|256\\(%rax\\)|"
      "0\\(%rsi\\), %rsi|%rdi, %rdi))?\n");
  return std::regex_replace(text, idle, "");
}

TEST(Disguise, LeavesOnlySecretNamesGlobal) {
  const std::string out = disguised(kAssembly, kFunctions, {"secret", 3, false});
  EXPECT_THAT(out, Not(HasSubstr(".globl\tnaive_f_one")));
  EXPECT_THAT(out, Not(HasSubstr(".weak\t_ZSt4copy")));
  EXPECT_THAT(out, Not(HasSubstr(".globl\tf_one")));
  EXPECT_THAT(out, HasSubstr("\t.globl\tsecret_f_one\n\t.hidden\tsecret_f_one\n"));
  EXPECT_THAT(out, HasSubstr("secret_f_one:\n"));
  EXPECT_THAT(out, HasSubstr("\tcall\tsecret_f_one@PLT\n")) << "it calls itself";
  EXPECT_THAT(out, HasSubstr("\tcall\tnaive_f_one@PLT\n"));
  EXPECT_THAT(out, HasSubstr("\t.string\t\"f_one\"\n")) << "text is no name";
  EXPECT_THAT(out, HasSubstr("\t.weak\t__cxa_atexit\n")) << "somebody else's";
  EXPECT_THAT(out, Not(HasSubstr("gnu_unique")));
}

TEST(Disguise, KeepsInlineFunctionsApartFromOtherImplementations) {
  const std::string out = disguised(kAssembly, kFunctions, {"secret", 3, false});
  EXPECT_THAT(out, HasSubstr("\t.section\t.text._ZSt4copy,\"ax\",@progbits\n"));
}

TEST(Disguise, ChangesCodeButNotWhatItDoes) {
  std::string body;
  for (int i = 0; i < 200; ++i) body += "\taddl\t$1, %eax\n";
  const std::string text = "\t.text\nf_one:\n" + body + "\t.data\nx:\n\t.long\t1\n";
  const std::string a = disguised(text, kFunctions, {"s", 1, false}),
                    b = disguised(text, kFunctions, {"s", 2, false});
  EXPECT_NE(a, b);
  EXPECT_GT(a.size(), text.size() + 100);
  EXPECT_EQ(without_idle(a), without_idle(b));
  EXPECT_EQ(a, disguised(text, kFunctions, {"s", 1, false}));
}

TEST(Disguise, PutsNothingBehindAPrefixOrIntoInlineAssembly) {
  std::string text = "\t.text\nf_one:\n";
  for (int i = 0; i < 200; ++i) text += "\trex64\n\tcall\tx@PLT\n";
  text += "#APP\n\tlock\n\tincl\t(%rax)\n\tincl\t(%rax)\n#NO_APP\n";
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string out = disguised(text, kFunctions, {"s", seed, false});
    EXPECT_FALSE(std::regex_search(out, std::regex("rex64\n\t[^c]"))) << seed;
    EXPECT_THAT(out, HasSubstr("\tlock\n\tincl\t(%rax)\n\tincl\t(%rax)\n"));
  }
}

TEST(Disguise, AStubLooksLikeAWrapper) {
  const std::string out = disguised(kAssembly, kFunctions, {"secret", 3, true});
  EXPECT_THAT(out, HasSubstr("secret_body_f_one:\n"));
  EXPECT_THAT(out, HasSubstr("\tjmp\tsecret_body_f_one\n"));
  EXPECT_THAT(out, HasSubstr("\t.globl\tsecret_f_one\n"));
  EXPECT_THAT(out, Not(HasSubstr(".globl\tsecret_body")));
}

TEST(LocalNames, AreAllButTheSharedOnes) {
  const std::string out = with_local_names(kAssembly, {"f_one"});
  EXPECT_THAT(out, Not(HasSubstr(".globl\tnaive_f_one")));
  EXPECT_THAT(out, Not(HasSubstr(".weak\t_ZSt4copy")));
  EXPECT_THAT(out, HasSubstr("\t.globl\tf_one\n"));
  EXPECT_THAT(out, HasSubstr("\t.weak\t__cxa_atexit\n")) << "somebody else's";
  EXPECT_THAT(out, HasSubstr("\t.section\t.text._ZSt4copy,\"ax\",@progbits\n"));
  EXPECT_THAT(out, Not(HasSubstr("gnu_unique")));
  EXPECT_THAT(out, HasSubstr("naive_f_one:\n\tmovl\t$1, %eax\n")) << "the code stays";
}

TEST(ForeignNames, AreUsedAndNotDefined) {
  EXPECT_THAT(foreign_names("f:\n\tcall\tcudaMalloc@PLT\n\tcall\tmemcpy@PLT\n\tcall\tf@PLT\n"
                            "\tmovq\t__cudaLaunchKernel@GOTPCREL(%rip), %rax\n"
                            "\tleaq\tx@tlsgd(%rip), %rdi\n\t.type\tf, @function\n"
                            "\tcall\tmemcpy@PLT\n\t.string\t\"expf@PLT\"\n"),
              ElementsAre("__cudaLaunchKernel", "cudaMalloc", "memcpy", "x"));
}

TEST(TestLibrary, KnowsWhatAnImplementationLacks) {
  EXPECT_THAT(functions_in(kAssembly, kFunctions), ElementsAre(true, false));
  EXPECT_THAT(switchboard(kFunctions, {{"s", {true, false}}}, std::string(64, 'a')),
              HasSubstr("\t.long\ts_f_one - .\n\t.long\tabsent - .\n"));
}

TEST(TestLibrary, HasOnlyTheFunctionsOfOneSlotInForce) {
  const std::string mark = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  std::string library = "ELF.";
  for (std::size_t i = 0; i < mark.size(); i += 2)
    library += static_cast<char>(std::stoi(mark.substr(i, 2), nullptr, 16));
  const std::size_t active = library.size();
  library += std::string(8, '\0');
  for (const std::int32_t target : {100, 200, 300, 400}) {
    const std::int32_t distance = target - static_cast<std::int32_t>(library.size());
    library.append(reinterpret_cast<const char*>(&distance), 4);
  }
  library += "rest";
  const std::string out = switched(library, mark, 2, 2, 1);
  ASSERT_EQ(out.size(), library.size());
  for (std::size_t i = 0; i < 2; ++i) {
    std::int32_t distance = 0;
    std::memcpy(&distance, out.data() + active + 4 * i, 4);
    EXPECT_EQ(distance + static_cast<std::int32_t>(active + 4 * i), i == 0 ? 300 : 400);
  }
  EXPECT_EQ(out.substr(active + 8, 16), std::string(16, '\0')) << "the others leave no trace";
  EXPECT_EQ(out.substr(4, 32), std::string(32, '\0'));
  EXPECT_TRUE(out.ends_with("rest"));
  EXPECT_THROW(switched(library + library, mark, 2, 2, 1), Error);
  EXPECT_THROW(switched("nothing", mark, 2, 2, 1), Error);
}

TEST(TestSecret, LastsInItsFolder) {
  const fs::path folder =
      fs::temp_directory_path() / ("assay-test-secret-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string secret = test_secret(folder);
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(test_secret(folder), secret);
  write_file_atomically(folder / "own-tests.secret", std::string(64, 'x'));
  EXPECT_EQ(test_secret(folder), std::string(64, 'x'));
  EXPECT_EQ(test_secret({}), test_secret({}));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace assay::cells
