#include "serve/task_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assay/error.h"
#include "util/files.h"

namespace assay::serve {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kIdLength = 32;
constexpr const char* kEnding = ".json";

Task read_task(const fs::path& file) {
  try {
    return task_from(Json::parse(read_file(file)), file.string());
  } catch (const Json::parse_error& e) {
    throw Error(
        fmt::format("{}: no task of assay's ({}): move the file away", file.string(), e.what()));
  }
}

}  // namespace

bool is_task_id(const std::string& id) {
  return id.size() == kIdLength && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

TaskStore::TaskStore(fs::path state) : tasks_(state / "tasks") {
  create_folder(tasks_);
  require_writable_directory(tasks_);
  if (auto lock = FileLock::if_free(state / "lock")) {
    lock_.emplace(std::move(*lock));
  } else {
    throw Error(
        fmt::format("another assay serve has {}: end it, or name another folder with "
                    "--state",
                    state.string()));
  }
}

fs::path TaskStore::file_of(const std::string& id) const { return tasks_ / (id + kEnding); }

void TaskStore::save(const Task& task) {
  write_file_alone(file_of(task.id),
                   to_json(task).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<Task> TaskStore::load(const std::string& id) const {
  if (!is_task_id(id)) return std::nullopt;
  try {
    return read_task(file_of(id));
  } catch (const Error&) {
    std::error_code ec;
    if (!fs::exists(file_of(id), ec) && !ec) return std::nullopt;  // never was, or just removed
    throw;
  }
}

void TaskStore::remove(const std::string& id) {
  std::error_code gone;
  if (is_task_id(id)) fs::remove(file_of(id), gone);
}

void TaskStore::for_each(const std::function<void(Task)>& visit) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(tasks_)) files.push_back(entry.path());
  std::vector<std::pair<std::uint64_t, fs::path>> ordered;
  for (const fs::path& file : files) {
    if (file.extension() == kEnding && is_task_id(file.stem().string())) {
      ordered.emplace_back(read_task(file).number, file);
    } else if (file.extension() == ".tmp") {
      std::error_code gone;
      fs::remove(file, gone);
    }
  }
  std::ranges::sort(ordered);
  for (const auto& [number, file] : ordered) {
    Task task = read_task(file);
    task.result = nullptr;
    visit(std::move(task));
  }
}

}  // namespace assay::serve
