#include "attack/attack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "assay/error.h"
#include "attack/leftovers.h"
#include "attack/run_attack.h"
#include "spec/spec.h"
#include "support/error_of.h"
#include "util/files.h"

namespace assay::attack {
namespace {
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CaseSpec a_case(const std::string& name, CaseGroup group, bool quick = false) {
  CaseSpec c;
  c.name = name;
  c.group = group;
  c.quick = quick;
  return c;
}

ChallengeSpec a_spec(const std::string& name) {
  ChallengeSpec spec;
  spec.name = name;
  spec.cases = {a_case("small", CaseGroup::core, true), a_case("large", CaseGroup::core),
                a_case("memory", CaseGroup::resource), a_case("slow_clock", CaseGroup::timed),
                a_case("clock", CaseGroup::timed, true)};
  spec.resources = {
      {.name = "scratch", .case_names = {"memory"}, .metric = "bytes", .unit = "", .why = ""},
      {.name = "other", .case_names = {"large"}, .metric = "bytes", .unit = "", .why = ""}};
  return spec;
}

class AttackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "attack_test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text,
                 const std::string& file = "submission.cpp") {
    fs::create_directories(folder_ / name);
    std::ofstream(folder_ / name / file) << text;
    return folder_ / name;
  }
  std::vector<Attack> read(const std::string& header, const std::string& name = "X01_some_name") {
    return read_attack(write(name, header + "int x;\n"), specs_);
  }
  std::string error_of(const std::string& header) {
    try {
      read(header);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }

  fs::path folder_;
  std::vector<ChallengeSpec> specs_{a_spec("one"), a_spec("two")};
};

const std::string kPlain =
    "// attack: does nothing at all,\n//   in two lines\n// challenge: one\n// cases: small "
    "clock\n// expect: WA | honest\n";

TEST_F(AttackTest, ReadsTheFirstLines) {
  const Attack a =
      read(kPlain +
           "// dimension: performance\n// hidden: root:\n// hidden: \\x1b[\n// deadline: 7\n")
          .at(0);
  EXPECT_EQ(a.id, "X01");
  EXPECT_EQ(a.name, "some_name");
  EXPECT_EQ(a.what, "does nothing at all, in two lines");
  EXPECT_EQ(a.challenge, "one");
  EXPECT_THAT(a.cases, ElementsAre("small", "clock"));
  EXPECT_THAT(a.expected, ElementsAre("WA", "honest"));
  EXPECT_TRUE(a.may_be("WA") && a.may_be(kHonest) && !a.may_be("RE"));
  EXPECT_EQ(a.dimension, "performance");
  EXPECT_THAT(a.hidden, ElementsAre("root:", "\x1b["));
  EXPECT_EQ(a.deadline, 7);
  EXPECT_TRUE(a.fast);
  EXPECT_EQ(a.language, Language::cpp);
}

TEST_F(AttackTest, AWitnessIsALineUnlessTheHeaderNamesAnother) {
  const Attack plain = read(kPlain).at(0);
  ASSERT_EQ(plain.witnesses.size(), 1u);
  EXPECT_EQ(plain.witnesses[0].kind, Witness::Kind::line);
  const std::string killed =
      "// attack: x\n// challenge: one\n// cases: small\n// expect: SV | PV\n";
  const Attack named =
      read(killed + "// witness: verdict SV\n// witness: finding a race\n// witness: compiler x\n")
          .at(0);
  ASSERT_EQ(named.witnesses.size(), 3u);
  EXPECT_EQ(named.witnesses[0].kind, Witness::Kind::verdict);
  EXPECT_EQ(named.witnesses[0].text, "SV");
  EXPECT_EQ(named.witnesses[1].kind, Witness::Kind::finding);
  EXPECT_EQ(named.witnesses[1].text, "a race");
  EXPECT_EQ(named.witnesses[2].kind, Witness::Kind::compiler);
}

TEST_F(AttackTest, NoVerdictThatBrokenCodeGetsTooIsAWitness) {
  EXPECT_THAT(error_of(kPlain + "// witness: verdict WA\n"), HasSubstr("'WA' is no verdict"));
  EXPECT_THAT(error_of(kPlain + "// witness: verdict SV\n"), HasSubstr("is expected"));
  EXPECT_THAT(error_of(kPlain + "// witness: finding\n"), HasSubstr("needs a text"));
  EXPECT_THAT(error_of(kPlain + "// witness: verdikt SV\n"), HasSubstr("did you mean 'verdict'"));
}

TEST_F(AttackTest, KindsAndCanariesAreKnownOnes) {
  const Attack a = read(kPlain + "// kind: memory stops\n// canary: hang\n").at(0);
  EXPECT_THAT(a.kinds, ElementsAre("memory", "stops"));
  EXPECT_EQ(a.canary, "hang");
  EXPECT_THAT(error_of(kPlain + "// kind: memroy\n"), HasSubstr("did you mean 'memory'"));
  EXPECT_THAT(error_of(kPlain + "// canary: hank\n"), HasSubstr("did you mean 'hang'"));
}

TEST_F(AttackTest, OneForEachChallengeIsARowForEach) {
  const auto rows =
      read("// attack: x\n// challenge: each\n// cases: one-timed\n// expect: WA\n// fast: two\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, "X01.one");
  EXPECT_EQ(rows[1].id, "X01.two");
  EXPECT_THAT(rows[1].cases, ElementsAre("clock"));  // the case of a quick run
  EXPECT_FALSE(rows[0].fast);
  EXPECT_TRUE(rows[1].fast);
}

TEST_F(AttackTest, VariantsAreRows) {
  const auto rows = read(kPlain + "// variants: left right\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].id, "X01.right");
  EXPECT_EQ(rows[1].variant, 1);
}

TEST_F(AttackTest, WordsForCases) {
  const auto of = [&](const std::string& cases) {
    return read("// attack: x\n// challenge: one\n// cases: " + cases + "\n// expect: WA\n")
        .at(0)
        .cases;
  };
  EXPECT_THAT(of("core"), ElementsAre("small", "large"));
  EXPECT_THAT(of("one-core"), ElementsAre("small"));
  EXPECT_THAT(of("one-resource"), ElementsAre("memory"));
  EXPECT_THAT(of("timed"), ElementsAre("slow_clock", "clock"));
  EXPECT_THAT(of("quick"), ElementsAre("small", "clock"));
}

TEST_F(AttackTest, AChallengeMayHaveCasesOfItsOwn) {
  const auto rows =
      read("// attack: x\n// challenge: each\n// cases: one-core two:memory\n// expect: WA\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0].cases, ElementsAre("small"));
  EXPECT_THAT(rows[1].cases, ElementsAre("memory"));
  EXPECT_THAT(error_of("// attack: x\n// challenge: each\n// cases: one-core tow:memory\n"
                       "// expect: WA\n"),
              HasSubstr("did you mean 'two'"));
}

TEST_F(AttackTest, MalformedHeadersNameFileAndCause) {
  EXPECT_THAT(error_of("// attack: x\n// challenge: one\n// cases: small\n"),
              HasSubstr("'// expect:' is missing"));
  EXPECT_THAT(error_of(kPlain), HasSubstr("no error"));
  EXPECT_THAT(error_of("// attack: x\n// challenge: on\n// cases: small\n// expect: WA\n"),
              HasSubstr("did you mean 'one'"));
  EXPECT_THAT(error_of("// attack: x\n// challenge: one\n// cases: smal\n// expect: WA\n"),
              HasSubstr("did you mean 'small'"));
  EXPECT_THAT(error_of("// attack: x\n// challenge: one\n// cases: small\n// expect: WRONG\n"),
              HasSubstr("'WRONG' is neither"));
  EXPECT_THAT(error_of(kPlain + "// dimension: speed\n"), HasSubstr("unknown dimension 'speed'"));
  EXPECT_THAT(error_of(kPlain + "// challange: one\n"), HasSubstr("did you mean 'challenge'"));
  EXPECT_THAT(error_of(kPlain + "// tiers: chroot\n"), HasSubstr("unknown tier"));
  EXPECT_THAT(error_of(kPlain + "// fast: three\n"), HasSubstr("none of its challenges"));
  EXPECT_THAT(error_of(kPlain + "// dimension: tests\n// dimension: tests\n"), HasSubstr("twice"));
  EXPECT_THAT(error_of(kPlain + "// expectation\n"),
              HasSubstr("submission.cpp:6: expected '// key: value'"));
}

TEST_F(AttackTest, LoadsFoldersThatAreNamedLikeAttacks) {
  write("T02_second", kPlain);
  write("T01_first", kPlain);
  write("targets", kPlain);
  const auto attacks = load_attacks(folder_, specs_);
  ASSERT_EQ(attacks.size(), 2u);
  EXPECT_EQ(attacks[0].id, "T01");
  write("T02_again", kPlain);
  EXPECT_THROW(load_attacks(folder_, specs_), Error);
  EXPECT_THROW(load_attacks(folder_ / "nowhere", specs_), Error);
}

TEST_F(AttackTest, ChoosesByIdOrByHowItBegins) {
  std::vector<Attack> attacks(5);
  const char* const ids[] = {"M01", "M12.inet", "M12.unix", "M120", "T01"};
  for (std::size_t i = 0; i < attacks.size(); ++i) attacks[i].id = ids[i];
  const auto chosen = [&](const std::vector<std::string>& names) {
    std::vector<std::string> found;
    for (const Attack& a : choose(attacks, names)) found.push_back(a.id);
    return found;
  };
  EXPECT_EQ(chosen({}).size(), 5u);
  EXPECT_THAT(chosen({"M12.unix"}), ElementsAre("M12.unix"));
  EXPECT_THAT(chosen({"M12"}), ElementsAre("M12.inet", "M12.unix"))
      << "a prefix is the last resort";
  EXPECT_THAT(chosen({"T"}), ElementsAre("T01"));
  EXPECT_THAT(chosen({"T", "M0"}), ElementsAre("M01", "T01"));
  try {
    choose(attacks, {"M12.inett"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("did you mean 'M12.inet'"));
    EXPECT_THAT(e.what(), HasSubstr("--list"));
  }
}

class LayOutTest : public AttackTest {
 protected:
  void SetUp() override {
    AttackTest::SetUp();
    write("submissions/textbook/one", "// honest\n");
    write("attacks/shared", "// shared\n", "probe.h");
    write("attacks/targets", "// target\n", "one.h");
    places_ = {folder_, folder_ / "attacks"};
  }
  Attack attack(const std::string& more) {
    return read_attack(write("attacks/X01_x", kPlain + more + "int x;\n"), specs_).back();
  }
  std::string text(const std::string& file) const { return read_file(folder_ / "out" / file); }

  Places places_;
};

TEST_F(LayOutTest, BringsTheHonestCodeAndTheTarget) {
  lay_out(attack("// variants: a b\n"), places_, false, folder_ / "out");
  EXPECT_EQ(text("honest.inl"), "// honest\n");
  EXPECT_EQ(text("target.h"), "// target\n");
  EXPECT_EQ(text("probe.h"), "// shared\n");
  EXPECT_THAT(text("submission.cpp"),
              HasSubstr("#define ATTACK_ID \"X01.b\"\n#define ATTACK_IS_TWIN 0\n"
                        "#define ATTACK_VARIANT 1\n// attack:"));
}

TEST_F(LayOutTest, MakesWhatNoRepositoryCanHold) {
  lay_out(attack("// with: symlink passwd.h /etc/passwd\n// with: fifo pipe.h\n// with: file "
                 "a\\sb\\n.cpp\n"),
          places_, false, folder_ / "out");
  EXPECT_TRUE(fs::is_symlink(folder_ / "out" / "passwd.h"));
  EXPECT_TRUE(fs::is_fifo(folder_ / "out" / "pipe.h"));
  EXPECT_TRUE(fs::exists(folder_ / "out" / "a b\n.cpp"));
  EXPECT_THROW(lay_out(attack("// with: nothing\n"), places_, false, folder_ / "again"), Error);
}

TEST_F(LayOutTest, OnlyACanaryLeavesAFileWhichIsTakenAway) {
  const std::string name = "attack_test-" + folder_.filename().string();
  const fs::path left = fs::temp_directory_path() / (std::string(kMark) + "-" + name);
  const Attack canary = attack("// canary: leftovers\n// with: left " + name + "\n");
  lay_out(canary, places_, false, folder_ / "out");
  EXPECT_TRUE(fs::exists(left));
  remove_left(canary);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_THAT(testing::error_of([&] {
                lay_out(attack("// with: left " + name + "\n"), places_, false, folder_ / "no");
              }),
              HasSubstr("only a canary"));
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(LayOutTest, SaysOnceWhatCannotBeMade) {
  for (const char* kind : {"fifo", "file"}) {
    const std::string said = testing::error_of([&] {
      lay_out(attack(std::string("// with: ") + kind + " missing/x.h\n"), places_, false,
              folder_ / kind);
    });
    EXPECT_EQ(said, std::string(kind == std::string("fifo") ? "cannot make " : "cannot write ") +
                        (folder_ / kind / "missing/x.h").string() + ": No such file or directory");
  }
}

TEST_F(LayOutTest, ATwinIsTheTextbookOrItself) {
  lay_out_twin(attack(""), places_, folder_ / "out");
  EXPECT_EQ(text("submission.cpp"), "// honest\n");
  lay_out_twin(attack("// twin: self\n// with: fifo pipe.h\n"), places_, folder_ / "self");
  EXPECT_THAT(read_file(folder_ / "self" / "submission.cpp"),
              HasSubstr("#define ATTACK_IS_TWIN 1\n"));
  EXPECT_FALSE(fs::exists(folder_ / "self" / "pipe.h"));
  EXPECT_THROW(lay_out_twin(attack("// twin: nowhere\n"), places_, folder_ / "none"), Error);
}

TEST_F(AttackTest, OneOfAChallengeThatIsNotHereIsAnErrorAndNoCrash) {
  Attack stray = read(kPlain).front();
  stray.challenge = "onee";
  EXPECT_EQ(testing::error_of([&] { needs_quiet(stray, specs_); }),
            "unknown challenge 'onee'; did you mean 'one'?");
}

TEST_F(AttackTest, NarrowingKeepsTheRulesThatCanBeAnswered) {
  const ChallengeSpec spec = narrowed(a_spec("one"), {"small", "memory"});
  EXPECT_EQ(spec.cases.size(), 2u);
  ASSERT_EQ(spec.resources.size(), 1u);
  EXPECT_EQ(spec.resources[0].name, "scratch");
}

}  // namespace
}  // namespace assay::attack
