// Finds and runs nvcc, if the machine has it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::sim {

// The path of nvcc, or empty if there is none.
inline std::string find_nvcc() {
  std::vector<std::filesystem::path> folders{"/usr/local/cuda/bin"};
  if (const char* home = std::getenv("CUDA_HOME"))
    folders.push_back(std::filesystem::path(home) / "bin");
  if (const char* path = std::getenv("PATH")) {
    std::istringstream all(path);
    for (std::string one; std::getline(all, one, ':');) folders.emplace_back(one);
  }
  for (const auto& folder : folders) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / "nvcc", ignored)) return (folder / "nvcc").string();
  }
  return {};
}

// The PTX of a CUDA source, with line numbers that refer to "kernel.cu".
inline std::string compile_cuda(const std::string& source, const std::string& arch) {
  std::string name = (std::filesystem::temp_directory_path() / "assay_nvcc_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const std::filesystem::path folder = name;
  std::ofstream(folder / "kernel.cu") << source;
  const std::string command = "cd " + name + " && " + find_nvcc() +
                              " -std=c++17 -O3 -lineinfo -w -arch=" + arch +
                              " -ptx -o k.ptx kernel.cu";
  const int status = std::system(command.c_str());
  std::stringstream all;
  all << std::ifstream(folder / "k.ptx").rdbuf();
  std::filesystem::remove_all(folder);
  if (status != 0) throw std::runtime_error("nvcc failed");
  return all.str();
}

}  // namespace assay::sim
