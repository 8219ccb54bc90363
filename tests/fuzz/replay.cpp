// Runs a fuzz target without libFuzzer, so that every build can: on nothing, on the files of a
// folder, on random bytes, and on each file changed in a few places. The same in every run.
//
// Usage: replay_NAME FOLDER [CHANGES]   CHANGES: how often each file is changed, default 50
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "util/files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kLongest = 65536;  // bytes, as in scripts/fuzz.sh

std::string g_input;  // what is run now, for the message about a failure

void tell_input(int) {
  std::fprintf(stderr, "the input: %s\n", g_input.c_str());
  std::_Exit(1);
}

void run(std::string name, const std::string& bytes) {
  g_input = std::move(name);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

class Changes {
 public:
  std::string changed(std::string bytes) {
    for (std::size_t n = below(4) + 1; n > 0; --n) change(bytes);
    return bytes.substr(0, kLongest);
  }
  std::string random() {
    std::string bytes(below(512), '\0');
    for (char& c : bytes) c = byte();
    return bytes;
  }

 private:
  // std's distributions differ from library to library.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  char byte() { return static_cast<char>(random_()); }

  void change(std::string& bytes) {
    const std::size_t at = below(bytes.size() + 1), length = below(32);
    switch (below(6)) {
      case 0: bytes.resize(at); break;
      case 1: bytes.insert(at, 1, byte()); break;
      case 2: bytes.erase(std::min(at, bytes.size()), length); break;
      case 3: bytes.insert(at, bytes.substr(below(bytes.size()), length)); break;
      case 4: bytes.insert(at, length * 64, at < bytes.size() ? bytes[at] : byte()); break;
      default:
        if (at < bytes.size())
          bytes[at] = below(2) == 0 ? byte() : static_cast<char>(bytes[at] + 1);
    }
  }

  std::mt19937_64 random_{1};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: %s FOLDER [CHANGES]\n", argv[0]);
    return 2;
  }
  const int times = argc == 3 ? std::atoi(argv[2]) : 50;
  for (const int fatal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(fatal, tell_input);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    files.push_back(entry.path());
  std::ranges::sort(files);
  try {
    run("nothing", "");
    Changes changes;
    for (int i = 0; i < times; ++i) run("random bytes " + std::to_string(i), changes.random());
    for (const std::filesystem::path& file : files) {
      const std::string bytes = assay::read_file(file);
      run(file, bytes);
      for (int i = 0; i < times; ++i)
        run(file.string() + ", change " + std::to_string(i), changes.changed(bytes));
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "an exception: %s\nthe input: %s\n", e.what(), g_input.c_str());
    return 1;
  }
  std::printf("%zu files\n", files.size());
}
