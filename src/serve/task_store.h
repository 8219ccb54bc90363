// The folder of tasks: state/tasks/<id>.json. Each file is written whole or not at all, whatever
// kills the server.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "serve/task.h"
#include "util/file_lock.h"

namespace assay::serve {

// Thread-safe for different tasks; only one server at a time may hold the folder.
class TaskStore {
 public:
  // Creates the folder. Throws Error if another server holds it, or if it cannot be written.
  explicit TaskStore(std::filesystem::path state);

  // On disk when it returns. Throws Error if there is no room; the old contents then remain.
  void save(const Task&);
  // Absent if there is no such task, or if the id is not a valid name.
  std::optional<Task> load(const std::string& id) const;
  void remove(const std::string& id);
  // All tasks in order of arrival, without their results. One is in memory at a time: a request has
  // up to kLargestBody bytes. Removes half-written files left by a kill.
  void for_each(const std::function<void(Task)>& visit);

 private:
  std::filesystem::path file_of(const std::string& id) const;

  std::filesystem::path tasks_;
  std::optional<FileLock> lock_;
};

bool is_task_id(const std::string&);

}  // namespace assay::serve
