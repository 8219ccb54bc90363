#include "build/cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <vector>

#include "assay/error.h"
#include "util/files.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

struct Entry {
  fs::path path;
  fs::file_time_type used;
  std::uint64_t bytes = 0;
};

// The part of the name after the hash; "" if it is not a cache file. Users may choose a folder that
// holds other files, which are left alone.
std::string after_hash(const fs::path& path) {
  constexpr std::size_t kHash = 64;
  const std::string name = path.filename();
  const bool ours = name.size() > kHash && name.find_first_not_of("0123456789abcdef") == kHash &&
                    name[kHash] == '.';
  return ours ? name.substr(kHash) : "";
}

bool is_entry(const fs::path& path) {
  const std::string kind = after_hash(path);
  return kind == ".so" || kind == ".o" || kind == ".warnings" || kind == ".work.json" ||
         kind == ".files";
}

std::uint64_t on_disk(std::uint64_t bytes) {
  constexpr std::uint64_t kBlock = 4096;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

// Skips entries that other processes remove meanwhile.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    std::error_code gone;
    if (!at->is_regular_file(gone) || !is_entry(at->path())) continue;
    const Entry entry{at->path(), at->last_write_time(gone), on_disk(at->file_size(gone))};
    if (!gone) entries.push_back(entry);
  }
  return entries;
}

std::uint64_t total(const std::vector<Entry>& entries) {
  std::uint64_t bytes = 0;
  for (const Entry& e : entries) bytes += e.bytes;
  return bytes;
}

// True for build-<pid>-<n>, as versions before workplaces made them, if the process is gone.
bool is_old_build_folder(const fs::path& path) {
  int pid = 0, end = 0;
  const std::string name = path.filename();
  const bool named = std::sscanf(name.c_str(), "build-%d-%*u%n", &pid, &end) == 1 && pid > 0 &&
                     static_cast<std::size_t>(end) == name.size();
  return named && ::kill(pid, 0) != 0 && errno == ESRCH;
}

bool is_forgotten(const fs::path& temporary) {
  std::error_code gone;
  const auto written = fs::last_write_time(temporary, gone);
  return !gone && fs::file_time_type::clock::now() - written > std::chrono::hours(1);
}

// Removes what killed processes left outside their workplaces.
void remove_remains(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
  std::error_code ec;
  for (const fs::path& path : found) {
    const std::string kind = after_hash(path);
    if (kind.ends_with(".lock")) {
      FileLock::if_free(path);  // releasing it removes it
    } else if (is_old_build_folder(path) || (kind.ends_with(".tmp") && is_forgotten(path))) {
      fs::remove_all(path, ec);
    }
  }
}

// False if there is no such file. The contents last as long as the new name does.
bool link_or_copy(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0 || errno == EEXIST) return true;
  if (errno == ENOENT) return false;
  try {  // another file system, or one without links
    write_file_atomically(to, read_file(from));
  } catch (const Error&) {
    std::error_code ec;
    if (!fs::exists(from, ec)) return false;  // removed by another process
    throw;
  }
  return true;
}

// Makes a file readable for the sandbox's user, regardless of the umask.
void show(const fs::path& file) {
  std::error_code ec;  // if it is not ours, its owner has done so
  fs::permissions(file, fs::perms(0644), ec);
}

fs::path created(fs::path folder) {
  require_writable_directory(folder);
  return folder;
}

}  // namespace

BuildCache::BuildCache(sandbox::Tier tier, fs::path folder, std::uint64_t limit_bytes)
    : folder_(created(fs::absolute(folder))), limit_(limit_bytes), workplace_(tier, folder_) {
  remove_remains(folder_);
  evict();
}

std::optional<fs::path> BuildCache::find(const std::string& name) {
  const fs::path own = workplace() / name;
  if (!link_or_copy(folder_ / name, own)) {
    std::error_code ec;
    if (!fs::exists(own, ec)) return std::nullopt;
  }
  show(own);
  touch(folder_ / name);
  return own;
}

fs::path BuildCache::add(const std::string& name, std::string_view contents) {
  hold(name, contents);
  return share(name, contents.size());
}

void BuildCache::hold(const std::string& name, std::string_view contents) {
  const fs::path own = workplace() / name;
  write_file_atomically(own, contents);
  show(own);
}

fs::path BuildCache::share(const std::string& name, std::size_t bytes) {
  fs::path own = workplace() / name;
  link_or_copy(own, folder_ / name);
  // Scanning the whole folder each time would cost more than it is worth.
  if ((added_ += on_disk(bytes)) > limit_ / 64) evict();
  return own;
}

FileLock BuildCache::lock(const std::string& name) const {
  return FileLock(folder_ / (name + ".lock"));
}

BuildCache::Usage BuildCache::usage() const {
  const std::vector<Entry> entries = entries_of(folder_);
  return {total(entries), entries.size()};
}

void BuildCache::evict() {
  added_ = 0;
  std::vector<Entry> entries = entries_of(folder_);
  std::uint64_t bytes = total(entries);
  if (bytes <= limit_) return;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& oldest : entries) {
    std::error_code ec;
    fs::remove(oldest.path, ec);
    bytes -= oldest.bytes;
    if (bytes <= limit_) return;
  }
}

}  // namespace assay
