// A board and its evidence as a static site: HTML and SVG that need neither a network nor a server.
// The same board, evidence and submissions give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "assay/results.h"
#include "site/cell_view.h"

namespace assay::site {

// Of sources that many bytes are shown in all, shared out among the cells; but of a cell no more
// than kMostSourceBytesOfCell and no less than kLeastSourceBytesOfCell. What is cut is said. So a
// board of 10,000 cells stays within what can be handed on.
inline constexpr std::size_t kSourceBytes = 10'000'000, kMostSourceBytesOfCell = 200'000,
                             kLeastSourceBytesOfCell = 1'000;
// With more cells than this their pages list the cases that passed by name, and show fewer samples.
inline constexpr std::size_t kMostDetailedCells = 2'000;

struct SiteInputs {
  const Scoreboard* board = nullptr;
  const std::vector<ChallengeSpec>* specs = nullptr;
  std::filesystem::path results;      // where the evidence lies
  std::filesystem::path submissions;  // where sources are looked for; "" or missing: none are shown
  LeastWorks least;
  std::size_t jobs = 1;
  // Called when so many of all cells are done, on any thread.
  std::function<void(std::size_t done, std::size_t all)> progress = [](std::size_t, std::size_t) {};
};

struct SiteReport {
  std::size_t pages = 0;
  std::uintmax_t bytes = 0;
  std::size_t cells = 0;
  std::size_t without_evidence = 0, without_sources = 0;  // cells, whose pages say why
  std::size_t unknown = 0;  // rows of challenges that are not among the specs: left out
};

// Writes the site as the folder `out`, in the place of one that was written before. It is made
// beside it, as `out`.tmp, and takes its name when it is whole: a kill leaves the old site.
//
// Throws Error when `out` holds anything that is no such site, when another process is writing it,
// or when there is no room. Stops between cells when the end is asked for, see util/stop.h.
SiteReport write_site(const SiteInputs&, const std::filesystem::path& out);

}  // namespace assay::site
