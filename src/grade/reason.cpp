#include "grade/reason.h"

#include <fmt/format.h>

#include <algorithm>

#include "records/lookup.h"
#include "spec/spec.h"

namespace assay {
namespace {

std::string line_of(const std::string& text, std::size_t at) {
  const std::size_t begin = text.rfind('\n', at);
  const std::size_t start = begin == std::string::npos ? 0 : begin + 1;
  return text.substr(start, text.find('\n', at) - start);
}

// The compiler's first error, or the first line if there is none.
std::string first_error(const std::string& log) {
  const std::size_t at = log.find("error:");
  return line_of(log, at == std::string::npos ? 0 : at);
}

const CaseResult* first_with(const CellResult& cell, Verdict v) {
  const auto it = std::find_if(cell.cases.begin(), cell.cases.end(),
                               [v](const CaseResult& r) { return r.verdict == v; });
  return it == cell.cases.end() ? nullptr : &*it;
}

std::string with_detail(std::string text, const std::string& detail) {
  return detail.empty() ? text : text + ": " + detail;
}

// Empty if the submission was built and loaded and the harness did not fail.
std::string reason_it_never_ran(const CellResult& cell) {
  if (cell.build.verdict != Verdict::ok) {
    return with_detail(description(cell.build.verdict), first_error(cell.build.log));
  }
  for (const Verdict v : {Verdict::harness_error, Verdict::load_error}) {
    if (const CaseResult* r = first_with(cell, v)) return with_detail(description(v), r->detail);
  }
  return "";
}

// `capped`: a core case that needs a GPU, which ran none of its kernels, counts as failed too.
std::string failed_core_case(const CellResult& cell, bool capped) {
  for (const CaseResult& r : cell.cases) {
    const bool counts = was_run(r.verdict) || (capped && r.verdict == Verdict::needs_gpu);
    if (r.verdict == Verdict::ok || !counts) continue;
    if (r.group != CaseGroup::core && !is_wrong_at_size(r)) continue;
    return with_detail(
        fmt::format("{} case {} failed ({})", to_string(r.group), r.name, code(r.verdict)),
        r.detail);
  }
  return "";
}

std::string worst_dimension(const Score& score) {
  const Dimension* worst = nullptr;
  const auto loss = [](const Dimension& d) { return d.points ? d.max - *d.points : 0; };
  for (const Dimension& d : score.dimensions) {
    if (!d.points && !score.total) return d.name + ": " + d.why;
    if (worst == nullptr || loss(d) > loss(*worst)) worst = &d;
  }
  if (worst == nullptr) return "not run";
  constexpr double kLeastShown = 0.05;
  return loss(*worst) < kLeastShown ? "full marks" : worst->name + ": " + worst->why;
}

// Cuts at a UTF-8 character boundary.
std::string cut(std::string text) {
  if (text.size() <= kReasonBytes) return text;
  std::size_t end = kReasonBytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

std::string main_reason(const CellResult& cell, const Score& score) {
  if (auto reason = reason_it_never_ran(cell); !reason.empty()) return cut(std::move(reason));
  if (auto reason = failed_core_case(cell, score.capped); !reason.empty())
    return cut(std::move(reason));
  return cut(worst_dimension(score));
}

}  // namespace assay
