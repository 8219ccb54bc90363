#include "serve/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/service_fixture.h"

namespace assay::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, BucketsCountAllBelow) {
  Metrics metrics;
  for (const double seconds : {0.02, 0.2, 0.3, 1000.0}) metrics.waited(seconds);
  const std::string text = metrics.text(0, 0, 1);
  for (const char* line :
       {"_bucket{le=\"0.01\"} 0\n", "_bucket{le=\"0.03\"} 1\n", "_bucket{le=\"0.3\"} 3\n",
        "_bucket{le=\"300\"} 3\n", "_bucket{le=\"+Inf\"} 4\n", "_count 4\n"}) {
    EXPECT_THAT(text, HasSubstr(std::string("assay_serve_wait_seconds") + line));
  }
  EXPECT_THAT(text, HasSubstr("assay_serve_wait_seconds_sum 1000.52\n"));
}

TEST(Metrics, AGradeCountsItsVerdictAndTheStagesThatRan) {
  Metrics metrics;
  metrics.graded(testing::graded("WA"));
  const std::string text = metrics.text(3, 2, 4);
  EXPECT_THAT(text, HasSubstr("assay_serve_queued_tasks 3\n"));
  EXPECT_THAT(text, HasSubstr("assay_serve_running_tasks 2\n"));
  EXPECT_THAT(text, HasSubstr("assay_serve_jobs 4\n"));
  EXPECT_THAT(text, HasSubstr("assay_serve_verdicts_total{verdict=\"WA\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("assay_serve_builds_total{cache=\"miss\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("assay_serve_stage_seconds_count{stage=\"build\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("stage=\"core\"")));
}

TEST(Metrics, LookUpsAndAnswersAreCounted) {
  Metrics metrics;
  metrics.looked_up(true);
  metrics.looked_up(false);
  metrics.looked_up(false);
  metrics.answered(429);
  metrics.task_ended("done");
  const std::string text = metrics.text(0, 0, 1);
  EXPECT_THAT(text, HasSubstr("assay_serve_results_total{cache=\"hit\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("assay_serve_results_total{cache=\"miss\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("assay_serve_responses_total{code=\"429\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("assay_serve_tasks_total{status=\"done\"} 1\n"));
}

}  // namespace
}  // namespace assay::serve
