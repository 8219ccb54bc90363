// Charts of models on a device: tables with a strip in each row.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compare/fast_p.h"
#include "measure/statistics.h"
#include "site/html.h"
#include "site/site_view.h"
#include "site/svg_chart.h"

namespace assay::site {

// A choice of models, in order, and the page that shows them.
struct Shown {
  const DeviceView* view = nullptr;
  std::vector<const report::Standing*> models;
  std::string path;  // of the page

  const compare::Field& field() const { return view->shown().field; }
};

// Adds a part that depends on the figure of attempts: once if it is the same for all figures, else
// once per figure, of which the page shows the chosen one.
void by_figure(Html&, const std::function<Html(std::size_t figure)>& part);

// Begins a <tr> that the filters know, headed by the model's name and link.
void begin_model_row(Html&, const Shown&, const std::string& model);

// Points by dimension, stacked; each dimension has a column too.
struct DimensionRow {
  std::string name, link, model;  // `model` for the filters, or ""
  std::vector<std::pair<std::string, std::optional<double>>> points;
  std::optional<double> total;
};
Html dimension_table(std::string_view first_column, const std::vector<DimensionRow>&);

// Each is a <section>, empty if there is nothing to show.
Html dimension_chart(const Shown&);
Html speed_chart(const Shown&);  // relative to par, on the simulator to the floor
Html fast_p_chart(const Shown&);
Html pass_at_k_chart(const Shown&);
Html cost_chart(const Shown&);  // score against cost, for models whose cost is known

// The reference that a device's speeds are relative to: par, on the simulator the floor.
compare::Reference reference_of(Device);
std::string interval_text(const Estimate&, int decimals);

// One row of a chart of speeds. The strips' common axis spans all rows.
struct SpeedRow {
  Estimate speed;               // relative to the reference
  std::optional<double> naive;  // speed of naive, likewise
};
ChartAxis speed_axis(std::span<const SpeedRow>);
Html speed_strip(const ChartAxis&, const SpeedRow&);
Html speed_legend(Device);

}  // namespace assay::site
