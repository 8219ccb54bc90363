#include "site/site.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdio.h>  // renameat2
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "assay/error.h"
#include "grade/currency.h"
#include "numerics/jobs.h"
#include "records/evidence.h"
#include "site/frame.h"
#include "site/links.h"
#include "site/pages/cell_page.h"
#include "site/pages/overview_pages.h"
#include "site/site_view.h"
#include "spec/spec.h"
#include "store/evidence_file.h"
#include "store/folder_lock.h"
#include "util/fd.h"
#include "util/files.h"

namespace assay::site {
namespace {

namespace fs = std::filesystem;

// --- the folder ------------------------------------------------------------------------------

// Where the folder really lies, whatever links lead there.
fs::path place_of(const fs::path& out) {
  fs::path place = fs::weakly_canonical(out);
  return place.has_filename() ? place : place.parent_path();  // "site/"
}

// The folder in which a site is built, beside its place. Removed on destruction unless it was moved
// there.
class Workshop {
 public:
  explicit Workshop(const fs::path& out)
      : out_(place_of(out)),
        path_(out_.parent_path() / fmt::format(".{}.assay-board.tmp", out_.filename().string())) {
    require_site_or_nothing();
    require_exchange();
    create_folder(path_);
    lock_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_) fail_with_errno("open", path_);
    if (!store::try_lock(lock_.get(), path_, std::chrono::milliseconds(0)))
      throw Error(fmt::format("{}: another assay board is writing this site", out_.string()));
    // Removes what a kill left behind.
    for (const auto& entry : fs::directory_iterator(path_)) fs::remove_all(entry);
  }
  ~Workshop() {
    std::error_code ec;
    if (lock_) fs::remove_all(path_, ec);
  }
  Workshop(const Workshop&) = delete;

  const fs::path& path() const { return path_; }

  void put_in_place() {
    require_site_or_nothing();
    if (!fs::exists(out_)) {
      fs::rename(path_, out_);
      return;
    }
    // Swaps the two names in one step; the old site is then the one to remove.
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, out_.c_str(), RENAME_EXCHANGE) == 0) return;
    if (errno != EINVAL && errno != ENOSYS) fail_with_errno("replace", out_);
    // A file system without that. At every moment one of the names has a whole site.
    const fs::path old = path_.string() + ".old.tmp";
    fs::remove_all(old);
    fs::rename(out_, old);
    fs::rename(path_, out_);
    fs::remove_all(old);
  }

 private:
  void require_site_or_nothing() const {
    if (!fs::exists(out_)) return;
    if (!fs::is_directory(out_)) throw Error(fmt::format("{} is not a folder", out_.string()));
    if (fs::is_empty(out_)) return;
    std::ifstream in(out_ / kIndexPage, std::ios::binary);
    std::string begin(80, '\0');
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    if (begin.find("<!-- Written by `assay board`. -->") != std::string::npos) return;
    throw Error(fmt::format(
        "{} was not written by `assay board`: move it away, or name another folder with --out",
        out_.string()));
  }

  // A mounted folder cannot be renamed.
  void require_exchange() const {
    struct stat here {};
    struct stat above {};
    if (::stat(out_.c_str(), &here) != 0 || ::stat(out_.parent_path().c_str(), &above) != 0) return;
    if (here.st_dev == above.st_dev) return;
    throw Error(
        fmt::format("{} is a mounted folder, and the site takes its place in one step: name a "
                    "folder in it with --out",
                    out_.string()));
  }

  fs::path out_, path_;
  Fd lock_;
};

// Not flushed to disk, because a site can be built again.
void write_page(const fs::path& file, std::string_view text) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) fail_with_errno("write", file);
  write_all(fd.get(), text, file);
}

// --- cells -----------------------------------------------------------------------------------

// Looks up submission folders in a directory listing, so that no name from a board is ever used as
// a path.
class SubmissionFolders {
 public:
  explicit SubmissionFolders(const fs::path& root) {
    if (root.empty() || !fs::is_directory(root)) return;
    for (const auto& model : folders_in(root)) {
      for (const auto& challenge : folders_in(model))
        known_.emplace(std::pair(model.filename(), challenge.filename()), challenge);
    }
  }

  // The sources of the answer, or why there are none.
  std::pair<std::vector<SourceFile>, std::string> sources_of(const BoardRow& row) const {
    const CellKey& key = row.key;
    const auto at = known_.find({key.model, key.challenge});
    if (at == known_.end()) return {{}, "the answer is not in the folder of submissions"};
    fs::path folder = at->second;
    if (!key.attempt.empty()) {
      const auto attempts = folders_in(folder);
      const auto attempt = std::ranges::find_if(
          attempts, [&](const fs::path& f) { return f.filename() == key.attempt; });
      if (attempt == attempts.end()) return {{}, "the attempt is not in the folder of submissions"};
      folder = *attempt;
    }
    for (Submission& s : read_submissions(folder, key.model, key.challenge, key.attempt)) {
      if (s.device() != key.device) continue;
      if (!s.rejected.empty()) return {{}, s.rejected};
      if (source_hash(s) != row.source_hash)
        return {{}, "the sources have changed since this was measured"};
      return {std::move(s.sources), ""};
    }
    return {{}, "the answer is not in the folder of submissions"};
  }

 private:
  static std::vector<fs::path> folders_in(const fs::path& folder) {
    std::vector<fs::path> all;
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(folder, ec)) {
      if (entry.is_directory(ec)) all.push_back(entry.path());
    }
    return all;
  }

  std::map<std::pair<std::string, std::string>, fs::path> known_;
};

void add_evidence(CellView& view, const fs::path& results) {
  const EvidenceRef& ref = view.row->evidence;
  try {
    store::FoundEvidence found = store::find_evidence(results, ref);
    if (!found.problem.empty()) {
      view.evidence_problem = found.problem;
      return;
    }
    Evidence evidence = parse_evidence(found.text, (results / ref.path).string());
    if (evidence.entry.cell.key != view.row->key) {
      view.evidence_problem = fmt::format("{} is of another cell", (results / ref.path).string());
      return;
    }
    view.evidence = std::move(evidence.entry.cell);
  } catch (const Error& e) {
    view.evidence_problem = e.what();
  }
}

// --- the site --------------------------------------------------------------------------------

using Group = std::pair<std::string, std::string>;  // model and challenge

class SiteWriter {
 public:
  SiteWriter(const SiteInputs& in, const fs::path& site)
      : in_(in), workshop_(site), submissions_(in.submissions), yardsticks_(*in.board, *in.specs) {
    for (const ChallengeSpec& spec : *in.specs) {
      for (const Device device : kDevices) specs_[{spec.name, device}] = spec_for(device, spec);
    }
    take_rows();
  }

  SiteReport write() {
    make_folders();
    SiteView view = make_site_view(*in_.board, *in_.specs);
    write_cells(view);
    write_rankings(view);
    write_models(view);
    write_pairs(view);
    write_challenges(view);
    write_page(workshop_.path() / kStyleFile, style_sheet());
    report_.bytes += style_sheet().size();
    workshop_.put_in_place();
    return report_;
  }

 private:
  // Of the board, what belongs to a known challenge; attempts by device, in their order.
  void take_rows() {
    for (const auto& [key, row] : in_.board->entries) {
      if (!specs_.contains({key.challenge, key.device})) {
        ++report_.unknown;
        continue;
      }
      rows_.push_back(&row);
      groups_[{key.model, key.challenge}].push_back(&row);
    }
    for (auto& [group, attempts] : groups_) {
      std::ranges::stable_sort(attempts, [](const BoardRow* a, const BoardRow* b) {
        if (a->key.device != b->key.device) return a->key.device < b->key.device;
        return compare::attempt_before(a->key.attempt, b->key.attempt);
      });
    }
    report_.cells = rows_.size();
  }

  void make_folders() const {
    std::set<fs::path> folders{"models", "challenges"};
    for (const BoardRow* row : rows_) folders.insert(fs::path(cell_page(row->key)).parent_path());
    for (const fs::path& folder : folders) fs::create_directories(workshop_.path() / folder);
  }

  void write(const std::string& page, const std::string& text) {
    check_stop();
    write_page(workshop_.path() / page, text);
    ++report_.pages;
    report_.bytes += text.size();
  }

  CellView view_of(const BoardRow& row) const {
    const CellKey& key = row.key;
    CellView v;
    v.row = &row;
    v.spec = &specs_.at({key.challenge, key.device});
    v.yardstick = yardsticks_.of(key);
    v.others = groups_.at({key.model, key.challenge});
    v.least = &in_.least;
    v.brief = rows_.size() > kMostDetailedCells;
    if (const auto about = in_.board->models.find(key.model); about != in_.board->models.end())
      v.about = &about->second;
    v.source_bytes =
        std::clamp(kSourceBytes / rows_.size(), kLeastSourceBytesOfCell, kMostSourceBytesOfCell);
    add_evidence(v, in_.results);
    std::tie(v.sources, v.sources_problem) = submissions_.sources_of(row);
    return v;
  }

  // Side by side, since evidence is large.
  void write_cells(SiteView& view) {
    std::mutex mutex;
    std::size_t done = 0;
    for_each_job(rows_.size(), in_.jobs, [&](std::size_t i) {
      check_stop();
      const CellView cell = view_of(*rows_[i]);
      const std::string text = cell_document(cell);
      CellFacts facts = facts_of(cell);
      const std::lock_guard lock(mutex);
      write(cell_page(rows_[i]->key), text);
      if (!facts.with_evidence) ++report_.without_evidence;
      if (!facts.with_sources) ++report_.without_sources;
      view.facts.emplace(rows_[i]->key, std::move(facts));
      in_.progress(++done, rows_.size());
    });
  }

  void write_rankings(const SiteView& view) {
    for (std::size_t page = 1; page <= ranking_pages(view); ++page) {
      write(ranking_page(page), ranking_document(view, page));
    }
  }

  void write_models(const SiteView& view) {
    write(kModelsPage, models_document(view));
    std::set<std::string> models;
    for (const BoardRow* row : rows_) models.insert(row->key.model);
    for (const std::string& model : models) write(model_page(model), model_document(view, model));
  }

  void write_pairs(const SiteView& view) {
    for (const ModelPair& pair : view.pairs) {
      const std::string page = pair_page(pair.a, pair.b);
      fs::create_directories((workshop_.path() / page).parent_path());
      write(page, pair_document(view, pair));
    }
  }

  void write_challenges(const SiteView& view) {
    for (const DeviceView& d : view.devices) {
      const auto& challenges = d.shown().field.challenges;
      for (std::size_t i = 0; i < challenges.size(); ++i) {
        write(challenge_page(challenges[i]->name, d.device), challenge_document(view, d, i));
      }
    }
  }

  const SiteInputs& in_;
  Workshop workshop_;
  SubmissionFolders submissions_;
  std::map<std::pair<std::string, Device>, ChallengeSpec> specs_;
  Yardsticks yardsticks_;
  std::vector<const BoardRow*> rows_;
  std::map<Group, std::vector<const BoardRow*>> groups_;
  SiteReport report_;
};

}  // namespace

SiteReport write_site(const SiteInputs& in, const fs::path& out) {
  const fs::path whole = fs::absolute(out).lexically_normal();
  return SiteWriter(in, whole.has_filename() ? whole : whole.parent_path()).write();
}

}  // namespace assay::site
