// The field, pairs, traps, takeaways, differences of boards, published grades.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "boards.h"
#include "compare/board_diff.h"
#include "compare/pairwise.h"
#include "compare/published.h"
#include "compare/takeaways.h"
#include "compare/traps.h"
#include "grade/partial.h"
#include "spec/spec.h"
#include "support/error_of.h"
#include "support/paths.h"

namespace assay::compare {
namespace {

using testing::error_of;
using testing::given_board;
using testing::GivenScore;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::three_specs;

const std::vector<ChallengeSpec>& specs() {
  static const std::vector<ChallengeSpec> kSpecs = three_specs();
  return kSpecs;
}

Field field_of(const Scoreboard& board) { return make_field(board, specs(), Device::cpu); }

// --- partial -------------------------------------------------------------------

TEST(Partial, OfTheShippedChallengesOneIsOnTheSimulator) {
  std::vector<std::string> partial;
  for (const auto& folder :
       std::filesystem::directory_iterator(testing::source_dir() + "/challenges")) {
    if (!std::filesystem::exists(folder.path() / "spec.json")) continue;
    const ChallengeSpec spec = load_spec(folder.path());
    EXPECT_FALSE(device_gap(spec, Device::cpu).partial);
    EXPECT_THAT(device_gap(spec, Device::cpu).missing, IsEmpty());
    if (device_gap(spec, Device::sim).partial) partial.push_back(spec.name);
  }
  EXPECT_EQ(partial, std::vector<std::string>{"ternary_training"});
}

TEST(Partial, BeginsAtAThirdOfCorrectnessAndAtAnyCoreCase) {
  ChallengeSpec spec = testing::sample_spec();
  EXPECT_FALSE(device_gap(spec, Device::sim).partial);
  ChallengeSpec without_traps = spec;  // 0.4 of 50 points
  for (CaseSpec& c : without_traps.cases) c.on_simulator = c.group != CaseGroup::trap;
  EXPECT_NEAR(device_gap(without_traps, Device::sim).points, 20, 1e-9);
  EXPECT_TRUE(device_gap(without_traps, Device::sim).partial);
  ChallengeSpec without_a_trap = spec;  // 10 points
  without_a_trap.cases[4].on_simulator = false;
  EXPECT_NEAR(device_gap(without_a_trap, Device::sim).points, 10, 1e-9);
  EXPECT_FALSE(device_gap(without_a_trap, Device::sim).partial);
  ChallengeSpec without_a_core = spec;  // core_b, which a rule of resources needs too
  without_a_core.cases[1].on_simulator = false;
  const DeviceGap gap = device_gap(without_a_core, Device::sim);
  EXPECT_TRUE(gap.partial);
  EXPECT_NEAR(gap.points, 10 + 7.5, 1e-9);
  EXPECT_THAT(gap.missing, ::testing::Contains("core case core_b"));
}

// --- field ---------------------------------------------------------------------

TEST(Field, ACellHasAllFiguresOfItsAttempts) {
  const Scoreboard board =
      given_board({{"m", 0, "10", 70, 1}, {"m", 0, "2", 90, 2}, {"m", 0, "1", 50, 1}});
  const Field field = field_of(board);
  const Cell& cell = field.players[0].cells[0];
  EXPECT_EQ(cell.attempts[2]->key.attempt, "10");
  EXPECT_EQ(cell.figure(By::first).value, 50);
  EXPECT_EQ(cell.figure(By::best).value, 90);
  EXPECT_EQ(cell.figure(By::best).interval.low, 88);
  EXPECT_NEAR(cell.figure(By::mean).value, 70, 1e-12);
  EXPECT_LT(cell.figure(By::mean).interval.low, 60);
  EXPECT_EQ(cell.worst(), 50);
  EXPECT_NEAR(cell.spread(), 20, 1e-12);
  EXPECT_EQ(cell.best->key.attempt, "2");
}

TEST(Field, AQuickAttemptDoesNotCountBesideAFullOne) {
  Scoreboard board = given_board({{"m", 0, "1", 99}, {"m", 0, "2", 60}, {"m", 1, "", 70}});
  for (auto& [key, row] : board.entries) {
    if (key.attempt != "2") row.score.flags = {{Note::Kind::quick, "quick"}};
  }
  const Field field = field_of(board);
  EXPECT_EQ(field.players[0].cells[0].count(), 1u);
  EXPECT_EQ(field.players[0].cells[0].best->key.attempt, "2");
  EXPECT_EQ(field.players[0].cells[1].count(), 1u);
}

TEST(Field, AttemptsAreOrderedWhateverTheirNames) {
  std::vector<std::string> attempts{"2", "x", "1a", "10", ""};
  std::ranges::sort(attempts, attempt_before);
  EXPECT_EQ(attempts, (std::vector<std::string>{"", "2", "10", "1a", "x"}));
}

// Boards may be merged from untrusted sources.
TEST(Field, NonsenseOfABoardIsBounded) {
  Scoreboard board =
      given_board({{"m", 0, "1", 80}, {"m", 0, "2", 60}, {"m", 1, "", 50}, {"m", 2, "", 1e300}});
  auto& rows = board.entries;
  rows.at({"m", "first", "1", Device::cpu}).score.total = NAN;
  rows.at({"m", "first", "2", Device::cpu}).score.interval = {NAN, -HUGE_VAL};
  rows.at({"m", "second", "", Device::cpu}).score.total = HUGE_VAL;
  const Field field = field_of(board);
  EXPECT_EQ(field.players[0].cells[0].count(), 1u);
  EXPECT_EQ(field.players[0].cells[0].figure(By::mean).interval.low, 60);
  EXPECT_EQ(field.players[0].cells[1].count(), 0u);
  EXPECT_EQ(field.players[0].cells[2].figure(By::best).value, 100);
  EXPECT_NO_THROW(takeaways(field, trap_figures(field), By::mean));
  EXPECT_NO_THROW(diff_boards(board, board));
}

// --- pairs ---------------------------------------------------------------------

TEST(Pairs, WinnersAreBeyondNoise) {
  const Scoreboard board = given_board({{"a", 0, "", 80, 2},
                                        {"b", 0, "", 70, 2},
                                        {"a", 1, "", 80, 8},
                                        {"b", 1, "", 75, 8},
                                        {"b", 2, "", 90}});
  const Field field = field_of(board);
  const Pair pair =
      compare_pair(field, field.players[0], field.players[1], By::mean, goal_from("correct"));
  ASSERT_EQ(pair.duels.size(), 3u);
  EXPECT_EQ(pair.duels[0].outcome, Duel::Outcome::a_wins);
  EXPECT_EQ(pair.duels[1].outcome, Duel::Outcome::tie);
  EXPECT_EQ(pair.duels[2].outcome, Duel::Outcome::not_compared);
  EXPECT_TRUE(pair.duels[0].timings_alone);
  EXPECT_EQ(pair.record.wins, 1);
  EXPECT_EQ(pair.record.ties, 1);
  EXPECT_EQ(pair.record.games(), 2);
  EXPECT_NEAR(pair.margin->value, 7.5, 1e-12);
}

TEST(Pairs, WhatIsNotAlikeIsNotCompared) {
  Scoreboard board =
      given_board({{"a", 0, "", 80}, {"b", 0, "", 70}, {"a", 1, "", 80}, {"b", 1, "", 70}});
  for (auto& [key, row] : board.entries) {
    if (key.model != "b") continue;
    if (key.challenge == "first") row.score.flags = {{Note::Kind::quick, "quick"}};
    if (key.challenge == "second") row.spec_hash = "older";
  }
  const Field field = field_of(board);
  EXPECT_THAT(duel(field, field.players[0], field.players[1], 0, By::mean).why_not,
              HasSubstr("quick"));
  EXPECT_THAT(duel(field, field.players[0], field.players[1], 1, By::mean).why_not,
              HasSubstr("stale"));
  EXPECT_THAT(games_of(field, {0, 1}, By::mean), IsEmpty());
}

// It is the same in quick and full runs.
TEST(Pairs, WhatNeverRanIsComparedWithEither) {
  Scoreboard board = given_board({{"a", 0, "", 80}, {"b", 0, "", 0, 0, Verdict::build_error}});
  board.entries.begin()->second.score.flags = {{Note::Kind::quick, "quick"}};
  const Field field = field_of(board);
  EXPECT_EQ(duel(field, field.players[0], field.players[1], 0, By::mean).outcome,
            Duel::Outcome::a_wins);
}

TEST(Field, StaleAttemptsAreShownAndNotCounted) {
  Scoreboard board = given_board({{"a", 0, "1", 90},
                                  {"a", 0, "2", 50},
                                  {"b", 0, "", 70},
                                  {"b", 1, "1", 30},
                                  {"b", 1, "2", 40}});
  const auto row = [&](const char* model, const char* challenge, const char* attempt) -> BoardRow& {
    return board.entries.at({model, challenge, attempt, Device::cpu});
  };
  row("a", "first", "1").revision = 0;
  row("b", "second", "1").spec_hash = "older";
  row("b", "second", "2").revision = 0;
  const Field field = field_of(board);
  const Cell &mixed = field.find("a")->cells[0], &old = field.find("b")->cells[1];
  EXPECT_EQ(mixed.count(), 1u);
  EXPECT_EQ(mixed.stale.size(), 1u);
  EXPECT_FALSE(mixed.is_stale());
  EXPECT_EQ(mixed.best->key.attempt, "2");
  EXPECT_NEAR(mixed.mean.value, 50, 1e-12);
  EXPECT_EQ(old.count(), 0u);
  EXPECT_TRUE(old.is_stale());
  EXPECT_EQ(old.best->key.attempt, "2");
  EXPECT_EQ(field.currency_mark(0, *mixed.best), "");
  EXPECT_EQ(field.currency_mark(1, *old.best), " (stale: older measurement revision)");
  EXPECT_EQ(games_of(field, {0, 1}, By::mean).size(), 1u);
}

TEST(Field, DatedAttemptsCountAmongEachOther) {
  Scoreboard board = given_board({{"a", 0, "", 90}, {"b", 0, "", 70}});
  for (auto& [key, row] : board.entries) row.spec_hash = "older";
  const Field field = field_of(board);
  EXPECT_EQ(field.find("a")->cells[0].count(), 1u);
  EXPECT_EQ(field.currency_mark(0, board.entries.begin()->second), " (older spec)");
  EXPECT_EQ(games_of(field, {0, 1}, By::mean).size(), 1u);
  EXPECT_THAT(trap_figures(field), IsEmpty()) << "today's traps were not run";
  EXPECT_EQ(uncounted_answers(field), 2u);
}

TEST(Pairs, FactsNameWhatDecided) {
  const Scoreboard board =
      given_board({{"a", 0, "", 90, 0, Verdict::ok, {{"bf16_a", Verdict::unsupported}}, 0.8},
                   {"b",
                    0,
                    "",
                    40,
                    0,
                    Verdict::wrong_answer,
                    {{"core_b", Verdict::wrong_answer}, {"trap_a", Verdict::runtime_error}},
                    0.2},
                   {"c", 0, "", 0, 0, Verdict::build_error}});
  const BoardRow &a = board.entries.at({"a", "first", "", Device::cpu}),
                 &b = board.entries.at({"b", "first", "", Device::cpu}),
                 &c = board.entries.at({"c", "first", "", Device::cpu});
  const auto facts = decisive_facts(a, b, specs()[0]);
  ASSERT_EQ(facts.size(), 4u);
  EXPECT_EQ(facts[0].kind, Fact::Kind::core);
  EXPECT_EQ(facts[0].whose, Side::b);
  EXPECT_THAT(facts[0].text, HasSubstr("fails 1 core case: core_b (WA), which the other passes"));
  EXPECT_THAT(facts[1].text, HasSubstr("trap_a (RE: variance by the difference"));
  EXPECT_EQ(facts[2].kind, Fact::Kind::capability);
  EXPECT_EQ(facts[2].whose, Side::b);
  EXPECT_THAT(facts[2].text, HasSubstr("has 1 capability that the other lacks: bf16"));
  EXPECT_EQ(facts[3].whose, Side::a);
  EXPECT_THAT(facts[3].text, HasSubstr("is 4 times as fast"));
  const auto unbuilt = decisive_facts(a, c, specs()[0]);
  ASSERT_EQ(unbuilt.size(), 1u);
  EXPECT_EQ(unbuilt[0].kind, Fact::Kind::build);
  EXPECT_EQ(unbuilt[0].whose, Side::b);
}

TEST(Pairs, WithoutFailedCasesNothingIsSaidOfThem) {
  Scoreboard board = given_board(
      {{"a", 0, "", 90},
       {"b", 0, "", 40, 0, Verdict::wrong_answer, {{"core_b", Verdict::wrong_answer}}}});
  auto row = board.entries.begin();
  row->second.failed.reset();
  EXPECT_THAT(decisive_facts(row->second, std::next(row)->second, specs()[0]), IsEmpty());
}

TEST(Pairs, BytesComeFromTheEvidence) {
  CellResult a = testing::sample_cell(specs()[0], "a"), b = testing::sample_cell(specs()[0], "b");
  EXPECT_THAT(resource_facts(a, b, specs()[0]), IsEmpty());
  testing::case_of(b, "core_a").metrics = {{"scratch_bytes", 4096}};
  const auto facts = resource_facts(a, b, specs()[0]);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].whose, Side::a);
  EXPECT_EQ(facts[0].text, "scratch: 512 bytes against 4096 bytes");
}

// --- traps and takeaways ---------------------------------------------------------

std::vector<FailedCase> fell_for(std::initializer_list<const char*> names) {
  std::vector<FailedCase> failed;
  for (const char* name : names) failed.push_back({name, Verdict::wrong_answer});
  return failed;
}

Scoreboard trapped_board() {
  return given_board(
      {{"a", 0, "", 95, 0, Verdict::ok, {}, 0.1},
       {"b", 0, "1", 60, 0, Verdict::wrong_answer, fell_for({"trap_a"}), 0.9},
       {"b", 0, "2", 90, 0, Verdict::ok, {}},
       {"c", 0, "", 50, 0, Verdict::wrong_answer, fell_for({"trap_a", "core_b"}), 0.9},
       {"d", 0, "", 55, 0, Verdict::wrong_answer, fell_for({"core_b"})}});
}

TEST(Traps, SeparationIsTheMeanDifferenceOfAllPairs) {
  const Scoreboard board = trapped_board();
  const auto figures = trap_figures(field_of(board));
  ASSERT_EQ(figures.size(), 2u);
  const TrapFigure& t = figures[0];
  EXPECT_EQ(t.trap, "trap_a");
  EXPECT_EQ(t.models, 4u);
  EXPECT_EQ(t.answers, 5u);
  EXPECT_EQ(t.fallen, 2u);
  const double shares[] = {0, 0.5, 1, 0};
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    for (int j = i + 1; j < 4; ++j) sum += std::abs(shares[i] - shares[j]);
  }
  EXPECT_NEAR(t.separation, sum / 6, 1e-12);
  EXPECT_NEAR(t.share, 1.5 / 4, 1e-12);
  EXPECT_EQ(t.fell, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(t.use(), TrapFigure::Use::separates);
  EXPECT_EQ(figures[1].use(), TrapFigure::Use::nobody);
  EXPECT_FALSE(figures[1].enough());
}

TEST(Traps, OnlyWholeAnswersToTheSpecOfTodayCount) {
  Scoreboard board = trapped_board();
  for (auto& [key, row] : board.entries) {
    if (key.model == "a") row.spec_hash = "older";
    if (key.model == "b") row.failed.reset();
    if (key.model == "c") row.score.verdict = Verdict::build_error;
  }
  const Field field = field_of(board);
  EXPECT_EQ(trap_figures(field)[0].answers, 1u);
  EXPECT_EQ(uncounted_answers(field), 3u);
}

std::string all_texts(const Scoreboard& board) {
  const Field field = field_of(board);
  std::string text;
  for (const Takeaway& t : takeaways(field, trap_figures(field), By::mean))
    text += std::string(to_string(t.kind)) + ": " + t.text + "\n";
  return text;
}

TEST(Takeaways, CarryTheNumbersTheyComeFrom) {
  const std::string text = all_texts(trapped_board());
  EXPECT_THAT(text,
              HasSubstr("trap: The trap trap_a of The first (variance by the difference of two "
                        "large sums) catches 2 of 5 answers and tells 58 % of the pairs of 4 "
                        "models apart; it caught b, c."));
  EXPECT_THAT(text, HasSubstr("attempts: 2 attempts of b at The first come to 60.0 to 90.0: mean "
                              "75.0, standard deviation 21.2."));
  EXPECT_THAT(text,
              HasSubstr("slow_and_fast: The first: a is correct at 0.1 times the speed of par "
                        "and has 95.0 points; c runs at 0.9 times and is wrong (WA), with "
                        "50.0."));
  EXPECT_THAT(text,
              HasSubstr("shared_mistake: c, d make the same mistake at The first: core_b (WA), "
                        "which 2 of 4 models pass."));
}

TEST(Takeaways, AModelThatFailsOtherwiseDoesNotPass) {
  const FailedCase wrong{"core_b", Verdict::wrong_answer}, crash{"core_b", Verdict::runtime_error};
  const std::string text =
      all_texts(given_board({{"a", 0, "", 90},
                             {"b", 0, "", 50, 0, Verdict::wrong_answer, {wrong}},
                             {"c", 0, "", 50, 0, Verdict::wrong_answer, {wrong}},
                             {"d", 0, "", 50, 0, Verdict::runtime_error, {crash}}}));
  EXPECT_THAT(text, HasSubstr("b, c make the same mistake at The first: core_b (WA), which 1 of 4 "
                              "models passes."));
}

TEST(Takeaways, AreNotMadeOfTooLittle) {
  EXPECT_EQ(all_texts({}), "");
  EXPECT_EQ(all_texts(given_board({{"a", 0, "", 90}, {"b", 0, "", 50}})), "");
}

TEST(Takeaways, TellWhoIsConsistentAndWhatSeparates) {
  std::vector<GivenScore> scores;
  for (std::size_t c = 0; c < 3; ++c) {
    scores.push_back({"even", c, "", 80});
    scores.push_back({"uneven", c, "", 90 - 30.0 * static_cast<double>(c)});
    scores.push_back({"other", c, "", 75});
  }
  const std::string text = all_texts(given_board(scores));
  EXPECT_THAT(text, HasSubstr("Least even: uneven, from 30.0 (The third) to 90.0 (The first) "
                              "over 3 challenges."));
  EXPECT_THAT(text, HasSubstr("Separates the models most: The third (standard deviation"));
  EXPECT_THAT(text, HasSubstr("Separates them least: The first"));
}

// --- differences of boards --------------------------------------------------------

TEST(Diff, SortsCellsByWhatBecameOfThem) {
  const Scoreboard before = given_board({{"a", 0, "", 80, 1},
                                         {"a", 1, "", 80, 1},
                                         {"a", 2, "", 80, 1},
                                         {"gone", 0, "", 50},
                                         {"kept", 0, "", 50}});
  Scoreboard after = given_board({{"a", 0, "", 70, 1},
                                  {"a", 1, "", 90, 1},
                                  {"a", 2, "", 80.5, 1},
                                  {"new", 0, "", 50},
                                  {"kept", 0, "", 50}});
  for (auto& [key, row] : after.entries) {
    if (key.model == "a") row.evidence.sha256 += "2";
  }
  const auto changes = diff_boards(before, after);
  std::vector<std::string> kinds;
  for (const CellChange& c : changes) kinds.push_back(c.key.model + " " + to_string(c.kind));
  EXPECT_EQ(kinds, (std::vector<std::string>{"a worse", "gone gone", "a better", "new new",
                                             "a within noise", "kept same"}));
  EXPECT_NEAR(changes[0].difference->value, -10, 1e-12);
  EXPECT_TRUE(is_regression(changes[0]));
  EXPECT_TRUE(is_regression(changes[1]));
  EXPECT_FALSE(is_regression(changes[2]));
  EXPECT_EQ(diff_boards(before, after, 11)[0].kind, CellChange::Kind::gone);
}

TEST(Diff, OfOtherSpecsIsNoDifference) {
  const Scoreboard before = given_board({{"a", 0, "", 80, 1}});
  Scoreboard after = given_board({{"a", 0, "", 60, 1}});
  after.entries.begin()->second.spec_hash = "newer";
  after.entries.begin()->second.evidence.sha256 = "other";
  EXPECT_EQ(diff_boards(before, after)[0].kind, CellChange::Kind::incomparable);
  EXPECT_EQ(diff_boards(before, after, 0, true)[0].kind, CellChange::Kind::worse);
}

TEST(Diff, OfOtherRevisionsIsNone) {
  const Scoreboard before = given_board({{"a", 0, "", 80, 1}});
  Scoreboard after = given_board({{"a", 0, "", 60, 1}});
  after.entries.begin()->second.revision += 1;
  after.entries.begin()->second.evidence.sha256 = "other";
  EXPECT_EQ(diff_boards(before, after, 0, true)[0].kind, CellChange::Kind::incomparable);
}

TEST(Diff, AQuickAnswerThatNoLongerCompilesIsARegression) {
  Scoreboard before = given_board({{"a", 0, "", 80, 1}});
  before.entries.begin()->second.score.flags = {{Note::Kind::quick, "quick"}};
  Scoreboard after = given_board({{"a", 0, "", 0, 0, Verdict::build_error}});
  after.entries.begin()->second.evidence.sha256 = "other";
  EXPECT_EQ(diff_boards(before, after)[0].kind, CellChange::Kind::worse);
}

TEST(Diff, ALostTotalIsARegression) {
  const Scoreboard before = given_board({{"a", 0, "", 80, 1}});
  Scoreboard after = before;
  after.entries.begin()->second.score.total.reset();
  after.entries.begin()->second.evidence.sha256 = "other";
  EXPECT_EQ(diff_boards(before, after)[0].kind, CellChange::Kind::ungraded);
  EXPECT_EQ(diff_boards(after, before)[0].kind, CellChange::Kind::graded);
}

// --- published grades ---------------------------------------------------------------

constexpr const char* kJson = R"({"schema": 1, "kind": "published_grades", "source": "S",
  "grades": {"high": {"x": "A", "y": "B"}, "low": {"x": "A", "y": "A-", "z": "B+"}},
  "ranking": [{"rank": 1, "model": "high", "average": "A", "challenges": "2/3"},
              {"rank": 2, "model": "low", "average": "A-/B+", "challenges": "2/3"},
              {"rank": 3, "model": "nobody"}]})";

TEST(PublishedGrades, AreRecomputedAndContradictionsNamed) {
  const Published p = parse_published(kJson, "f.json");
  const Recomputed r = recompute(p);
  ASSERT_EQ(r.places.size(), 2u);
  EXPECT_EQ(r.places[0].model, "low");
  EXPECT_NEAR(r.places[0].average, (4 + 3.7 + 3.3) / 3, 1e-12);
  EXPECT_EQ(r.places[0].published_rank, 2);
  std::string all;
  for (const std::string& c : r.contradictions) all += c + "\n";
  EXPECT_THAT(all, HasSubstr("high is ranked 1, above low (2), but averages 3.50 (A-) against 3.67 "
                             "(A-); over the 2 that both have, 3.50 (A-) against 3.85 (A)."));
  EXPECT_THAT(all, HasSubstr("high is said to average A; its 2 grades average 3.50 (A-)."));
  EXPECT_THAT(all, HasSubstr("low is said to have 2/3 challenges; it has 3 grades."));
  EXPECT_THAT(all, HasSubstr("nobody is ranked 3 and has no grade."));
  EXPECT_THAT(all, Not(HasSubstr("low is said to average")));
}

TEST(PublishedGrades, SurviveARoundTrip) {
  const std::string text = published_text(parse_published(kJson, "f.json"));
  EXPECT_EQ(published_text(parse_published(text, "g.json")), text);
}

TEST(PublishedGrades, ComeFromCsvToo) {
  const Published p = parse_published("challenge,model,grade\r\nx,\"a, \"\"b\"\"\",87.5\ny,c,60\n",
                                      "f.csv", "here");
  EXPECT_FALSE(p.letters);
  EXPECT_EQ(p.grades.at("a, \"b\"").at("x").value, 87.5);
  EXPECT_EQ(p.source, "here");
}

TEST(PublishedGrades, ErrorsNamePlaceAndRemedy) {
  const auto said = [](const std::string& text, const char* source = "s") {
    return error_of([&] { parse_published(text, "f", source); });
  };
  EXPECT_THAT(said("model,challenge,grade\na,x,A\n", ""), HasSubstr("--source"));
  EXPECT_THAT(said("model,challenge\n"), HasSubstr("f:1: no column 'grade'"));
  EXPECT_THAT(said("model,challenge,grade\na,x\n"), HasSubstr("f:2: 2 fields"));
  EXPECT_THAT(said("model,challenge,grade\na,x,E\n"), HasSubstr("f:2: \"E\" is no grade"));
  EXPECT_THAT(said("model,challenge,grade\na,x,A\na,x,B\n"), HasSubstr("f:3: a second grade"));
  EXPECT_THAT(said("model,challenge,grade\na,x,A\na,y,80\n"), HasSubstr("some grades are letters"));
  EXPECT_THAT(said("model,challenge,grade\n"), HasSubstr("holds no grade"));
  EXPECT_THAT(said("{\"schema\": 1}"), HasSubstr("is missing"));
  EXPECT_THAT(said(R"({"schema": 1, "kind": "published_grades", "source": "s",
                       "grades": {"m": {"x": []}}})"),
              HasSubstr("at /grades/m/x"));
}

}  // namespace
}  // namespace assay::compare
