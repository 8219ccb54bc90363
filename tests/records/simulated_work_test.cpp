#include "records/simulated_work.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace assay {
namespace {

// Every 64-bit field with a different value.
SimulatedWork sample() {
  SimulatedWork work;
  std::vector<std::uint64_t> values(sizeof work / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1000 + i;
  std::memcpy(static_cast<void*>(&work), values.data(), sizeof work);
  return work;
}

TEST(SimulatedWork, EveryFieldIsAMetricOfItsOwnAndComesBack) {
  std::vector<Metric> metrics{{"scratch_bytes", 7}};
  add_metrics(metrics, sample());
  std::set<std::string> names;
  std::set<double> values;
  for (const Metric& m : metrics) {
    names.insert(m.name);
    values.insert(m.value);
  }
  EXPECT_EQ(metrics.size(), 1 + sizeof(SimulatedWork) / sizeof(std::uint64_t));
  EXPECT_EQ(names.size(), metrics.size());
  EXPECT_EQ(values.size(), metrics.size());
  EXPECT_TRUE(names.contains("sim_global_load_sectors"));
  EXPECT_TRUE(names.contains("sim_launches"));
  const auto back = simulated_work(metrics);
  ASSERT_TRUE(back);
  const SimulatedWork expected = sample();
  EXPECT_EQ(std::memcmp(&*back, &expected, sizeof expected), 0);
}

TEST(SimulatedWork, BaselinesStandBesideTheSubmission) {
  std::vector<Metric> metrics;
  add_metrics(metrics, sample());
  EXPECT_FALSE(simulated_work(metrics, kNaivePrefix));
  SimulatedWork naive = sample();
  naive.counters.instructions = 5;
  add_metrics(metrics, naive, kNaivePrefix);
  EXPECT_EQ(simulated_work(metrics, kNaivePrefix)->counters.instructions, 5u);
  EXPECT_EQ(simulated_work(metrics)->counters.instructions, sample().counters.instructions);
}

TEST(SimulatedWork, AMissingOrNegativeFieldIsNoWork) {
  std::vector<Metric> metrics;
  add_metrics(metrics, sample());
  metrics[3].value = -1;
  EXPECT_FALSE(simulated_work(metrics));
  metrics.erase(metrics.begin() + 3);
  EXPECT_FALSE(simulated_work(metrics));
}

}  // namespace
}  // namespace assay
