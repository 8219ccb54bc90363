// nvcc's output parses without loss: written out again, every instruction is as nvcc wrote it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "sim/ptx/support.h"

namespace assay::sim::ptx {
namespace {

namespace fs = std::filesystem;

std::string nvcc() {
  if (std::system("command -v nvcc >/dev/null 2>&1") == 0) return "nvcc";
  const char* home = std::getenv("CUDA_HOME");
  const fs::path path = fs::path(home != nullptr ? home : "/usr/local/cuda") / "bin/nvcc";
  return fs::exists(path) ? path.string() : "";
}

constexpr const char* kSource = R"(
#include <cstdio>
#include <cassert>

__constant__ float coefficients[4] = {1.0f, -2.5f, 3.0f};
__device__ unsigned long long counter;
__device__ const char* words[2] = {"one", "two"};
__device__ float scale_table[2][3] = {{1, 2, 3}, {4, 5, 6}};
struct Shape { virtual __device__ float area(float) const = 0; };
struct Square : Shape { __device__ __noinline__ float area(float x) const override { return x * x; } };
struct Disc : Shape { __device__ __noinline__ float area(float x) const override { return 3.0f * x * x; } };
struct Big { double values[12]; int n; };

__device__ __noinline__ Big make_big(int n) { Big b{}; for (int i = 0; i < n; ++i) b.values[i % 12] = i; b.n = n; return b; }
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ inline float warp_sum(float v) {
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
template <class T> __global__ void __launch_bounds__(256, 2)
reduce(const T* __restrict__ in, T* out, int n, Big b) {
  extern __shared__ float dynamic[];
  __shared__ float tile[32][33];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += static_cast<float>(in[i]) * coefficients[i & 3];
  tile[threadIdx.x / 32][threadIdx.x % 32] = sum;
  __syncthreads();
  dynamic[threadIdx.x] = warp_sum(tile[threadIdx.x % 32][0]) + __expf(sum) + sinf(sum);
  if (threadIdx.x == 0) {
    atomicAdd(&counter, 1ull);
    out[blockIdx.x] = static_cast<T>(dynamic[0] + b.values[n % 12] + scale_table[n & 1][n % 3]);
    printf("sum %f of %s\n", dynamic[0], words[n & 1]);
  }
  assert(n < 1000000);
}
template __global__ void reduce<float>(const float*, float*, int, Big);
template __global__ void reduce<double>(const double*, double*, int, Big);
__global__ void calls(float* out, int n, float (*f)(float)) {
  Square square;
  Disc disc;
  Shape* shape = n & 1 ? static_cast<Shape*>(&square) : &disc;
  out[0] = shape->area(out[1]) + fibonacci(n) + static_cast<float>(make_big(n).values[n % 12]) + f(out[2]);
}
__global__ void choose(int* out, int n) {
  int x = out[0];
  switch (n) {
    case 0: x = x * 3; break;
    case 1: x ^= 77; break;
    case 2: x = __popc(x); break;
    case 3: x = __clz(x); break;
    case 4: x -= n << 3; break;
    case 5: x = __brev(x); break;
    case 6: x = x / 7; break;
    default: x = -x;
  }
  int y, z;
  asm volatile("{ .reg .pred p;\n\t.reg .b32 t<2>;\n\tsetp.ne.s32 p, %1, 0;\n\tmov.u32 t1, 0x10;\n\t"
               "AGAIN: @p bra DONE;\n\tbra AGAIN;\n\tDONE: selp.s32 %0, t1, 0, p;\n\t}" : "=r"(y) : "r"(x));
  asm volatile("{ .reg .pred p;\n\t.reg .b32 t<2>;\n\tsetp.eq.s32 p, %1, 0;\n\tmov.u32 t1, 1+2*3;\n\t"
               "AGAIN: @p bra DONE;\n\tbra AGAIN;\n\tDONE: selp.s32 %0, t1, 0, p;\n\t}" : "=r"(z) : "r"(y));
  out[0] = x + y + z;
}
)";

// nvcc's PTX of kSource; empty without nvcc.
std::string compile(const std::string& architecture) {
  const std::string compiler = nvcc();
  if (compiler.empty()) return "";
  const char* const temporary = std::getenv("TMPDIR");
  std::string folder = std::string(temporary != nullptr ? temporary : "/tmp") + "/ptx_nvcc_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return "";
  std::ofstream(folder + "/kernels.cu") << kSource;
  const std::string command = compiler + " -std=c++17 -lineinfo -ptx -w -arch=" + architecture +
                              " " + folder + "/kernels.cu -o " + folder + "/kernels.ptx 2>" +
                              folder + "/log";
  const int status = std::system(command.c_str());
  std::stringstream text;
  text << std::ifstream(folder + (status == 0 ? "/kernels.ptx" : "/log")).rdbuf();
  fs::remove_all(folder);
  EXPECT_EQ(status, 0) << text.str();
  return text.str();
}

// The instructions of a text in order, without blanks. Independent of the parser; relies on nvcc's
// line layout.
std::string instructions_of(const std::string& text) {
  std::string out, line;
  std::stringstream lines(text);
  bool in_body = false, in_list = false;
  while (std::getline(lines, line)) {
    line = line.substr(0, line.find("//"));
    line.erase(
        std::remove_if(line.begin(), line.end(), [](unsigned char c) { return std::isspace(c); }),
        line.end());
    if (line.find(".section") != std::string::npos) break;
    if (line == "{" || line == "}") {
      in_body = true;
      continue;
    }
    if (line.find(".visible") != std::string::npos || line.find(".func") != std::string::npos)
      in_body = false;
    in_list |= line.find(".branchtargets") != std::string::npos ||
               line.find(".callprototype") != std::string::npos;
    if (in_list) {
      in_list = line.find(';') == std::string::npos;
      continue;
    }
    line = std::regex_replace(
        line, std::regex("^\\{?((\\.reg|\\.param|\\.local|\\.shared|\\.pragma)[^;]*;)*"), "");
    line = std::regex_replace(line, std::regex("^[A-Z$][A-Za-z0-9_$]*:"), "");
    if (!in_body || line.empty() || line[0] == '.') continue;
    out += line == "}" ? "" : line;
  }
  return out;
}

std::string rendered(const Module& module) {
  std::string out;
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.body) out += render(instruction);
  }
  return std::regex_replace(out, std::regex("#[0-9]+"), "");
}

void expect_names_resolve(const Function& function) {
  std::set<std::string> registers, locals;
  for (const Register& r : function.registers)
    EXPECT_TRUE(registers.insert(r.name).second) << r.name;
  for (const Variable& v : function.locals) EXPECT_TRUE(locals.insert(v.name).second) << v.name;
  for (const Instruction& instruction : function.body) {
    EXPECT_TRUE(!instruction.guarded || registers.contains(instruction.guard));
    for (const Operand& operand : instruction.operands) {
      const bool is_register = operand.kind == Operand::Kind::reg;
      EXPECT_TRUE(!is_register || registers.contains(operand.name)) << operand.name;
      EXPECT_TRUE(instruction.opcode != "bra" || function.labels.contains(operand.name));
    }
  }
}

class PtxOfNvcc : public ::testing::TestWithParam<const char*> {};

TEST_P(PtxOfNvcc, ComesBackUnchanged) {
  const std::string text = compile(GetParam());
  if (text.empty()) GTEST_SKIP() << "no nvcc here: set CUDA_HOME or PATH";
  const Module module = parse(text);
  EXPECT_EQ(module.target, GetParam() == std::string("compute_80") ? "sm_80" : "sm_90");
  EXPECT_GE(module.version_major, 7u);

  std::string wrote = instructions_of(text), read = rendered(module);
  wrote = std::regex_replace(wrote, std::regex("0x10;"), "16;");
  wrote = std::regex_replace(wrote, std::regex("1\\+2\\*3;"), "7;");
  wrote = std::regex_replace(wrote, std::regex("\\+0]"), "]");
  const auto differ = std::mismatch(wrote.begin(), wrote.end(), read.begin(), read.end());
  const auto at = std::max<std::ptrdiff_t>(0, differ.first - wrote.begin() - 40);
  EXPECT_TRUE(wrote == read) << "nvcc: " << wrote.substr(at, 120)
                             << "\nread: " << read.substr(at, 120);
  EXPECT_GT(read.size(), 10000u);

  std::size_t entries = 0, calls = 0;
  for (const Function& function : module.functions) {
    entries += function.entry;
    expect_names_resolve(function);
    for (const Instruction& i : function.body) {
      calls += i.opcode == "call";
      // -lineinfo covers everything except parameters of calls.
      EXPECT_NE(module.describe(i.where).find("kernels.cu:"), std::string::npos)
          << function.name << " " << module.describe(i.where) << " " << render(i);
    }
  }
  EXPECT_EQ(entries, 4u);
  EXPECT_GE(calls, 6u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, PtxOfNvcc, ::testing::Values("compute_80", "compute_90"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace assay::sim::ptx
