#include "slurm/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "assay/error.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::slurm {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr const char* kFile = "array.json";

Json to_json(const Array& a) {
  Json batches = Json::array(), failures = Json::array();
  for (const Batch& b : a.batches) {
    batches.push_back(
        {{"name", b.name}, {"job", b.job}, {"shards", b.shards}, {"excluded", b.excluded}});
  }
  for (const Failure& f : a.failures) {
    failures.push_back({{"job", f.task.job},
                        {"shard", f.task.shard},
                        {"reason", f.reason},
                        {"node", f.node},
                        {"avoid_node", f.avoid_node},
                        {"counts", f.counts}});
  }
  return {{"schema", kSchema},       {"id", a.id},
          {"command", a.command},    {"shards", a.shards},
          {"answers", a.answers},    {"seed", std::to_string(a.seed)},
          {"finished", a.finished},  {"batches", batches},
          {"failures", failures},    {"done", a.done},
          {"cancelled", a.cancelled}};
}

Array array_from(const nlohmann::json& j) {
  if (j.at("schema") != kSchema) throw Error("it is of another version of assay");
  Array a;
  a.id = j.at("id");
  a.command = j.at("command");
  a.shards = j.at("shards");
  a.answers = j.at("answers");
  a.seed = std::stoull(j.at("seed").get<std::string>());
  a.finished = j.at("finished");
  for (const auto& b : j.at("batches"))
    a.batches.push_back({b.at("name"), b.at("job"), b.at("shards"), b.at("excluded")});
  for (const auto& f : j.at("failures")) {
    a.failures.push_back({{f.at("job"), f.at("shard")},
                          f.at("reason"),
                          f.at("node"),
                          f.at("avoid_node"),
                          f.at("counts")});
  }
  a.done = j.at("done").get<std::vector<std::size_t>>();
  a.cancelled = j.at("cancelled").get<std::vector<std::string>>();
  return a;
}

// The first line of a mark; absent if there is no mark.
std::optional<std::string> mark(const fs::path& path) {
  std::error_code unreadable;
  if (!fs::exists(path, unreadable)) return {};
  std::string text = read_file(path);
  return text.substr(0, std::min(text.find('\n'), text.size()));
}

std::string mark_name(const TaskId& task, const char* what) {
  return fmt::format("{}.{}.{}", task.shard, task.job, what);
}

}  // namespace

std::optional<TaskId> Array::task_of(std::size_t shard) const {
  for (auto b = batches.rbegin(); b != batches.rend(); ++b) {
    if (std::ranges::find(b->shards, shard) == b->shards.end()) continue;
    const TaskId task{b->job, shard};
    const bool failed = std::ranges::find(failures, task, &Failure::task) != failures.end();
    if (b->job.empty() || failed) return {};
    return task;
  }
  return {};
}

bool Array::is_done(std::size_t shard) const {
  return std::ranges::find(done, shard) != done.end();
}

std::size_t Array::failures_of(std::size_t shard) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      failures, [&](const Failure& f) { return f.task.shard == shard && f.counts; }));
}

std::vector<std::string> Array::jobs() const {
  std::vector<std::string> all;
  for (const Batch& b : batches) {
    if (!b.job.empty()) all.push_back(b.job);
  }
  return all;
}

std::vector<std::string> Array::nodes_to_avoid(const std::vector<std::size_t>& of) const {
  std::set<std::string> nodes;
  for (const Failure& f : failures) {
    if (f.avoid_node && !f.node.empty() && std::ranges::find(of, f.task.shard) != of.end())
      nodes.insert(f.node);
  }
  return {nodes.begin(), nodes.end()};
}

fs::path ArrayFolder::shard(std::size_t shard) const {
  return shards() / fmt::format("{:04}", shard);
}

fs::path ArrayFolder::log(const TaskId& task) const {
  return logs() / fmt::format("{}.{}.log", task.shard, task.job);
}

Marks ArrayFolder::marks_of(const TaskId& task) const {
  Marks found;
  found.node = printable(mark(marks() / mark_name(task, "began")).value_or(""), 1, 80);
  const auto status = mark(marks() / mark_name(task, "ended"));
  if (!status) return found;
  int value = 0;
  const auto [end, fault] = std::from_chars(status->data(), status->data() + status->size(), value);
  if (fault != std::errc() || end != status->data() + status->size()) {
    throw Error(fmt::format("{} holds no exit status: remove it, and that shard counts as lost",
                            (marks() / mark_name(task, "ended")).string()));
  }
  found.ended = value;
  return found;
}

Array ArrayFolder::read() const {
  const fs::path path = folder_ / kFile;
  try {
    return array_from(nlohmann::json::parse(read_file(path)));
  } catch (const std::exception& e) {
    throw Error(fmt::format(
        "cannot read {}: {}; jobs of it may still run (`squeue --me`): cancel them, and remove {}",
        path.string(), e.what(), folder_.string()));
  }
}

void ArrayFolder::write(const Array& array) const {
  write_file_atomically(folder_ / kFile, to_json(array).dump(1) + "\n");
}

std::optional<ArrayFolder> unfinished_array(const fs::path& results) {
  std::vector<fs::path> folders;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(results / "slurm", missing)) {
    if (fs::exists(entry.path() / kFile)) folders.push_back(entry.path());
  }
  std::sort(folders.rbegin(), folders.rend());
  for (const fs::path& path : folders) {
    ArrayFolder folder(path);
    if (!folder.read().finished) return folder;
  }
  return {};
}

}  // namespace assay::slurm
