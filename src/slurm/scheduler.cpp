#include "slurm/scheduler.h"

#include <fmt/format.h>

#include "assay/error.h"
#include "slurm/program.h"
#include "util/text.h"

namespace assay::slurm {
namespace {

std::string said(const Printed& printed) {
  std::string text = printable(printed.err.empty() ? printed.out : printed.err, 5, 200);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.empty() ? fmt::format("exit status {}", printed.status) : text;
}

// A busy or restarting scheduler will answer another time, so its failure says nothing about
// whether a task lives (Silent). A missing program will not appear, so that is not Silent.
Printed answered(const std::vector<std::string>& command) {
  try {
    return run_command(command);
  } catch (const Late& late) {
    throw Silent(late.what());
  }
}

Printed ask(const std::vector<std::string>& command) {
  Printed printed = answered(command);
  if (printed.status != 0)
    throw Silent(fmt::format("{} failed: {}", command.front(), said(printed)));
  return printed;
}

Tasks understood(const std::string& program, const std::string& text,
                 const std::vector<std::string>& jobs) {
  try {
    return tasks_from(text, jobs);
  } catch (const Error& e) {
    throw Silent(fmt::format("{}: {}", program, e.what()));
  }
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace

std::vector<std::string> sbatch_command(const JobOptions& options, const ArrayFolder& folder,
                                        const Batch& batch) {
  std::string array = indices(batch.shards);
  if (options.at_once > 0) array += fmt::format("%{}", options.at_once);
  std::vector<std::string> command{
      "sbatch",
      "--parsable",
      "--job-name=" + batch.name,
      "--array=" + array,
      "--nodes=1",
      "--ntasks=1",
      "--no-requeue",  // a task lost with its node is resubmitted from here, elsewhere
      "--chdir=" + options.folder.string(),
      "--output=" + (folder.logs() / "%a.%A.log").string()};
  command.insert(command.end(), options.sbatch.begin(), options.sbatch.end());
  if (!batch.excluded.empty()) command.push_back("--exclude=" + joined(batch.excluded));
  command.push_back(folder.script().string());
  return command;
}

std::string SlurmCommands::submit(const Batch& batch) {
  const Printed printed = run_command(sbatch_command(options_, folder_, batch));
  if (printed.status != 0) throw Refused("sbatch refused the job: " + said(printed));
  return job_from(printed.out);
}

std::optional<std::string> SlurmCommands::job_named(const std::string& name) {
  const Printed printed =
      ask({"squeue", "--me", "--noheader", "--states=all", "--format=%F", "--name=" + name});
  const std::string first = printed.out.substr(0, printed.out.find('\n'));
  const auto begin = first.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  try {
    return job_from(first.substr(begin, first.find(' ', begin) - begin));
  } catch (const Error&) {
    throw Silent(fmt::format("squeue printed no job id but '{}'", printable(first, 1, 200)));
  }
}

Tasks SlurmCommands::look(const std::vector<std::string>& jobs) {
  if (jobs.empty()) return {};
  Tasks tasks = accounted(jobs);
  const Printed queue = answered({"squeue", "--noheader", "--array", "--states=all",
                                  "--format=%F|%K|%T|%N", "--jobs=" + joined(jobs)});
  // squeue says this of a single job that ended long ago.
  const bool forgotten = queue.err.find("Invalid job id") != std::string::npos;
  if (queue.status != 0 && !forgotten) throw Silent("squeue failed: " + said(queue));
  const Tasks in_queue = forgotten ? Tasks{} : understood("squeue", queue.out, jobs);
  // A task that the queue has forgotten is over, even if accounting never recorded its end.
  std::erase_if(tasks, [&](const auto& task) {
    const Standing standing = judge(task.second, {}).standing;
    return !in_queue.contains(task.first) &&
           (standing == Standing::waiting || standing == Standing::running);
  });
  for (const auto& [id, seen] : in_queue) tasks[id] = seen;
  return tasks;
}

Tasks SlurmCommands::accounted(const std::vector<std::string>& jobs) {
  if (!without_accounting_.empty()) return {};
  Printed printed;
  try {
    printed = run_command({"sacct", "--allocations", "--noheader", "--parsable2",
                           "--format=JobID,State,NodeList", "--jobs=" + joined(jobs)});
  } catch (const Error& e) {
    without_accounting_ = e.what();
    return {};
  }
  if (printed.status != 0) {
    // Even if this failure is accidental, squeue and the marks are enough.
    without_accounting_ = "sacct: " + said(printed);
    return {};
  }
  return understood("sacct", printed.out, jobs);
}

void SlurmCommands::cancel(const std::vector<std::string>& jobs) {
  std::vector<std::string> command{"scancel"};
  command.insert(command.end(), jobs.begin(), jobs.end());
  const Printed printed = run_command(command);
  if (printed.status != 0) throw Refused("scancel failed: " + said(printed));
}

}  // namespace assay::slurm
