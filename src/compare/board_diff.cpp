#include "compare/board_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compare/bootstrap.h"
#include "compare/field.h"
#include "grade/currency.h"
#include "records/lookup.h"

namespace assay::compare {
namespace {

using Kind = CellChange::Kind;

std::string remarks_on(const BoardRow& before, const BoardRow& after) {
  std::string text;
  const auto add = [&](const std::string& remark) { text += (text.empty() ? "" : "; ") + remark; };
  if (before.score.verdict != after.score.verdict)
    add(fmt::format("{} -> {}", code(before.score.verdict), code(after.score.verdict)));
  if (before.source_hash != after.source_hash) add("other sources");
  return text;
}

bool has_score(const BoardRow& row) { return row.score.total && std::isfinite(*row.score.total); }

CellChange change_of(const BoardRow& before, const BoardRow& after, double least,
                     bool across_specs) {
  CellChange c;
  c.key = after.key;
  c.before = &before;
  c.after = &after;
  c.remark = remarks_on(before, after);
  const bool was = has_score(before), is = has_score(after);
  if (was && is) c.difference = difference(score_of(after), score_of(before));
  if (before.evidence.sha256 == after.evidence.sha256 && before.score.total == after.score.total)
    return c;
  if (was != is) {
    c.kind = is ? Kind::graded : Kind::ungraded;
    return c;
  }
  if (!was) return c;  // neither could be graded
  if (const std::string why = why_not_compared(before, after, across_specs); !why.empty()) {
    c.kind = Kind::incomparable;
    c.remark = why + (c.remark.empty() ? "" : "; " + c.remark);
    return c;
  }
  const bool large = std::abs(c.difference->value) >= least;
  c.kind = large && is_above_zero(*c.difference)   ? Kind::better
           : large && is_below_zero(*c.difference) ? Kind::worse
                                                   : Kind::within_noise;
  return c;
}

}  // namespace

const char* to_string(CellChange::Kind kind) {
  switch (kind) {
    case Kind::worse: return "worse";
    case Kind::gone: return "gone";
    case Kind::ungraded: return "no longer graded";
    case Kind::better: return "better";
    case Kind::appeared: return "new";
    case Kind::graded: return "graded now";
    case Kind::within_noise: return "within noise";
    case Kind::same: return "same";
    case Kind::incomparable: return "not compared";
  }
  return "?";
}

std::vector<CellChange> diff_boards(const Scoreboard& before, const Scoreboard& after, double least,
                                    bool across_specs) {
  std::set<CellKey> keys;
  for (const auto& [key, row] : before.entries) keys.insert(key);
  for (const auto& [key, row] : after.entries) keys.insert(key);
  std::vector<CellChange> changes;
  for (const CellKey& key : keys) {
    const auto old = before.entries.find(key), now = after.entries.find(key);
    if (old != before.entries.end() && now != after.entries.end()) {
      changes.push_back(change_of(old->second, now->second, least, across_specs));
      continue;
    }
    CellChange c;
    c.key = key;
    c.kind = old == before.entries.end() ? Kind::appeared : Kind::gone;
    (old == before.entries.end() ? c.after : c.before) =
        old == before.entries.end() ? &now->second : &old->second;
    changes.push_back(std::move(c));
  }
  std::ranges::stable_sort(changes, {}, &CellChange::kind);
  return changes;
}

bool is_regression(const CellChange& c) {
  return c.kind == Kind::worse || c.kind == Kind::gone || c.kind == Kind::ungraded;
}

}  // namespace assay::compare
