#include "judge/agreement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "compare/rank_correlation.h"
#include "grade/currency.h"
#include "grade/partial.h"
#include "records/lookup.h"

namespace assay::judge {
namespace {

class Viewer {
 public:
  Viewer(const Scoreboard& board, const std::vector<ChallengeSpec>& specs)
      : board_(board), specs_(specs), yardsticks_(board, specs) {}

  JudgeView view_of(const std::vector<const Opinion*>& opinions) const {
    JudgeView view;
    view.judge = opinions.front()->judge;
    view.rubric = &opinions.front()->rubric;
    for (const Opinion* opinion : opinions) take(*opinion, view);
    std::ranges::sort(view.judged, {}, [](const Judged& j) { return j.row->key; });
    for (const Device device : kDevices) add_agreements(device, view);
    add_contradictions(view);
    return view;
  }

 private:
  const ChallengeSpec* spec_of(const BoardRow& row) const {
    const auto found = std::ranges::find(specs_, row.key.challenge, &ChallengeSpec::name);
    return found == specs_.end() ? nullptr : &*found;
  }

  bool has_full_score(const BoardRow& row) const {
    const ChallengeSpec* spec = spec_of(row);
    return spec != nullptr && row.score.total && std::isfinite(*row.score.total) &&
           !is_quick(row.score) && !is_stale(row, yardsticks_.of(row.key));
  }

  bool is_whole(const BoardRow& row) const {
    return !device_gap(*spec_of(row), row.key.device).partial;
  }

  void take(const Opinion& opinion, JudgeView& view) const {
    const auto found = board_.entries.find(opinion.key);
    if (found != board_.entries.end() && found->second.source_hash != opinion.source_hash) {
      ++view.left_out.other_sources;
    } else if (found == board_.entries.end() || !has_full_score(found->second)) {
      ++view.left_out.no_score;
    } else if (const auto value = opinion.value()) {
      view.judged.push_back({&found->second, &opinion, *value, *found->second.score.total});
    } else {
      ++view.left_out.no_marks;
    }
  }

  template <class Chosen>
  static void add_agreement(Device device, const ChallengeSpec* challenge, Chosen chosen,
                            JudgeView& view) {
    std::vector<double> values, scores;
    for (const Judged& j : view.judged) {
      if (j.row->key.device != device || !chosen(*j.row)) continue;
      values.push_back(j.value);
      scores.push_back(j.score);
    }
    if (values.empty()) return;
    view.agreements.push_back({device, challenge, values.size(),
                               compare::kendall_tau_b(values, scores),
                               compare::spearman_rho(values, scores)});
  }

  void add_agreements(Device device, JudgeView& view) const {
    for (const ChallengeSpec& spec : specs_) {
      add_agreement(
          device, &spec, [&](const BoardRow& row) { return row.key.challenge == spec.name; }, view);
    }
    add_agreement(
        device, nullptr, [&](const BoardRow& row) { return is_whole(row); }, view);
  }

  void add_contradictions(JudgeView& view) const {
    for (const Judged& j : view.judged) {
      if (!is_whole(*j.row)) continue;
      if (j.value >= kHighOpinion && j.score < kFailedScore) view.praised_failures.push_back(&j);
      if (j.value <= kLowOpinion && j.score >= kGoodScore) view.scorned_successes.push_back(&j);
    }
    const auto distance = [](const Judged* j) {
      return -std::abs(j->value / kHighestMark - j->score / 100);
    };
    std::ranges::stable_sort(view.praised_failures, {}, distance);
    std::ranges::stable_sort(view.scorned_successes, {}, distance);
  }

  const Scoreboard& board_;
  const std::vector<ChallengeSpec>& specs_;
  Yardsticks yardsticks_;
};

}  // namespace

std::vector<JudgeView> judge_views(const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
                                   const std::vector<Opinion>& opinions) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>,
           std::vector<const Opinion*>>
      groups;
  for (const Opinion& o : opinions)
    groups[{o.judge, o.rubric.name, o.rubric.version, o.rubric.sha256}].push_back(&o);
  const Viewer viewer(board, specs);
  std::vector<JudgeView> views;
  for (const auto& [group, of_group] : groups) views.push_back(viewer.view_of(of_group));
  return views;
}

}  // namespace assay::judge
