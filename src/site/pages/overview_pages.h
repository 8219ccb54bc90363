// Pages about several cells: rankings, a model, a challenge, two models.
#pragma once

#include <cstddef>
#include <string>

#include "site/html.h"
#include "site/site_view.h"

namespace assay::site {

// Models on one page of the rankings, which keeps the page below 1 MB.
inline constexpr std::size_t kModelsPerPage = 100;

// The rankings, with kModelsPerPage models of each device per page. Page 1 is the index.
std::size_t ranking_pages(const SiteView&);
std::string ranking_document(const SiteView&, std::size_t page);

// Every model, by name.
std::string models_document(const SiteView&);
std::string model_document(const SiteView&, const std::string& model);
// A <section> of links to the pages of pairs, of all or of one model's; empty if there are none.
Html pair_links(const SiteView&, Literal title, const std::string& from,
                const std::string& model = "");
std::string pair_document(const SiteView&, const ModelPair&);

std::string challenge_document(const SiteView&, const DeviceView&, std::size_t challenge);

}  // namespace assay::site
