// What all pages share: the head with its content security policy, the links back, the foot.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "site/html.h"

namespace assay::site {

// The embedded files.
std::string_view style_sheet();
std::string_view script();

// SHA-256 in base64, in the form that a content security policy uses for a script.
std::string policy_hash(std::string_view script);

struct Frame {
  std::string path;   // of the page, see links.h
  std::string title;  // untrusted
  // From the index down to this page's parent: untrusted names, paths of pages.
  std::vector<std::pair<std::string, std::string>> above;
  // Whether the page contains the script, to sort and filter tables. Other pages may run no script
  // at all.
  bool scripted = false;
};

// A complete document. `main` begins with its <h1>.
std::string document(const Frame&, const Html& main);

}  // namespace assay::site
