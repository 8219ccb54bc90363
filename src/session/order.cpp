#include "session/order.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace assay::session {
namespace {

using Submissions = std::vector<const Submission*>;
using Seconds = std::function<double(const Submission&)>;

void shortest_to_the_front(Submissions& all, const Seconds& seconds) {
  const auto shortest =
      std::ranges::min_element(all, {}, [&](const Submission* s) { return seconds(*s); });
  if (shortest != all.end()) std::rotate(all.begin(), shortest, shortest + 1);
}

std::vector<Group> by_challenge(Submissions all) {
  const auto challenge = [](const Submission* s) { return std::string_view(s->challenge); };
  std::ranges::stable_sort(all, {}, challenge);
  std::vector<Group> groups;
  for (const Submission* s : all) {
    const bool fits = !groups.empty() && groups.back().size() < kMostTogether &&
                      challenge(groups.back().front()) == challenge(s);
    if (!fits) groups.emplace_back();
    groups.back().push_back(s);
  }
  return groups;
}

std::vector<std::vector<Group>> in_batches(std::vector<Group> groups, std::size_t jobs) {
  const std::size_t enough = 4 * std::max<std::size_t>(jobs, 1);
  std::vector<std::vector<Group>> batches;
  std::size_t in_batch = enough;
  for (Group& group : groups) {
    if (in_batch >= enough) {
      batches.emplace_back();
      in_batch = 0;
    }
    in_batch += group.size();
    batches.back().push_back(std::move(group));
  }
  return batches;
}

}  // namespace

Order plan_order(const std::vector<Submission>& submissions, std::size_t jobs,
                 const Seconds& seconds) {
  Order order;
  Submissions timed;
  for (const Submission& s : submissions) {
    (s.device() == Device::sim ? order.simulated : timed).push_back(&s);
  }
  std::ranges::stable_sort(order.simulated, std::greater<>(),
                           [&](const Submission* s) { return seconds(*s); });
  if (timed.empty()) {
    shortest_to_the_front(order.simulated, seconds);
    return order;
  }
  shortest_to_the_front(timed, seconds);
  order.first = timed.front();
  timed.erase(timed.begin());
  order.batches = in_batches(by_challenge(std::move(timed)), jobs);
  return order;
}

}  // namespace assay::session
