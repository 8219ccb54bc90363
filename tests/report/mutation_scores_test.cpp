#include "report/mutation_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "boards.h"
#include "spec/spec.h"

namespace assay::report {
namespace {

using mutate::ChallengeScore;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::two_specs;

ChallengeScore score_of(const ChallengeSpec& spec, std::size_t killed, std::size_t survived) {
  return {spec.name, "textbook", judging_hashes(spec), 1, 300, {9, 2, killed, 7, survived}};
}

TEST(MutationScores, AddUpInOneSentence) {
  const auto specs = two_specs();
  EXPECT_EQ(mutation_sentence({score_of(specs[0], 80, 0), score_of(specs[1], 79, 1)}, specs),
            "The cases catch 159 of 160 harmful mutants of right answers (99.4 %).\n\n");
  EXPECT_EQ(mutation_sentence({}, specs), "");
}

TEST(MutationScores, OfOlderCasesAreNotCounted) {
  const auto specs = two_specs();
  ChallengeScore old = score_of(specs[1], 10, 10);
  old.judged_by = {"of before"};
  EXPECT_THAT(
      mutation_sentence({score_of(specs[0], 80, 0), old}, specs),
      AllOf(HasSubstr("80 of 80"), HasSubstr("Mutants of 1 challenge are to be tried again")));
  EXPECT_THAT(mutation_sentence({old}, specs), Not(HasSubstr("catch")));
  ChallengeScore of_par = old;
  of_par.of = "par";
  EXPECT_THAT(mutation_sentence({old, of_par}, specs), HasSubstr("Mutants of 1 challenge are"));
  EXPECT_THAT(mutation_table({old}, specs), HasSubstr("| stale |"));
}

TEST(MutationScores, HaveARowForEachChallenge) {
  const auto specs = two_specs();
  const std::string table = mutation_table({score_of(specs[0], 80, 20)}, specs);
  EXPECT_THAT(table, HasSubstr("| 300 | 118 | 11 | 80 | 7 | 20 | 80 % |"));
  EXPECT_EQ(mutation_table({}, specs), "");
}

}  // namespace
}  // namespace assay::report
