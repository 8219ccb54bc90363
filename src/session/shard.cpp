#include "session/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "assay/error.h"
#include "util/text.h"

namespace assay::session {
namespace {

// The whole text as a number, or 0.
std::size_t number_in(std::string_view text) {
  std::size_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace

Shard shard_from(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const Shard shard{number_in(text.substr(0, slash)),
                    slash < text.size() ? number_in(text.substr(slash + 1)) : 0};
  if (shard.index == 0 || shard.index > shard.count) {
    throw Error(fmt::format("'{}' names no shard: write I/N, the I-th of N from 1 on, such as 2/8",
                            printable(text, 1)));
  }
  return shard;
}

std::string to_string(const Shard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

std::vector<Submission> submissions_of(const Shard& shard, std::vector<Submission> submissions,
                                       const std::function<double(const Submission&)>& cost) {
  struct Priced {
    double cost;
    CellKey key;
  };
  std::vector<Priced> all;
  for (const Submission& s : submissions) all.push_back({cost(s), key_of(s)});
  std::ranges::sort(all, [](const Priced& a, const Priced& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.key < b.key;
  });
  std::vector<double> load(shard.count);
  std::set<CellKey> mine;
  for (const Priced& next : all) {
    const auto least = std::ranges::min_element(load);
    *least += next.cost;
    if (least == load.begin() + static_cast<std::ptrdiff_t>(shard.index) - 1) mine.insert(next.key);
  }
  std::erase_if(submissions, [&](const Submission& s) { return !mine.contains(key_of(s)); });
  return submissions;
}

}  // namespace assay::session
