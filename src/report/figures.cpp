#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "grade/grade.h"
#include "measure/statistics.h"
#include "util/text.h"

namespace assay::report {

std::string points(double value) { return fmt::format("{:.1f}", shown(value)); }

std::string points_of(const Dimension& d) {
  return d.points ? fmt::format("{} of {}", points(*d.points), tenths(d.max)) : kNotRun;
}

std::string with_interval(double value, Interval i) {
  if (points(i.low) == points(i.high)) return points(value);
  return fmt::format("{} ({} to {})", points(value), points(i.low), points(i.high));
}

std::string total(const Score& s) {
  return s.total ? with_interval(*s.total, s.interval) : kNotRun;
}

std::string grade_and_total(const Score& s) {
  return s.total ? fmt::format("{} {}", s.letter, points(*s.total)) : kNotRun;
}

std::string verdict(Verdict v) { return fmt::format("{} ({})", code(v), description(v)); }

std::string short_verdict(Verdict v) { return v == Verdict::harness_error ? verdict(v) : code(v); }

std::string one_line(std::string untrusted, std::size_t columns) {
  std::replace(untrusted.begin(), untrusted.end(), '\n', ' ');
  return printable(untrusted, 1, columns);
}

std::string with_device(const std::string& name, const CellKey& key) {
  return key.device == Device::cpu ? name : fmt::format("{} ({})", name, to_string(key.device));
}

std::string dollars(double amount) {
  constexpr double kCent = 0.01, kWhole = 100;
  return fmt::format("${:.{}f}", amount, amount < kCent ? 4 : amount < kWhole ? 2 : 0);
}

namespace {

std::string joined_facts(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() || part.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace

std::string model_facts(const ModelInfo& about) {
  const std::string inner =
      joined_facts({about.provider, about.parameters, about.quantisation, about.harness});
  std::string text = about.name;
  if (!inner.empty()) text += text.empty() ? inner : " (" + inner + ")";
  text = joined_facts({text, about.date, about.link});
  if (about.sample) text += (text.empty() ? "" : "; ") + std::string("a reference, not a model");
  return one_line(text);
}

std::string attempt_facts(const AttemptRecord& a) {
  std::vector<std::string> parts;
  const auto counted = [&](const std::optional<std::int64_t>& n, const char* what) {
    if (n) parts.push_back(fmt::format("{} {}", *n, what));
  };
  counted(a.turns, a.turns == 1 ? "turn" : "turns");
  counted(a.tokens_in, "tokens in");
  counted(a.tokens_out, "tokens out");
  if (a.seconds) parts.push_back(fmt::format("{:.1f} s", *a.seconds));
  if (a.cost_usd) parts.push_back(dollars(*a.cost_usd));
  if (!a.finish_reason.empty()) parts.push_back("finished by " + a.finish_reason);
  if (a.hints) parts.emplace_back(*a.hints ? "with hints" : "without hints");
  constexpr std::size_t kShownDigits = 12;
  if (!a.prompt_sha256.empty()) {
    parts.push_back(fmt::format("prompt {}{}", a.prompt_sha256.substr(0, kShownDigits),
                                a.prompt_hints.value_or(false) ? " with hints on technique" : ""));
  }
  if (!a.command.empty()) {
    parts.push_back("asked by " + a.command + (a.version.empty() ? "" : " (" + a.version + ")"));
  }
  if (!a.date.empty()) parts.push_back(a.date);
  return one_line(joined_facts(parts));
}

const Dimension* dimension(const Score& s, const std::string& name) {
  const auto it = std::find_if(s.dimensions.begin(), s.dimensions.end(),
                               [&](const Dimension& d) { return d.name == name; });
  return it == s.dimensions.end() ? nullptr : &*it;
}

std::string dimension_points(const Score& s, const std::string& name) {
  const Dimension* d = dimension(s, name);
  if (d == nullptr) return "not graded";
  return points_of(*d);
}

std::optional<ShapeSpeed> overall_speed(const Score& s) {
  if (s.speeds.empty()) return std::nullopt;
  std::vector<double> ratio, low, high, naive;
  for (const ShapeSpeed& p : s.speeds) {
    ratio.push_back(p.ratio_to_par);
    low.push_back(p.ratio_interval.low);
    high.push_back(p.ratio_interval.high);
    naive.push_back(p.ratio_to_naive);
  }
  return ShapeSpeed{.case_name = "",
                    .ratio_to_par = geometric_mean(ratio),
                    .ratio_interval = {geometric_mean(low), geometric_mean(high)},
                    .ratio_to_naive = geometric_mean(naive)};
}

std::string speed_against_par(const Score& s) {
  const Dimension* d = dimension(s, "performance");
  if (d == nullptr) return "not graded";
  if (!d->points) return kNotRun;
  const auto speed = overall_speed(s);
  if (!speed) return "failed";
  if (!s.modelled_on.empty()) {
    // Without an expert kernel the floor takes par's place.
    const bool has_par = std::ranges::any_of(s.speeds, [](const ShapeSpeed& p) {
      return p.ratio_to_floor > 0 && p.ratio_to_par != p.ratio_to_floor;
    });
    return fmt::format("{:.3g}x {}", speed->ratio_to_par, has_par ? "modelled" : "of the floor");
  }
  return fmt::format("{:.2f}x ({:.2f} to {:.2f})", speed->ratio_to_par, speed->ratio_interval.low,
                     speed->ratio_interval.high);
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

std::string indented(const std::string& text, std::size_t columns) {
  const std::string margin(columns, ' ');
  std::string out = margin;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += margin;
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == '\n')) out.pop_back();
  return out + '\n';
}

}  // namespace assay::report
