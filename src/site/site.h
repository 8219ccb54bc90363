// Renders a board and its evidence as a static site: HTML and SVG that need neither a network nor a
// server. The same board, evidence and submissions give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "assay/results.h"
#include "site/cell_view.h"

namespace assay::site {

// kSourceBytes is the total of source bytes shown, shared out among the cells, with
// kMostSourceBytesOfCell as the maximum and kLeastSourceBytesOfCell as the minimum per cell. The
// pages say what is cut. This keeps the site of a board of 10,000 cells small enough to pass on.
inline constexpr std::size_t kSourceBytes = 10'000'000, kMostSourceBytesOfCell = 200'000,
                             kLeastSourceBytesOfCell = 1'000;
// With more cells than this, their pages list passed cases by name only, and show fewer samples.
inline constexpr std::size_t kMostDetailedCells = 2'000;

struct SiteInputs {
  const Scoreboard* board = nullptr;
  const std::vector<ChallengeSpec>* specs = nullptr;
  std::filesystem::path results;      // holds the evidence
  std::filesystem::path submissions;  // searched for sources; "" or missing: none are shown
  LeastWorks least;
  std::size_t jobs = 1;
  // Called when `done` of all cells are done, on any thread.
  std::function<void(std::size_t done, std::size_t all)> progress = [](std::size_t, std::size_t) {};
};

struct SiteReport {
  std::size_t pages = 0;
  std::uintmax_t bytes = 0;
  std::size_t cells = 0;
  std::size_t without_evidence = 0, without_sources = 0;  // cells; their pages say why
  std::size_t unknown = 0;  // rows of challenges that are not among the specs, left out
};

// Writes the site as the folder `out`, replacing a site written before. It is built next to it, as
// `out`.tmp, and renamed when complete: a kill leaves the old site.
//
// Throws Error if `out` holds anything that is not such a site, if another process is writing it,
// or if there is no room. Stops between cells on a request to stop, see util/stop.h.
SiteReport write_site(const SiteInputs&, const std::filesystem::path& out);

}  // namespace assay::site
