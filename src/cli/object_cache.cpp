#include "cli/object_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "assay/error.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::cli {
namespace fs = std::filesystem;
namespace {

std::string key_of(const std::string& command) { return sha256_hex("object of nvcc\n" + command); }

std::string name_of_list(const std::string& key) { return key + ".files"; }

std::string name_of_object(const std::string& key, const std::string& list) {
  return sha256_hex(key + "\n" + list) + ".o";
}

std::string name_of_program(const std::string& command, const std::vector<fs::path>& objects) {
  std::string text = "program of nvcc\n" + command;
  for (const fs::path& object : objects) text += "\n" + sha256_hex(read_file(object));
  return sha256_hex(text) + ".so";
}

// A line for each file: its hash and its name. Nothing if one cannot be read or written down.
std::optional<std::string> list_of(const std::vector<fs::path>& files) {
  std::string list;
  for (const fs::path& file : files) {
    if (file.string().find('\n') != std::string::npos) return std::nullopt;
    try {
      list += fmt::format("{} {}\n", sha256_hex(read_file(file)), file.string());
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return list;
}

std::vector<fs::path> files_of(const std::string& list) {
  constexpr std::size_t kHash = 64;
  std::vector<fs::path> files;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find('\n', at), list.size());
    if (end > at + kHash) files.emplace_back(list.substr(at + kHash + 1, end - at - kHash - 1));
    at = end + 1;
  }
  return files;
}

}  // namespace

std::optional<fs::path> ObjectCache::find(const std::string& command) {
  const std::string key = key_of(command);
  const auto kept = cache_.find(name_of_list(key));
  if (!kept) return std::nullopt;
  const std::string list = read_file(*kept);
  if (list_of(files_of(list)) != list) return std::nullopt;
  return cache_.find(name_of_object(key, list));
}

void ObjectCache::add(const std::string& command, const fs::path& object,
                      const std::vector<fs::path>& files, fs::file_time_type begun) {
  // A file that was written meanwhile may not be what the compiler read. The kernel's clock for
  // files lags behind by a tick.
  constexpr std::chrono::milliseconds kTick{10};
  const bool meanwhile = std::ranges::any_of(files, [&](const fs::path& file) {
    std::error_code ec;
    const auto written = fs::last_write_time(file, ec);
    return ec || written >= begun - kTick;
  });
  if (meanwhile) return;
  const auto list = list_of(files);
  if (!list || list->empty()) return;
  const std::string key = key_of(command);
  cache_.add(name_of_object(key, *list), read_file(object));
  // The list of an earlier object, made from what the files were then.
  std::error_code none;
  fs::remove(cache_.folder() / name_of_list(key), none);
  cache_.add(name_of_list(key), *list);
}

std::optional<fs::path> ObjectCache::find_program(const std::string& command,
                                                  const std::vector<fs::path>& objects) {
  return cache_.find(name_of_program(command, objects));
}

void ObjectCache::add_program(const std::string& command, const std::vector<fs::path>& objects,
                              const fs::path& program) {
  cache_.add(name_of_program(command, objects), read_file(program));
}

std::vector<fs::path> prerequisites(std::string_view rule) {
  std::vector<fs::path> files;
  std::string name;
  const auto end_name = [&] {
    if (!name.empty()) files.emplace_back(std::exchange(name, {}));
  };
  // The target may hold colons, but none before a blank.
  const std::size_t colon = std::min(rule.find(": "), rule.size());
  for (std::size_t at = std::min(colon + 1, rule.size()); at < rule.size(); ++at) {
    const char c = rule[at];
    const char next = at + 1 < rule.size() ? rule[at + 1] : '\n';
    if (c == '\\' && (next == ' ' || next == '#' || next == '\\')) {
      name += next;
      ++at;
    } else if (c == '$' && next == '$') {
      name += c;
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\n' || (c == '\\' && next == '\n')) {
      end_name();
    } else {
      name += c;
    }
  }
  end_name();
  return files;
}

}  // namespace assay::cli
