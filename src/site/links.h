// Paths of a site's pages, and links between them.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay::site {

inline constexpr const char *kIndexPage = "index.html", *kStyleFile = "site.css",
                            *kModelsPage = "models.html";

// Paths below the site's folder. Names of models and attempts come from other people's folders and
// boards. Whatever they are, the path stays below the folder, and no two pages share one. See
// store/cell_path.h.
std::string cell_page(const CellKey&);                              // "cells/m/c/2.sim.html"
std::string model_page(const std::string& model);                   // "models/m.html"
std::string challenge_page(const std::string&, Device);             // "challenges/c.cpu.html"
std::string pair_page(const std::string& a, const std::string& b);  // "pairs/a/b.html"
std::string ranking_page(std::size_t number);  // "index.html", "ranking-2.html", ...

// The link from one page to another, both below the site's folder, percent-encoded.
std::string link(const std::string& from, const std::string& to);

}  // namespace assay::site
