// How a call is split into tasks, and which of their results are to be merged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "task.h"

namespace {

constexpr std::int64_t kTasksPerThread = 16;
constexpr std::int64_t kLeastTiles = 16;  // of a part

// Rows whose parts are to be merged: of tasks of their own, and of tasks for a prefix that they
// share with others, among whose rows they begin at shared_row.
struct Merge {
  std::size_t first_task, tasks, first_shared = 0, shared_tasks = 0;
  std::int64_t shared_row = 0;
};

// Entries whose histories begin with the same pages, as forks have them.
struct Family {
  std::vector<std::int32_t> members;
  std::int64_t tiles = 0;  // in common, and seen by all rows of all members
  std::int64_t rows = 0;   // of a key head
};

struct Plan {
  std::vector<Task> tasks;
  std::vector<Merge> merges;
  std::vector<Family> families;
  std::int64_t partial_floats = 0;
  double work = 0;  // elements of keys times rows
};

// The tiles that some rows see, as one task.
Task whole_task(const Job& job, std::int32_t b, std::int32_t head, std::int64_t row,
                std::int64_t rows) {
  const kvc_config& c = job.c();
  Task t{b, head, row, rows, 0, 0, 0, 0, 0, nullptr};
  const std::int64_t last = job.highest(t, rows - 1), first = job.lowest(t, 0);
  t.length = last + 1;
  if (t.length <= 0) return t;
  const std::int64_t tiles = (t.length + kPage - 1) / kPage;
  const std::int64_t from =
      c.window > 0 ? std::max<std::int64_t>(0, first - c.window + 1) / kPage : 0;
  t.sinks = c.window > 0 ? std::min<std::int64_t>(from, (c.sinks + kPage - 1) / kPage) : 0;
  t.skipped = from - t.sinks;
  t.end = tiles - t.skipped;
  return t;
}

// Adds a task in parts; returns how many. A task in one part needs no merge of its own.
std::size_t split(Plan& plan, const Task& whole, std::int64_t tiles_per_part) {
  const std::int64_t tiles = whole.end - whole.begin;
  const std::int64_t parts =
      std::max<std::int64_t>(1, (tiles + tiles_per_part - 1) / tiles_per_part);
  for (std::int64_t p = 0; p < parts; ++p) {
    Task part = whole;
    part.begin = whole.begin + tiles * p / parts;
    part.end = whole.begin + tiles * (p + 1) / parts;
    plan.tasks.push_back(part);
  }
  return static_cast<std::size_t>(parts);
}

// Full pages that two histories begin with in common.
std::int64_t common_pages(const Layer& a, const Layer& b) {
  const auto most = std::min(a.pages.size(), b.pages.size());
  std::size_t n = 0;
  while (n < most && a.pages[n] == b.pages[n]) ++n;
  return static_cast<std::int64_t>(n);
}

std::vector<Family> find_families(const Job& job, std::int32_t n) {
  std::vector<Family> found;
  if (job.c().window > 0) return found;
  for (std::int32_t b = 0; b < n; ++b) {
    const Layer& mine = job.history(b);
    const std::int64_t rows = job.rows(b);
    // Every row sees the tiles before the first row's position.
    const std::int64_t seen = (job.prefix(b) + (job.parent == nullptr ? 1 : 0)) / kPage;
    if (rows == 0 || seen < kLeastTiles) continue;
    const auto family = std::find_if(found.begin(), found.end(), [&](const Family& f) {
      const std::int64_t common = common_pages(job.history(f.members[0]), mine);
      return f.rows + rows <= kTaskRows && std::min({f.tiles, common, seen}) >= kLeastTiles;
    });
    if (family == found.end()) {
      found.push_back({{b}, seen, rows});
      continue;
    }
    family->tiles =
        std::min({family->tiles, common_pages(job.history(family->members[0]), mine), seen});
    family->members.push_back(b);
    family->rows += rows;
  }
  std::erase_if(found, [](const Family& f) { return f.members.size() < 2; });
  return found;
}

// A plan under construction.
class Planner {
 public:
  Planner(const Job& job, std::int32_t n)
      : job_(job), n_(n), family_of_(static_cast<std::size_t>(n), -1) {
    plan_.families = find_families(job, n);
    for (std::size_t f = 0; f < plan_.families.size(); ++f) {
      for (const std::int32_t b : plan_.families[f].members)
        family_of_[static_cast<std::size_t>(b)] = static_cast<int>(f);
    }
  }

  Plan run() {
    std::vector<Task> shared, own;
    for (const Family& family : plan_.families) {
      for (std::int32_t head = 0; head < job_.c().n_kv; ++head)
        shared.push_back(shared_task(family, head));
    }
    for (std::int32_t b = 0; b < n_; ++b) add_own(own, b);
    std::int64_t tiles = 0;
    for (const auto* tasks : {&shared, &own}) {
      for (const Task& t : *tasks) {
        tiles += t.end - t.begin;
        plan_.work +=
            static_cast<double>((t.end - t.begin) * kPage * t.rows) * (job_.c().D + job_.c().Dv);
      }
    }
    per_part_ =
        std::max(kLeastTiles, tiles / (kTasksPerThread * std::max(1, job_.cache->ctx->nthreads)));
    for (const Task& t : shared) {
      shared_parts_.emplace_back(plan_.tasks.size(), 0);
      shared_parts_.back().second = split(plan_, t, per_part_);
    }
    for (const Task& t : own) place(t);
    return std::move(plan_);
  }

 private:
  // Tasks point at the members, whose vector moves with the plan but stays where it is on the heap.
  Task shared_task(const Family& family, std::int32_t head) const {
    Task t{family.members[0],    head,   0, family.rows, 0, 0, 0, family.tiles,
           family.tiles * kPage, nullptr};
    t.members = &family.members;
    return t;
  }

  const Family* family_of(std::int32_t b) const {
    const int f = family_of_[static_cast<std::size_t>(b)];
    return f < 0 ? nullptr : &plan_.families[static_cast<std::size_t>(f)];
  }

  void add_own(std::vector<Task>& own, std::int32_t b) const {
    const Family* family = family_of(b);
    const std::int64_t rows = job_.rows(b);
    for (std::int32_t head = 0; head < job_.c().n_kv; ++head) {
      for (std::int64_t row = 0; row < rows; row += kTaskRows) {
        own.push_back(whole_task(job_, b, head, row, std::min(kTaskRows, rows - row)));
        if (family != nullptr) own.back().begin = family->tiles;
      }
    }
  }

  void place(const Task& t) {
    Merge merge{plan_.tasks.size(), 0};
    merge.tasks = split(plan_, t, per_part_);
    if (const Family* family = family_of(t.entry); family != nullptr) {
      const auto f = static_cast<std::size_t>(family - plan_.families.data());
      const auto parts = shared_parts_[f * static_cast<std::size_t>(job_.c().n_kv) +
                                       static_cast<std::size_t>(t.head)];
      merge.first_shared = parts.first;
      merge.shared_tasks = parts.second;
      for (const std::int32_t b : family->members) {
        if (b == t.entry) break;
        merge.shared_row += job_.rows(b);
      }
    }
    if (merge.tasks + merge.shared_tasks > 1) plan_.merges.push_back(merge);
  }

  const Job& job_;
  std::int32_t n_;
  std::vector<int> family_of_;
  std::vector<std::pair<std::size_t, std::size_t>> shared_parts_;  // first task and tasks
  std::int64_t per_part_ = 0;
  Plan plan_;
};

// Which tasks hand their rows to a merge, and the room that they need for it.
void mark_partials(Plan& plan, std::int64_t row_floats, float* room) {
  std::vector<bool> merged(plan.tasks.size());
  for (const Merge& m : plan.merges) {
    for (std::size_t i = 0; i < m.tasks; ++i) merged[m.first_task + i] = true;
    for (std::size_t i = 0; i < m.shared_tasks; ++i) merged[m.first_shared + i] = true;
  }
  plan.partial_floats = 0;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (!merged[i]) continue;
    if (room != nullptr) plan.tasks[i].partial = room + plan.partial_floats;
    plan.partial_floats += plan.tasks[i].rows * row_floats;
  }
}

}  // namespace
