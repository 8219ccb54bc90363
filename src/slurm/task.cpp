#include "slurm/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "assay/error.h"
#include "util/text.h"

namespace assay::slurm {
namespace {

constexpr std::size_t kMostShards = 100'000;

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::size_t index_from(std::string_view text) {
  std::size_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value == 0 || value > kMostShards)
    throw Error(fmt::format("'{}' is no index of an array", printable(text, 1, 80)));
  return value;
}

// "CANCELLED by 1000" and "TIMEOUT+" are these states with a suffix.
std::string state_word(std::string_view text) {
  const std::size_t end = text.find_first_of(" +");
  return std::string(text.substr(0, std::min(end, text.size())));
}

bool is_state(std::string_view word) {
  return !word.empty() &&
         std::ranges::all_of(word, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

// Slurm's output for a task without a node.
std::string node_from(std::string_view text) {
  const bool none =
      text == "None assigned" || text == "(null)" || text == "n/a" || text.starts_with('(');
  return none ? "" : std::string(text);
}

template <std::size_t N>
bool is_one_of(const std::string& state, const std::array<const char*, N>& states) {
  return std::ranges::find(states, state) != states.end();
}

constexpr std::array kWaiting{"PENDING",      "REQUEUED",     "REQUEUE_FED",
                              "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
constexpr std::array kRunning{"RUNNING",   "COMPLETING", "CONFIGURING", "SUSPENDED",
                              "SIGNALING", "STAGE_OUT",  "STOPPED",     "RESIZING"};

}  // namespace

std::string job_from(std::string_view printed) {
  std::string_view text = printed;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const std::string_view id = text.substr(0, std::min(text.find(';'), text.size()));
  if (!is_number(id) || text.find('\n') != std::string_view::npos) {
    throw Error(
        fmt::format("sbatch --parsable printed no job id but '{}'", printable(text, 3, 200)));
  }
  return std::string(id);
}

Tasks tasks_from(std::string_view printed, const std::vector<std::string>& jobs) {
  Tasks tasks;
  for (const std::string_view whole : split(printed, '\n')) {
    const std::string_view line = trimmed(whole);
    if (line.empty()) continue;
    const auto fail = [&] {
      throw Error(fmt::format("Slurm printed no task but '{}'", printable(line, 1, 200)));
    };
    std::vector<std::string_view> fields = split(line, '|');
    if (fields.size() != 3 && fields.size() != 4) fail();
    std::string_view job = fields.front(), shards;
    if (fields.size() == 4) {
      shards = fields[1];
      fields.erase(fields.begin());
    } else {
      const std::size_t mark = job.find('_');
      if (mark != std::string_view::npos) shards = job.substr(mark + 1);
      job = job.substr(0, std::min(mark, job.size()));
    }
    const std::string state = state_word(fields[1]);
    if (!is_number(job) || !is_state(state)) fail();
    if (shards.empty() || shards == "N/A" || std::ranges::find(jobs, job) == jobs.end()) continue;
    if (shards.starts_with('[') && shards.ends_with(']'))
      shards = shards.substr(1, shards.size() - 2);
    shards = shards.substr(0, std::min(shards.find('%'), shards.size()));
    for (const std::size_t shard : indices_from(shards))
      tasks[{std::string(job), shard}] = {state, node_from(fields[2])};
  }
  return tasks;
}

std::string indices(const std::vector<std::size_t>& shards) {
  std::string text;
  for (std::size_t i = 0; i < shards.size();) {
    std::size_t last = i;
    while (last + 1 < shards.size() && shards[last + 1] == shards[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", shards[i]);
    if (last > i) text += fmt::format("-{}", shards[last]);
    i = last + 1;
  }
  return text;
}

std::vector<std::size_t> indices_from(std::string_view text) {
  std::vector<std::size_t> shards;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::size_t first = index_from(part.substr(0, std::min(dash, part.size())));
    const std::size_t last =
        dash == std::string_view::npos ? first : index_from(part.substr(dash + 1));
    for (std::size_t shard = first; shard <= last; ++shard) shards.push_back(shard);
  }
  return shards;
}

Judgement judge(const std::optional<TaskSeen>& seen, const Marks& marks) {
  Judgement j;
  j.node = seen && !seen->node.empty() ? seen->node : marks.node;
  if (marks.ended == 0) {
    j.standing = Standing::done;
  } else if (seen && is_one_of(seen->state, kWaiting)) {
    j.standing = Standing::waiting;
  } else if (seen && is_one_of(seen->state, kRunning)) {
    j.standing = Standing::running;
  } else if (marks.ended) {
    j.standing = Standing::failed;
    j.reason = fmt::format("exit status {}", *marks.ended);
    j.avoid_node = true;
  } else if (seen && seen->state == "CANCELLED") {
    j.standing = Standing::cancelled;
    j.reason = seen->state;
  } else if (seen && seen->state != "COMPLETED") {
    j.standing = Standing::failed;
    j.reason = seen->state;
    j.avoid_node = seen->state != "TIMEOUT" && seen->state != "PREEMPTED";
  }
  return j;
}

}  // namespace assay::slurm
