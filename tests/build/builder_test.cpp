#include "build/builder.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "sandbox/probe.h"
#include "sandbox/worker_image.h"
#include "util/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class BuilderTest : public ::testing::Test {
 protected:
  BuilderTest()
      : cache_(fs::temp_directory_path() / ("assay-builder-" + std::to_string(::getpid()))),
        tier_(sandbox::find_tier(sandbox::worker_image_fd()).tier),
        builder_(tier_, ASSAY_SOURCE_DIR, cache_) {}
  ~BuilderTest() override { fs::remove_all(cache_); }

  BuildResult build(const std::string& source, double limit_s = 60) {
    return builder_.build({{{"submission.cpp", source}}, {}, limit_s});
  }

  fs::path cache_;
  sandbox::Tier tier_;
  Builder builder_;
};

TEST_F(BuilderTest, BuildsALibraryThatLoads) {
  const BuildResult result = build("extern \"C\" int answer() { return 42; }");
  ASSERT_EQ(result.record.verdict, Verdict::ok) << result.record.log;
  void* handle = ::dlopen(result.library.c_str(), RTLD_NOW);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  EXPECT_EQ(reinterpret_cast<int (*)()>(::dlsym(handle, "answer"))(), 42);
  ::dlclose(handle);
}

TEST_F(BuilderTest, SecondBuildComesFromTheCache) {
  const std::string source = "extern \"C\" int f() { return 1; }";
  const BuildResult first = build(source), second = build(source);
  EXPECT_FALSE(first.record.cached);
  EXPECT_TRUE(second.record.cached);
  EXPECT_EQ(first.library, second.library);
  EXPECT_THAT(second.record.command, HasSubstr("-std=c++20"));
  EXPECT_NE(build(source + " ").library, first.library);
}

TEST_F(BuilderTest, CompilesEveryUnitAndOffersTheHeaders) {
  const BuildResult result =
      builder_.build({{{"submission.cpp",
                        "#include \"abi.h\"\n#include \"part.h\"\nextern \"C\" int f() { return "
                        "g() + ASSAY_OK; }"},
                       {"part.cpp", "#include \"part.h\"\nint g() { return 1; }"},
                       {"part.h", "int g();"}},
                      {{"abi.h", "#include \"assay/abi.h\""}},
                      60});
  EXPECT_EQ(result.record.verdict, Verdict::ok) << result.record.log;
}

TEST_F(BuilderTest, ObjectsAreCompiledApartAndLinkedWithoutLocalNames) {
  const auto object = [&](const char* name, const char* source) {
    const BuildResult result =
        builder_.build({.sources = {{name, source}}, .headers = {}, .object = true});
    EXPECT_EQ(result.record.verdict, Verdict::ok) << result.record.log;
    return result.library;
  };
  const auto link = [&](std::vector<fs::path> objects) {
    return builder_.build({.sources = {}, .headers = {}, .objects = std::move(objects)});
  };
  const fs::path f = object("secret.cpp", "int g(); extern \"C\" int f() { return g(); }"),
                 one = object("part.cpp",
                              "[[gnu::used]] static void hidden() {} int g() { return 1; }"),
                 two = object("part.cpp", "int g() { return 2; }");
  const BuildResult first = link({f, one}), second = link({f, two});
  ASSERT_EQ(first.record.verdict, Verdict::ok) << first.record.log;
  EXPECT_FALSE(second.record.cached);
  EXPECT_NE(first.library, second.library);
  const std::string library = read_file(first.library);
  for (const char* name : {"secret", "hidden"}) EXPECT_EQ(library.find(name), library.npos) << name;
  void* handle = ::dlopen(first.library.c_str(), RTLD_NOW);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  EXPECT_EQ(reinterpret_cast<int (*)()>(::dlsym(handle, "f"))(), 1);
  ::dlclose(handle);
  EXPECT_TRUE(link({f, one}).record.cached);
  EXPECT_EQ(link({f}).record.verdict, Verdict::build_error);
}

TEST_F(BuilderTest, CompileErrorShowsTheFirstLines) {
  const BuildResult result = build("int f( { }\n");
  EXPECT_EQ(result.record.verdict, Verdict::build_error);
  EXPECT_THAT(result.record.log, HasSubstr("submission.cpp:1"));
}

TEST_F(BuilderTest, UndefinedSymbolsAreErrorsOfTheBuild) {
  const BuildResult result = build("int g(); extern \"C\" int f() { return g(); }");
  EXPECT_EQ(result.record.verdict, Verdict::build_error);
  EXPECT_THAT(result.record.log, HasSubstr("undefined reference"));
}

TEST_F(BuilderTest, HostFilesCannotBeIncluded) {
  const BuildResult header = build("#include \"/etc/passwd\"\n");
  EXPECT_EQ(header.record.verdict, Verdict::build_error);
  EXPECT_THAT(header.record.log, Not(HasSubstr("root:")));
  const BuildResult blob = build("asm(\".incbin \\\"/etc/passwd\\\"\");");
  EXPECT_EQ(blob.record.verdict, Verdict::build_error);
  const BuildResult oracle = build("#if __has_include(\"/etc/passwd\")\n#error there\n#endif\n");
  EXPECT_EQ(oracle.record.verdict, Verdict::ok) << oracle.record.log;
}

TEST_F(BuilderTest, DiagnosticsAreMadeHarmless) {
  const BuildResult result = build("#error \"\x1b[2J\x07 <script>\"\n");
  EXPECT_EQ(result.record.verdict, Verdict::build_error);
  EXPECT_THAT(result.record.log, Not(HasSubstr("\x1b")));
}

TEST_F(BuilderTest, AnEndlessCompilationIsCutOff) {
  const BuildResult result = build(
      "template <int N, int M> struct A { static constexpr unsigned v = A<N - 1, M>::v + A<N - 1, "
      "M + 1>::v; };\n"
      "template <int M> struct A<0, M> { static constexpr unsigned v = M; };\n"
      "static_assert(A<880, 0>::v != 1);\n",
      1);
  EXPECT_EQ(result.record.verdict, Verdict::build_limit) << result.record.log;
}

TEST_F(BuilderTest, AHugeObjectIsCutOff) {
  const BuildResult result = build("int x[1u << 29] = {1}; extern \"C\" int f() { return x[5]; }");
  EXPECT_EQ(result.record.verdict, Verdict::build_limit) << result.record.log;
}

TEST(CudaFlags, ForeignSymbolsAreToldFromThoseOfTheRuntime) {
  EXPECT_EQ(foreign_symbols(""), "");
  EXPECT_EQ(foreign_symbols("x.o: warning: undefined reference to `cudaMalloc'\n"
                            "x.o: warning: undefined reference to `__cudaRegisterFatBinary'\n"),
            "");
  EXPECT_EQ(foreign_symbols("undefined reference to `cudaFree'\nundefined reference to `g()'\n"
                            "undefined reference to `g()'\nundefined reference to `cublas'\n"),
            "undefined reference to `g()'\nundefined reference to `cublas'\n");
  EXPECT_EQ(foreign_symbols("undefined reference to `never closed\n"), "");
  EXPECT_EQ(without_linker_warnings(
                "a warning of nvcc\n/usr/bin/ld: x.o: in function `f':\n"
                "x.cpp:(.text+0x79): warning: undefined reference to `cudaFree'\nlast"),
            "a warning of nvcc\nlast");
}

// With a CUDA Toolkit; nvcc takes seconds.
class CudaBuilderTest : public BuilderTest {
 protected:
  void SetUp() override {
    if (!builder_.cuda_toolkit()) GTEST_SKIP() << kNoToolkit;
  }
  BuildResult build_cuda(const std::string& source) {
    return builder_.build({{{"submission.cu", source}}, {}, 120, Language::cuda});
  }
};

TEST_F(CudaBuilderTest, EmbedsPtxAndLeavesTheRuntimeOpen) {
  const std::string source =
      "#include <cstdio>\n#include <assay/abi.h>\n__global__ void k(int* p) { *p = 1; }\n"
      "extern \"C\" void f(int* p) { k<<<1, 1>>>(p); std::puts(\"x\"); }\n";
  const BuildResult first = build_cuda(source), second = build_cuda(source);
  ASSERT_EQ(first.record.verdict, Verdict::ok) << first.record.log;
  EXPECT_EQ(first.record.log, "");
  EXPECT_TRUE(second.record.cached);
  EXPECT_THAT(first.record.command, HasSubstr("compute_90"));
  const std::string library = read_file(first.library);
  EXPECT_THAT(library, HasSubstr(".visible .entry _Z1kPi"));
  EXPECT_EQ(::dlopen(first.library.c_str(), RTLD_NOW), nullptr);
  EXPECT_THAT(::dlerror(), HasSubstr("undefined symbol: "));
}

TEST_F(CudaBuilderTest, WhatOnlyOneGenerationHasIsCompiledForIt) {
  const std::string source =
      "__global__ void k() { asm volatile(\"wgmma.fence.sync.aligned;\"); }\n";
  for (const bool cached : {false, true}) {
    const BuildResult result = build_cuda(source);
    ASSERT_EQ(result.record.verdict, Verdict::ok) << result.record.log;
    EXPECT_EQ(result.record.cached, cached);
    EXPECT_THAT(result.record.command, HasSubstr("compute_90a"));
  }
}

TEST_F(CudaBuilderTest, ErrorsAreTheSubmissions) {
  const BuildResult syntax = build_cuda("__global__ void k( { }\n");
  EXPECT_EQ(syntax.record.verdict, Verdict::build_error);
  EXPECT_THAT(syntax.record.log, HasSubstr("submission.cu(1)"));
  const BuildResult foreign = build_cuda("int g(); extern \"C\" int f() { return g(); }\n");
  EXPECT_EQ(foreign.record.verdict, Verdict::build_error);
  EXPECT_THAT(foreign.record.log, HasSubstr("undefined reference to `g()'"));
  const BuildResult host = build_cuda("#include \"/etc/passwd\"\n");
  EXPECT_EQ(host.record.verdict, Verdict::build_error);
  EXPECT_THAT(host.record.log, Not(HasSubstr("root:")));
}

TEST_F(BuilderTest, LeavesNothingBehindInTheCacheButLibraries) {
  build("int f( { }");
  build("extern \"C\" int h() { return 3; }");
  for (const auto& entry : fs::directory_iterator(cache_)) {
    EXPECT_EQ(entry.path().extension(), ".so") << entry.path();
  }
}

}  // namespace
}  // namespace assay
