// What all pages have: the head with its content security policy, the way back, the foot.
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

// SHA-256 in base64, as a content security policy names a script.
std::string policy_hash(std::string_view script);

struct Frame {
  std::string path;   // of the page, see links.h
  std::string title;  // untrusted
  // From the index down to this page's parent: untrusted names, paths of pages.
  std::vector<std::pair<std::string, std::string>> above;
  // Whether the script is part of it, to sort and filter tables. Pages without may run none at all.
  bool scripted = false;
};

// A whole document. `main` begins with its <h1>.
std::string document(const Frame&, const Html& main);

}  // namespace assay::site
