#include "sandbox/launch_request.h"

#include <cstdint>

namespace assay::sandbox {
namespace {

template <class T>
void point(const T*& pointer, std::byte* block) {
  if (pointer == nullptr) return;
  pointer = reinterpret_cast<const T*>(block + reinterpret_cast<std::uintptr_t>(pointer));
}

template <class T>
void point(std::span<const T>& values, std::byte* block) {
  const T* data = values.data();
  if (!values.empty()) point(data, block);
  values = {data, values.size()};
}

// The same, and `each` puts right what the values refer to.
template <class T, class Each>
void point(std::span<const T>& values, std::byte* block, Each each) {
  point(values, block);
  for (const T& value : values) each(const_cast<T&>(value));
}

}  // namespace

std::size_t LaunchRequest::room(std::size_t bytes) {
  constexpr std::size_t kAlignment = alignof(std::max_align_t);
  const std::size_t at = (block_.size() + kAlignment - 1) / kAlignment * kAlignment;
  block_.resize(at + bytes);
  return at;
}

const char* LaunchRequest::text(const std::string& text) {
  const std::size_t at = room(text.size() + 1);
  std::memcpy(block_.data() + at, text.c_str(), text.size() + 1);
  return reinterpret_cast<const char*>(at);  // NOLINT: an offset until it arrives
}

std::vector<const char*> LaunchRequest::put(const std::vector<std::string>& strings) {
  std::vector<const char*> texts;
  for (const std::string& s : strings) texts.push_back(text(s));
  return texts;
}

std::span<const char* const> LaunchRequest::arguments(const std::vector<std::string>& strings) {
  std::vector<const char*> texts = put(strings);
  texts.push_back(nullptr);
  return values(texts);
}

int LaunchRequest::descriptor(int fd) {
  if (fd < 0) return -1;
  descriptors_.push_back(fd);
  return static_cast<int>(descriptors_.size()) - 1;
}

std::span<const int> LaunchRequest::descriptors_of(const std::vector<int>& fds) {
  std::vector<int> positions;
  for (const int fd : fds) positions.push_back(descriptor(fd));
  return values(positions);
}

const std::vector<std::byte>& LaunchRequest::block() {
  std::memcpy(block_.data(), &launch, sizeof launch);
  return block_;
}

Launch& arrive(std::byte* block, const int* descriptors) {
  Launch& launch = *reinterpret_cast<Launch*>(block);
  for (const char** text :
       {&launch.uid_map, &launch.gid_map, &launch.tmp_options, &launch.exec_path}) {
    point(*text, block);
  }
  point(launch.mounts, block, [&](LaunchMount& mount) {
    point(mount.host, block);
    point(mount.inside, block);
  });
  for (std::span<const char* const>* texts : {&launch.parents, &launch.arguments, &launch.values}) {
    point(*texts, block, [&](const char*& text) { point(text, block); });
  }
  point(launch.filter, block);
  point(launch.fds, block, [&](int& fd) { fd = descriptors[fd]; });
  for (int* fd : {&launch.report, &launch.lifeline, &launch.exec, &launch.group, &launch.ruleset,
                  &launch.stop}) {
    if (*fd >= 0) *fd = descriptors[*fd];
  }
  return launch;
}

}  // namespace assay::sandbox
