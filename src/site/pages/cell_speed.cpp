// The speed sections of a cell's page: samples, rooflines, the simulator's counts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "grade/gpu.h"
#include "measure/statistics.h"
#include "records/floor.h"
#include "records/lookup.h"
#include "records/share_of_floor.h"
#include "records/simulated_work.h"
#include "report/figures.h"
#include "site/pages/cell_page.h"
#include "site/pages/words.h"
#include "site/svg_chart.h"
#include "site/tables.h"

namespace assay::site {
namespace {

constexpr int kNaiveSeries = 5, kParSeries = 2, kThisSeries = 0;

const ShapeSpeed* speed_of(const CellView& v, const std::string& case_name) {
  const auto at = std::ranges::find(v.row->score.speeds, case_name, &ShapeSpeed::case_name);
  return at == v.row->score.speeds.end() ? nullptr : &*at;
}

const Gpu* gpu_of(const CellView& v) {
  for (const std::string& name : gpu_names()) {
    if (gpu_named(name).name == v.row->score.modelled_on) return &gpu_named(name);
  }
  return nullptr;
}

struct TimeUnit {
  const char* name;
  double per_second;
};
TimeUnit unit_for(double seconds) {
  return seconds < 1e-3 ? TimeUnit{" us", 1e6}
         : seconds < 1  ? TimeUnit{" ms", 1e3}
                        : TimeUnit{" s", 1};
}

// One implementation in one timed case.
struct Timed {
  const char* name;
  std::vector<double> seconds;  // samples; for a modelled time, one
  int series;
};

std::vector<double> samples_of(const CaseResult& r, std::optional<double> TimingSample::*which) {
  std::vector<double> seconds;
  for (const TimingSample& s : r.samples) {
    if (s.*which && *(s.*which) > 0) seconds.push_back(*(s.*which));
  }
  return seconds;
}

std::vector<Timed> measured_times(const CaseResult& r) {
  return {{"naive", samples_of(r, &TimingSample::naive), kNaiveSeries},
          {"par", samples_of(r, &TimingSample::par), kParSeries},
          {"this", samples_of(r, &TimingSample::submission), kThisSeries}};
}

std::vector<Timed> modelled_times(const CaseResult& r, const Gpu& g) {
  const auto time = [&](const char* prefix) {
    const auto work = simulated_work(r.metrics, prefix);
    return work ? std::vector<double>{modelled_time(*work, g).total()} : std::vector<double>{};
  };
  const auto least = least_work(r.metrics);
  return {{"naive", time(kNaivePrefix), kNaiveSeries},
          {"par", time(kParPrefix), kParSeries},
          {"floor", least ? std::vector<double>{floor_time(*least, g)} : std::vector<double>{}, 3},
          {"this", time(""), kThisSeries}};
}

std::string spread_text(const std::vector<double>& seconds) {
  if (seconds.size() < 2) return "";
  return fmt::format("{} to {}", report::duration(quantile(seconds, 0.25)),
                     report::duration(quantile(seconds, 0.75)));
}

void add_timed_case(Html& html, const CellView& v, const CaseResult& r,
                    const std::vector<Timed>& all) {
  double low = 0, high = 0;
  for (const Timed& t : all) {
    for (const double s : t.seconds) {
      low = low == 0 ? s : std::min(low, s);
      high = std::max(high, s);
    }
  }
  if (high <= 0) return;
  const ChartAxis axis = fine_log_axis(low, high);
  const TimeUnit unit = unit_for(high);
  html.raw("<h3>").text(r.name).raw(" <small>").text(clipped(r.shape, 200)).raw("</small></h3>");
  const bool modelled = v.row->key.device == Device::sim;
  if (const ShapeSpeed* s = speed_of(v, r.name)) {
    const std::string interval =
        modelled
            ? ""
            : fmt::format(" ({:.3g} to {:.3g})", s->ratio_interval.low, s->ratio_interval.high);
    html.raw("<p>").text(
        fmt::format("{}{:.3g} times as fast as {}{}, {:.3g} times naive: {:.0f} % of the "
                    "points.",
                    modelled ? "Modelled: " : "", modelled ? share_of_floor(*s) : s->ratio_to_par,
                    modelled ? "the floor" : "par", interval, s->ratio_to_naive, 100 * s->points));
  }
  std::vector<Column> head{{"implementation"},
                           {"", Column::Kind::plain, strip_axis(axis, unit.name, unit.per_second)},
                           {modelled ? "modelled" : "median", Column::Kind::right}};
  if (!modelled) {
    head.push_back({"middle half", Column::Kind::right});
    head.push_back({"runs", Column::Kind::right});
  }
  begin_table(html, "Times of " + r.name, head);
  for (const Timed& t : all) {
    if (t.seconds.empty()) continue;
    html.raw("<tr><th scope=row>").text(t.name);
    html.raw("<td class=g>")
        .add(dot_strip(axis, t.seconds, t.series, v.brief ? kFewDots : kMostDots));
    number_cell(html, report::duration(median(t.seconds)));
    if (modelled) continue;
    number_cell(html, spread_text(t.seconds));
    number_cell(html, std::to_string(t.seconds.size()));
  }
  end_table(html);
}

// --- rooflines -------------------------------------------------------------------------------

// The most that a machine or a GPU can do.
struct Roof {
  double bytes_per_s = 0, flops = 0;
  std::string name;
};

struct Work {
  const CaseResult* result;
  LeastWork least;
  double seconds;
};

std::optional<Roof> roof_of_real_gpu(const CellResult& cell) {
  for (const CaseResult& r : cell.cases) {
    const double *bytes = find_metric(r.metrics, kRoofBytes),
                 *flops = find_metric(r.metrics, kRoofFlops);
    if (bytes != nullptr && flops != nullptr && *bytes > 0 && *flops > 0)
      return Roof{*bytes, *flops, "copies as measured with it, arithmetic by the data sheet"};
  }
  return std::nullopt;
}

std::optional<Roof> roof_of(const CellView& v) {
  if (v.row->key.device == Device::sim) {
    const Gpu* g = gpu_of(v);
    if (g == nullptr) return std::nullopt;
    return Roof{g->memory_bytes_per_s, g->fastest_flops(),
                fmt::format("the data sheet of {}", g->name)};
  }
  const Machine& m = v.row->machine;
  if (v.row->key.device == Device::cuda) return roof_of_real_gpu(*v.evidence);
  if (m.copy_bytes_per_s <= 0 || m.fma_flops_per_s <= 0) return std::nullopt;
  return Roof{m.copy_bytes_per_s, m.fma_flops_per_s, "what the machine did when the run began"};
}

std::optional<LeastWork> least_of(const CellView& v, const CaseResult& r) {
  if (v.row->key.device != Device::cpu) return least_work(r.metrics);
  if (v.least == nullptr || v.row->spec_hash != v.spec->hash) return std::nullopt;
  const auto at = v.least->find({v.row->key.challenge, r.name});
  return at == v.least->end() ? std::nullopt : std::optional(at->second);
}

std::vector<Work> works_of(const CellView& v) {
  std::vector<Work> all;
  const Gpu* g = gpu_of(v);
  for (const CaseResult& r : v.evidence->cases) {
    if (r.group != CaseGroup::timed || r.verdict != Verdict::ok) continue;
    const auto least = least_of(v, r);
    if (!least) continue;
    double seconds = 0;
    if (v.row->key.device == Device::sim) {
      const auto work = g == nullptr ? std::nullopt : simulated_work(r.metrics);
      if (work) seconds = modelled_time(*work, *g).total();
    } else if (const auto samples = samples_of(r, &TimingSample::submission); !samples.empty()) {
      seconds = median(samples);
    }
    if (seconds > 0) all.push_back({&r, *least, seconds});
  }
  return all;
}

void add_roofline_chart(Html& html, const Roof& roof, const std::vector<Work>& works) {
  Plot plot;
  double low = roof.flops / roof.bytes_per_s, high = low, slowest = roof.flops;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const Work& w = works[i];
    if (w.least.flops <= 0 || w.least.bytes <= 0) continue;
    const double intensity = w.least.flops / w.least.bytes, rate = w.least.flops / w.seconds;
    low = std::min(low, intensity);
    high = std::max(high, intensity);
    slowest = std::min(slowest, rate);
    plot.points.push_back({intensity, 1e-9 * rate, kThisSeries, std::to_string(i + 1),
                           fmt::format("{}: {:.3g} flop/byte, {:.3g} Gflop/s", w.result->name,
                                       intensity, 1e-9 * rate)});
  }
  if (plot.points.empty()) return;
  plot.id = "roofline";
  plot.title = "Roofline.";
  plot.description =
      fmt::format("The line is {}: {:.3g} GB/s, {:.3g} Gflop/s. Numbers are those of the table.",
                  roof.name, 1e-9 * roof.bytes_per_s, 1e-9 * roof.flops);
  plot.x_label = "least flop per least byte";
  plot.y_label = "Gflop/s";
  plot.x = log_axis(low / 2, high * 2);
  plot.y = log_axis(1e-9 * slowest / 2, 1e-9 * roof.flops * 1.1);
  Line line{"roof", {}, false, 7};
  const double ridge = roof.flops / roof.bytes_per_s;
  // Where the slanted part enters the chart.
  const double left = std::max(plot.x.low, 1e9 * plot.y.low / roof.bytes_per_s);
  line.points = {{left, 1e-9 * left * roof.bytes_per_s},
                 {ridge, 1e-9 * roof.flops},
                 {plot.x.high, 1e-9 * roof.flops}};
  plot.lines.push_back(line);
  html.add(line_chart(plot));
}

// --- counters --------------------------------------------------------------------------------

struct CounterColumn {
  const char* title;
  std::function<std::string(const SimulatedWork&)> text;
};

std::string megabytes(double bytes) { return fmt::format("{:.2f}", bytes * 1e-6); }

}  // namespace

Html timings_section(const CellView& v) {
  Html body;
  const Gpu* g = gpu_of(v);
  for (const CaseResult& r : v.evidence->cases) {
    if (r.group != CaseGroup::timed) continue;
    if (v.row->key.device != Device::sim) {
      add_timed_case(body, v, r, measured_times(r));
    } else if (g != nullptr && speed_of(v, r.name) != nullptr) {
      add_timed_case(body, v, r, modelled_times(r, *g));
    }
  }
  Html html;
  if (body.empty()) return html;
  html.raw("<section><h2>").text(g == nullptr ? "Timings" : "Times, modelled on " + g->name);
  html.raw("</h2><p class=note>");
  if (g == nullptr) {
    html.text(
        fmt::format("Each run a dot, on a log scale; the tick is the median. Of more than {} "
                    "runs that many quantiles are shown.",
                    v.brief ? kFewDots : kMostDots));
  } else {
    html.raw("From exact counts by a model of the GPU, never measured; on a log scale.");
  }
  html.raw("</p>").add(body).raw("</section>\n");
  return html;
}

Html roofline_section(const CellView& v) {
  Html html;
  const auto roof = roof_of(v);
  const std::vector<Work> works = works_of(v);
  if (!roof || works.empty()) return html;
  const bool modelled = v.row->key.device == Device::sim;
  html.raw("<section><h2>").text(modelled ? "Roofline, modelled" : "Roofline");
  html.raw(
      "</h2><p class=note>What must be moved and multiplied at least, over the time that it "
      "took. Flops are those of matrix products.</p>");
  add_roofline_chart(html, *roof, works);
  begin_table(html, "Roofline",
              {{"no.", Column::Kind::right},
               {"timed case"},
               {"least MB", Column::Kind::right},
               {"least Mflop", Column::Kind::right},
               {"time", Column::Kind::right},
               {"GB/s", Column::Kind::right},
               {"of roof", Column::Kind::right},
               {"Gflop/s", Column::Kind::right},
               {"of roof", Column::Kind::right}});
  for (std::size_t i = 0; i < works.size(); ++i) {
    const Work& w = works[i];
    const double bytes = w.least.bytes / w.seconds, flops = w.least.flops / w.seconds;
    html.raw("<tr>");
    number_cell(html, std::to_string(i + 1));
    cell(html, w.result->name);
    number_cell(html, fmt::format("{:.4g}", 1e-6 * w.least.bytes));
    number_cell(html, w.least.flops > 0 ? fmt::format("{:.4g}", 1e-6 * w.least.flops) : "none");
    number_cell(html, report::duration(w.seconds));
    number_cell(html, fmt::format("{:.3g}", 1e-9 * bytes));
    number_cell(html, fmt::format("{:.2g} %", 100 * bytes / roof->bytes_per_s));
    number_cell(html, w.least.flops > 0 ? fmt::format("{:.3g}", 1e-9 * flops) : "");
    number_cell(html, w.least.flops > 0 ? fmt::format("{:.2g} %", 100 * flops / roof->flops) : "");
  }
  end_table(html);
  html.raw("</section>\n");
  return html;
}

Html counters_section(const CellView& v) {
  Html html;
  if (v.row->key.device != Device::sim) return html;
  const Gpu* g = gpu_of(v);
  const CounterColumn columns[] = {
      {"bound by",
       [&](const SimulatedWork& w) {
         return std::string(g == nullptr ? "" : modelled_time(w, *g).bound());
       }},
      {"MB moved", [](const SimulatedWork& w) { return megabytes(bytes_moved(w.counters)); }},
      {"warp instructions",
       [](const SimulatedWork& w) { return std::to_string(w.counters.instructions); }},
      {"lanes active",
       [](const SimulatedWork& w) {
         return fmt::format("{:.0f} %", 100 * w.counters.divergence_efficiency());
       }},
      {"shared replays",
       [](const SimulatedWork& w) { return std::to_string(w.counters.shared_replays); }},
      {"local MB",
       [](const SimulatedWork& w) {
         return megabytes(
             static_cast<double>(w.counters.local_load_bytes + w.counters.local_store_bytes));
       }},
      {"atomics", [](const SimulatedWork& w) { return std::to_string(w.counters.global_atomics); }},
      {"barriers", [](const SimulatedWork& w) { return std::to_string(w.counters.barriers); }},
      {"blocks", [](const SimulatedWork& w) { return std::to_string(w.counters.blocks); }},
      {"launches", [](const SimulatedWork& w) { return std::to_string(w.counters.launches); }},
      {"transfers", [](const SimulatedWork& w) { return std::to_string(w.transfers); }}};
  std::vector<Column> head{{"timed case"}};
  for (const CounterColumn& c : columns) head.push_back({c.title, Column::Kind::right});
  Html rows;
  for (const CaseResult& r : v.evidence->cases) {
    const auto work = r.group == CaseGroup::timed ? simulated_work(r.metrics) : std::nullopt;
    if (!work) continue;
    rows.raw("<tr><td>").text(r.name);
    for (const CounterColumn& c : columns) number_cell(rows, c.text(*work));
  }
  if (rows.empty()) return html;
  html.raw("<section><h2>Counted by the simulator</h2>");
  begin_table(html, "Counted by the simulator", head);
  html.add(rows);
  end_table(html);
  html.raw("</section>\n");
  return html;
}

Html learning_section(const CellView& v) {
  Html html;
  const std::vector<Learned> all = learned(*v.evidence);
  if (all.empty()) return html;
  const ChartAxis axis = linear_axis(0, 1);
  std::vector<std::string> kinds, trainings;
  for (const Learned& l : all) {
    if (std::ranges::find(kinds, l.kind) == kinds.end()) kinds.push_back(l.kind);
    if (std::ranges::find(trainings, l.case_name) == trainings.end())
      trainings.push_back(l.case_name);
  }
  html.raw(
      "<section><h2>What the trainings learned</h2><p class=note>Loss on held-out text, as the "
      "share of the way from a model that counts pairs (0) to the least possible (1). Each "
      "training a ring; the tick earns full points.</p>");
  begin_table(html, "What the trainings learned",
              {{"kind"},
               {"", Column::Kind::plain, strip_axis(axis)},
               {"median", Column::Kind::right},
               {"each training"}});
  for (const std::string& kind : kinds) {
    std::vector<Mark> marks;
    if (const auto full = asked_closure(*v.spec, kind))
      marks.push_back({Mark::Shape::tick, *full, 0, 7});
    std::vector<double> values;
    std::string each;
    for (const Learned& l : all) {
      if (l.kind != kind) continue;
      marks.push_back({Mark::Shape::ring, l.closure, 0, kThisSeries, l.case_name});
      values.push_back(l.closure);
      each += fmt::format("{}{} {:.3f}", each.empty() ? "" : ", ", l.case_name, l.closure);
    }
    html.raw("<tr><th scope=row>").text(kind).raw("<td class=g>").add(strip(axis, marks));
    number_cell(html, fmt::format("{:.3f}", middle_of(values)));
    cell(html, each);
  }
  end_table(html);
  html.raw("</section>\n");
  return html;
}

}  // namespace assay::site
