// The board in the form that pages about several cells need.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"
#include "compare/showings.h"
#include "report/standings.h"
#include "site/cell_view.h"

namespace assay::site {

// The figures of attempts that a reader may choose from; the first is the default.
inline constexpr std::array kFigures{compare::By::mean, compare::By::best, compare::By::first};

struct DeviceView {
  Device device = Device::cpu;
  std::vector<report::Standings> by;  // one for each of kFigures
  compare::Showings showings;         // by the first of kFigures

  const report::Standings& shown() const { return by.front(); }
  // The same model in the standings by another figure.
  const report::Standing& standing(std::size_t figure, const std::string& model) const {
    return by[figure].models[place(figure, model)];
  }
  // Counted from 0. Throws Error for a model that has no answer on the device.
  std::size_t place(std::size_t figure, const std::string& model) const;
};

// Two models that a page compares; the better comes first.
struct ModelPair {
  std::string a, b;
  bool operator==(const ModelPair&) const = default;
};

struct SiteView {
  const Scoreboard* board = nullptr;
  std::vector<DeviceView> devices;
  std::vector<ModelPair> pairs;  // pairs that matter on some device
  std::map<CellKey, CellFacts> facts;
  std::string stale;  // stale_text() of the board

  const ModelInfo& about(const std::string& model) const;  // empty if nothing is said
  const CellFacts& facts_of(const BoardRow&) const;        // empty if there are none
};

// Board and specs must outlive it. The code that reads the evidence adds its facts.
SiteView make_site_view(const Scoreboard&, const std::vector<ChallengeSpec>&);

}  // namespace assay::site
