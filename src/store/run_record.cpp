#include "store/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "records/documents.h"
#include "records/strict_json.h"
#include "spec/json_schema.h"
#include "store/folder_lock.h"
#include "store/line_file.h"
#include "store/run_fields.h"
#include "util/files.h"

namespace assay {
namespace {

using Name = std::pair<Arrival, const char*>;
constexpr std::array kArrivals{Name{Arrival::added, "added"}, Name{Arrival::replaced, "replaced"},
                               Name{Arrival::same, "same"}, Name{Arrival::lesser, "lesser"},
                               Name{Arrival::older, "older"}};

}  // namespace

nlohmann::ordered_json value_json(Arrival arrival) {
  const auto name = std::ranges::find(kArrivals, arrival, &Name::first);
  if (name == kArrivals.end()) throw Error("an arrival without a name");
  return name->second;
}

void read_value(const StrictObject& o, const char* key, Arrival& to) {
  const auto name = std::ranges::find(kArrivals, o.text(key), &Name::second);
  if (name == kArrivals.end()) o.fail(key, fmt::format("unknown \"{}\"", o.text(key)));
  to = name->first;
}

}  // namespace assay

namespace assay::store {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

std::string line(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

RunCell run_cell(const BoardRow& row, Arrival arrival) {
  return {.key = row.key,
          .spec_hash = row.spec_hash,
          .source_hash = row.source_hash,
          .verdict = row.score.verdict,
          .total = row.score.total,
          .evidence = row.evidence,
          .arrival = arrival,
          .revision = row.revision};
}

RunRecord read_run(const fs::path& path) { return run_from(read_lines(path).lines, path.string()); }

RunRecord run_from(const std::vector<std::string>& lines, const std::string& file) {
  RunRecord run;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    reading(fmt::format("{}:{}", file, i + 1), [&] {
      const json j = parse_json(lines[i], file);
      if (i == 0) {
        require_schema(j, Scoreboard::kSchema);
        run.start = record_from<RunStart>(j, "");
      } else if (j.is_object() && j.contains("finished")) {
        run.finished = StrictObject(j, "", {"finished"}).flag("finished");
      } else {
        auto cell = record_from<RunCell>(j, "");
        run.cells.insert_or_assign(cell.key, cell);
      }
    });
  }
  return run;
}

RunLog RunLog::begin(const fs::path& runs, RunStart start, Writers writers) {
  const std::string id = start.run_id;
  fs::path path = runs / (id + ".jsonl");
  Fd fd;
  for (int n = 2; !fd; ++n) {
    fd = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd) break;
    if (errno != EEXIST) fail_with_errno("create", path);
    start.run_id = fmt::format("{}-{}", id, n);
    path = runs / (start.run_id + ".jsonl");
  }
  if (writers == Writers::many && !try_lock(fd.get(), path, kRunPatience))
    throw Error(fmt::format("{} is in use", path.string()));
  RunLog log(path, std::move(fd));
  append_line(path, line(record_json(start)));
  log.record_.start = std::move(start);
  return log;
}

std::optional<RunLog> RunLog::resume(const fs::path& path, std::chrono::milliseconds patience,
                                     Writers writers) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) fail_with_errno("open", path);
  if (writers == Writers::many && !try_lock(fd.get(), path, patience)) return std::nullopt;
  RunLog log(path, std::move(fd));
  log.record_ = read_run(path);
  if (log.record_.start.run_id.empty()) return std::nullopt;
  return log;
}

void RunLog::add(const RunCell& cell) {
  append_line(path_, line(record_json(cell)));
  record_.cells.insert_or_assign(cell.key, cell);
}

void RunLog::finish() {
  append_line(path_, line(Json{{"finished", true}}));
  record_.finished = true;
}

}  // namespace assay::store
