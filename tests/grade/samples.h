// A small challenge and its results, for the tests of grades and reports.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"

namespace assay::testing {

inline CaseSpec sample_case(const std::string& name, CaseGroup group, double weight = 1) {
  CaseSpec c;
  c.name = name;
  c.group = group;
  c.weight = weight;
  return c;
}

// Default weights: 50, 5, 20, 10, 10, 5. Shares: core 0.4, edge 0.2, trap 0.4.
inline ChallengeSpec sample_spec(const std::string& name = "layer_norm_backward") {
  ChallengeSpec s;
  s.name = name;
  s.title = name == "layer_norm_backward" ? "Layer norm backward" : name;
  s.difficulty = "medium";
  s.hash = "spec-hash";
  s.correctness_shares = {{CaseGroup::core, 0.4}, {CaseGroup::edge, 0.2}, {CaseGroup::trap, 0.4}};
  s.cases = {sample_case("core_a", CaseGroup::core),
             sample_case("core_b", CaseGroup::core),
             sample_case("edge_a", CaseGroup::edge),
             sample_case("edge_b", CaseGroup::edge, 3),
             sample_case("trap_a", CaseGroup::trap),
             sample_case("trap_b", CaseGroup::trap),
             sample_case("bf16_a", CaseGroup::completeness),
             sample_case("bf16_b", CaseGroup::completeness),
             sample_case("strided", CaseGroup::completeness),
             sample_case("timed_a", CaseGroup::timed),
             sample_case("timed_b", CaseGroup::timed, 3)};
  s.cases[0].quick = s.cases[4].quick = s.cases[9].quick = true;
  s.cases[3].expect_status = 1;
  s.cases[4].catches = "variance by the difference of two large sums";
  s.cases[5].catches = "division by a standard deviation of zero";
  s.cases[6].capability = s.cases[7].capability = "bf16";
  s.cases[8].capability = "strides";
  s.capabilities = {{"bf16", "half-width data", 3}, {"strides", "rows apart", 1}};
  ResourceRule scratch{"scratch", {"core_a"}, "scratch_bytes", 1024, 16384, 1, "bytes", ""};
  ResourceRule reads{"reads", {"core_b"}, "reads", 0, 10, 3, "", ""};
  s.resources = {scratch, reads};
  return s;
}

// Runs in which par takes 1 s, naive 4 s, and the submission `seconds` with a little noise.
inline std::vector<TimingSample> sample_times(double seconds, int repetitions = 11) {
  std::vector<TimingSample> samples;
  for (int i = 0; i < repetitions; ++i) {
    const double drift = 1 + 0.01 * i, noise = 1 + 0.002 * (i * 7 % 11 - 5);
    TimingSample s{std::nullopt, drift, seconds * drift * noise};
    if (i < 3) s.naive = 4 * drift;
    samples.push_back(s);
  }
  return samples;
}

// Everything right: 100 points, as fast as par.
inline CellResult sample_cell(const ChallengeSpec& spec, const std::string& model = "textbook") {
  CellResult cell;
  cell.key = {model, spec.name, "", Device::cpu};
  cell.spec_hash = spec.hash;
  cell.isolation = "namespaces+seccomp";
  cell.seed = 42;
  cell.finished_at = "2026-11-21T04:00:00Z";
  cell.build.source_hash = "source-hash";
  cell.build.command = "g++ -O3 submission.cpp";
  for (const CaseSpec& c : spec.cases) {
    CaseResult r;
    r.name = c.name;
    r.group = c.group;
    r.verdict = Verdict::ok;
    r.seed = 1000 + cell.cases.size();
    r.shape = "rows=64 D=1024 f32";
    r.seconds = 0.001;
    if (c.group == CaseGroup::timed) {
      r.samples = sample_times(1);
    } else if (c.expect_status == 0) {
      r.accuracy = 1.0;
      r.error = 1e-7;
      r.bound = 4e-7;
    }
    r.metrics = {{"scratch_bytes", 512}, {"reads", 0}};
    cell.cases.push_back(r);
  }
  for (const char* name : {"naive", "par", "wrong_a", "wrong_b", "wrong_c", "wrong_d"}) {
    const bool correct = !std::string_view(name).starts_with("wrong");
    cell.mutants.push_back({.subject = name,
                            .correct = correct,
                            .verdict = correct ? TestVerdict::accepted : TestVerdict::rejected});
  }
  return cell;
}

inline CaseResult& case_of(CellResult& cell, const std::string& name) {
  for (CaseResult& r : cell.cases) {
    if (r.name == name) return r;
  }
  throw std::out_of_range(name);
}

inline Mutant& mutant_of(CellResult& cell, const std::string& subject) {
  for (Mutant& m : cell.mutants) {
    if (m.subject == subject) return m;
  }
  throw std::out_of_range(subject);
}

inline Machine sample_machine() {
  Machine m;
  m.cpu = "Xeon | 8481C";
  m.kernel = "6.1";
  m.os = "Debian 12";
  m.compiler = "g++ 12.2.0";
  m.cores = 2;
  m.memory_bytes = std::int64_t{8} << 30;
  m.l3_bytes = 37535744;
  m.copy_bytes_per_s = 1.5e10;
  m.fma_flops_per_s = 1.1e11;
  return m;
}

}  // namespace assay::testing
