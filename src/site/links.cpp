#include "site/links.h"

#include <fmt/format.h>

#include <filesystem>

#include "site/html.h"
#include "store/cell_path.h"

namespace assay::site {
namespace {

// The first component of any evidence path of a model is its name, made safe.
std::string safe_name(const std::string& name) {
  const std::string path = store::cell_path({name, "x", "", Device::cpu});
  return path.substr(0, path.find('/'));
}

}  // namespace

std::string cell_page(const CellKey& key) {
  std::string path = "cells/" + store::cell_path(key);
  path.replace(path.size() - 5, 5, ".html");  // ".json"
  return path;
}

std::string model_page(const std::string& model) {
  return fmt::format("models/{}.html", safe_name(model));
}

std::string challenge_page(const std::string& challenge, Device device) {
  return fmt::format("challenges/{}.{}.html", safe_name(challenge), to_string(device));
}

std::string pair_page(const std::string& a, const std::string& b) {
  return fmt::format("pairs/{}/{}.html", safe_name(a), safe_name(b));
}

std::string ranking_page(std::size_t number) {
  return number <= 1 ? kIndexPage : fmt::format("ranking-{}.html", number);
}

std::string link(const std::string& from, const std::string& to) {
  const auto folder = std::filesystem::path(from).parent_path();
  return href(std::filesystem::path(to).lexically_relative(folder.empty() ? "." : folder).string());
}

}  // namespace assay::site
