#include "build/builder.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "assay/error.h"
#include "sandbox/landlock.h"
#include "sandbox/probe.h"
#include "sandbox/worker_image.h"
#include "support/error_of.h"
#include "support/paths.h"
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
        builder_(tier_, testing::source_dir(), cache_) {}
  ~BuilderTest() override {
    std::error_code ec;
    fs::remove_all(cache_, ec);
  }

  BuildResult build(const std::string& source, double limit_s = 60) {
    return builder_.build({{{"submission.cpp", source}}, {}, limit_s});
  }
  // A program for the shell, beside the cache's entries.
  fs::path script(const std::string& name, const std::string& commands) const {
    fs::path path = cache_ / name;
    std::ofstream(path) << "#!/bin/sh\n" << commands << "\n";
    fs::permissions(path, fs::perms(0755));
    return path;
  }

  fs::path cache_;
  sandbox::Tier tier_;
  Builder builder_;
};

TEST_F(BuilderTest, CompilesForItsTarget) {
  EXPECT_EQ(builder_.target(), "native");
  EXPECT_THAT(build("int x;").record.command, HasSubstr(" -march=native "));
#if defined(__x86_64__)
  const std::string source = "#ifdef __SSE3__\n#error more than the least\n#endif\n";
  Builder least(tier_, testing::source_dir(), cache_, kDefaultCacheLimit, "x86-64");
  const BuildResult built = least.build({{{"submission.cpp", source}}, {}});
  EXPECT_EQ(built.record.verdict, Verdict::ok) << built.record.log;
  EXPECT_THAT(built.record.command, HasSubstr(" -march=x86-64 "));
  // A library compiled for another target is not used.
  EXPECT_EQ(build(source).record.verdict, Verdict::build_error);
#endif
}

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

// libfmt is installed wherever assay is built.
TEST_F(BuilderTest, LibrariesThatHappenToBeInstalledAreNotIncluded) {
  const BuildResult direct = build("#define FMT_HEADER_ONLY\n#include <fmt/core.h>\n");
  EXPECT_EQ(direct.record.verdict, Verdict::build_error);
  EXPECT_THAT(direct.record.log, HasSubstr("it includes /usr/include/fmt/core.h"));
  const BuildResult around =
      build("#include \"../usr/include/fmt/../fmt/core.h\"\n#include <vector>\n");
  EXPECT_EQ(around.record.verdict, Verdict::build_error);
  const BuildResult own = build(
      "#include <bits/stdc++.h>\n#include <immintrin.h>\n"
      "#include <omp.h>\n#include <sys/mman.h>\n");
  EXPECT_EQ(own.record.verdict, Verdict::ok) << own.record.log;
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

// Takes long enough to compile that another request a moment later meets it.
const char* const kSlowSource =
    "#include <map>\n#include <string>\n"
    "extern \"C\" int f(const char* s) { return std::map<std::string, int>{{s, 1}}.at(s); }\n";

TEST_F(BuilderTest, ThreadsThatAskForTheSameCompileItOnce) {
  std::atomic<int> compiled{0}, good{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const BuildResult result = build(kSlowSource);
        good += result.record.verdict == Verdict::ok && fs::exists(result.library) ? 1 : 0;
        compiled += result.record.cached ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(good, 4);
  EXPECT_EQ(compiled, 1);
}

TEST_F(BuilderTest, ProcessesThatAskForTheSameCompileItOnce) {
  constexpr int kCompiled = 1, kCached = 2, kFailed = 3;
  const auto outcome = [&] {
    Builder own(tier_, testing::source_dir(), cache_);
    const BuildResult result = own.build({{{"submission.cpp", kSlowSource}}, {}, 60});
    if (result.record.verdict != Verdict::ok) return kFailed;
    return result.record.cached ? kCached : kCompiled;
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(outcome());
  const int mine = outcome();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(std::min(mine, WEXITSTATUS(status)), kCompiled);
  EXPECT_EQ(std::max(mine, WEXITSTATUS(status)), kCached);
}

TEST_F(BuilderTest, ALibraryInUseOutlivesItsEntryInTheCache) {
  const BuildResult result = build("extern \"C\" int f() { return 7; }");
  const Builder empty(tier_, testing::source_dir(), cache_, 0);  // a cache that may hold nothing
  EXPECT_EQ(builder_.cache().usage().entries, 0u);
  void* handle = ::dlopen(result.library.c_str(), RTLD_NOW);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  ::dlclose(handle);
}

TEST_F(BuilderTest, TheCheckCompilesWhateverTheCacheHolds) {
  ASSERT_NO_THROW(builder_.check());
  const auto entries = builder_.cache().usage().entries;
  ASSERT_NO_THROW(builder_.check());
  EXPECT_EQ(builder_.cache().usage().entries, entries);
}

// A compiler that cannot work in the sandbox: it needs a folder that is not visible there.
TEST_F(BuilderTest, TheCheckSaysThatTheCompilerDoesNotWork) {
  const fs::path compiler = script("broken-g++", "echo 'g++ 0'; [ \"$1\" = --version ]");
  ::setenv("ASSAY_CXX", compiler.c_str(), 1);
  Builder builder(tier_, testing::source_dir(), cache_);
  ::unsetenv("ASSAY_CXX");
  EXPECT_THAT(testing::error_of([&] { builder.check(); }), HasSubstr(compiler.string()));
}

TEST_F(BuilderTest, ACompilerOfUnknownVersionIsRefused) {
  const fs::path compiler = script("my g++", "echo out of order >&2; exit 1");
  ::setenv("ASSAY_CXX", compiler.c_str(), 1);
  const std::string why =
      testing::error_of([&] { const Builder builder(tier_, testing::source_dir(), cache_); });
  ::unsetenv("ASSAY_CXX");
  EXPECT_THAT(why, HasSubstr(compiler.string() + " --version prints nothing"));
}

TEST_F(BuilderTest, SourcesThatSpeakOfAFullDiskDoNotCompile) {
  const BuildResult result = build("#error No space left on device\n");
  EXPECT_EQ(result.record.verdict, Verdict::build_error);
}

// A folder with a small disk, mounted for the test and unmounted afterwards.
class SmallDisk {
 public:
  SmallDisk(const fs::path& folder, const char* options) : folder_(folder) {
    fs::create_directories(folder_);
    mounted_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
    fs::remove_all(folder_);
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path folder_;
  bool mounted_ = false;
};

TEST_F(BuilderTest, AFullDiskIsAFaultOfTheHarness) {
  // `assay attack` may run beside this, and takes mounts named after assay for its attacks'.
  const fs::path folder = fs::temp_directory_path() / ("full-disk-" + std::to_string(::getpid()));
  const SmallDisk disk(folder, "size=512k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small tmpfs needs root";
  Builder builder(tier_, testing::source_dir(), folder);
  std::string rows;  // the compiler's output for them does not fit
  for (int i = 0; i < 200000; ++i) rows += std::to_string(i) + ",";
  const std::string fits = "extern \"C\" const int t[] = {" + rows + "};";
  try {
    const BuildResult result = builder.build({{{"submission.cpp", fits}}, {}, 60});
    FAIL() << code(result.record.verdict) << result.record.log;
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr(folder.string()));
    EXPECT_THAT(e.what(), HasSubstr("No space left"));
  }
}

TEST_F(BuilderTest, AFolderThatVanishesIsAFaultOfTheHarness) {
  fs::remove_all(builder_.cache().workplace());
  std::ofstream(builder_.cache().workplace()) << "in the way";
  try {
    build("extern \"C\" int f() { return 8; }");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr(builder_.cache().workplace().string()));
  }
}

TEST_F(BuilderTest, NoMemoryIsAFaultOfTheHarness) {
  const BuildRequest request{{{"submission.cpp", std::string(64u << 20, ' ')}}, {}, 60};
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{16u << 20, 16u << 20};  // more is mapped already: nothing large fits
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      builder_.build(request);
    } catch (const Error& e) {
      ::_exit(std::string(e.what()).find("memory") != std::string::npos ? 0 : 1);
    } catch (...) {
      ::_exit(2);
    }
    ::_exit(3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// As in a container: root in a home that is closed to others, without namespaces.
TEST(ClosedHome, SandboxesOfTheLandlockTierBuildAndLoad) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user's programs keep that user's id";
  if (sandbox::landlock_abi() == 0) GTEST_SKIP() << "no Landlock in this kernel";
  const fs::path home = fs::temp_directory_path() / ("assay-home-" + std::to_string(::getpid()));
  fs::create_directory(home);
  fs::permissions(home, fs::perms(0700));
  for (const bool cached : {false, true}) {
    Builder builder(sandbox::Tier::landlock, testing::source_dir(), home / "cache");
    const BuildResult result =
        builder.build({{{"submission.cpp", "extern \"C\" int f() { return 9; }"}}, {}, 60});
    EXPECT_EQ(result.record.verdict, Verdict::ok) << result.record.log;
    EXPECT_EQ(result.record.cached, cached);
    EXPECT_THAT(result.record.command, HasSubstr(" /src/submission.cpp"));
    EXPECT_EQ(sandbox::why_not_loaded(sandbox::Tier::landlock, sandbox::worker_image_fd(),
                                      result.library),
              "");
    EXPECT_NO_THROW(builder.check());
    const BuildResult broken = builder.build({{{"submission.cpp", "int f( { }"}}, {}, 60});
    EXPECT_EQ(broken.record.verdict, Verdict::build_error);
    EXPECT_EQ(broken.record.log.find("/src/submission.cpp:1"), 0u) << broken.record.log;
  }
  fs::remove_all(home);
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

// Needs a CUDA Toolkit; nvcc takes seconds.
TEST_F(BuilderTest, WarningsAreKeptWithTheLibraryAndChangeNothing) {
  const std::string source =
      "extern \"C\" int f(int a, unsigned b) {\n  int unused;\n  return a < b;\n}\n";
  BuildRequest request{{{"submission.cpp", source}}, {}};
  const BuildResult quiet = builder_.build(request);
  EXPECT_FALSE(quiet.warnings);
  request.warnings = true;
  for (const bool cached : {false, true}) {
    const BuildResult built = builder_.build(request);
    ASSERT_EQ(built.record.verdict, Verdict::ok) << built.record.log;
    EXPECT_EQ(built.record.cached, cached);
    EXPECT_EQ(built.record.log, "");
    EXPECT_EQ(read_file(built.library), read_file(quiet.library));
    ASSERT_TRUE(built.warnings);
    EXPECT_EQ(built.warnings->count, 2);
    EXPECT_THAT(built.warnings->first,
                ::testing::UnorderedElementsAre(HasSubstr("submission.cpp:3:"),
                                                HasSubstr("submission.cpp:2:7: warning: unused")));
  }
  // Without its warnings a library cannot be used: it is built again.
  for (const auto& entry : fs::directory_iterator(cache_)) {
    if (entry.path().extension() == ".warnings") fs::remove(entry.path());
  }
  Builder other(tier_, testing::source_dir(), cache_);
  const BuildResult again = other.build(request);
  EXPECT_FALSE(again.record.cached);
  EXPECT_TRUE(again.warnings);
}

TEST_F(BuilderTest, WarningsHideNoErrorHoweverManyTheyAre) {
  std::string source;
  for (int i = 0; i < 3000; ++i)
    source += "static int unused_function_of_a_long_name_" + std::to_string(i) +
              "(int parameter) { int variable; return 1; }\n";
  BuildRequest request{{{"submission.cpp", source + "int f() { return missing; }\n"}}, {}};
  request.warnings = true;
  const BuildResult broken = builder_.build(request);
  EXPECT_EQ(broken.record.verdict, Verdict::build_error);
  EXPECT_FALSE(broken.warnings);
  EXPECT_THAT(broken.record.log, HasSubstr("error: 'missing' was not declared"));
  request.sources = {{"submission.cpp", source + "int g(); int f() { return g(); }\n"}};
  const BuildResult unlinked = builder_.build(request);
  EXPECT_EQ(unlinked.record.verdict, Verdict::build_error);
  EXPECT_THAT(unlinked.record.log, HasSubstr("undefined reference"));
  request.sources = {{"submission.cpp", source}};
  const BuildResult built = builder_.build(request);
  ASSERT_EQ(built.record.verdict, Verdict::ok) << built.record.log;
  EXPECT_TRUE(built.warnings && built.warnings->cut);
  EXPECT_GT(built.warnings->count, 1000);
}

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

TEST_F(CudaBuilderTest, WarningsOfBothPassesAreKept) {
  BuildRequest request{{{"submission.cu",
                         "__global__ void k(int* p) { *p = 1; }\n"
                         "extern \"C\" int f(int* p, int a, unsigned b) {\n"
                         "  int never;\n  k<<<1, 1>>>(p);\n  return a < b;\n}\n"}},
                       {},
                       120,
                       Language::cuda};
  request.warnings = true;
  const BuildResult built = builder_.build(request);
  ASSERT_EQ(built.record.verdict, Verdict::ok) << built.record.log;
  ASSERT_TRUE(built.warnings);
  EXPECT_THAT(built.warnings->first,
              ::testing::UnorderedElementsAre(HasSubstr("submission.cu(3): warning #177-D"),
                                              HasSubstr("submission.cu:5:")));
  request.sources = {{"submission.cu", "int g(); extern \"C\" int f() { int a; return g(); }\n"}};
  EXPECT_THAT(builder_.build(request).record.log, HasSubstr("undefined reference to `g()'"));
}

// The way tests of answers are built: the host code as assembly, which is assembled and linked.
TEST_F(CudaBuilderTest, AssemblyObjectsAndLibrariesAreMadeInSteps) {
  BuildRequest kernel{{{"a.cu",
                        "__global__ void k(int* p) { *p = 1; }\n"
                        "extern \"C\" void f(int* p) { k<<<1, 1>>>(p); }\n"}},
                      {},
                      120,
                      Language::cuda};
  kernel.assembly = true;
  const BuildResult assembly = builder_.build(kernel);
  ASSERT_EQ(assembly.record.verdict, Verdict::ok) << assembly.record.log;
  const std::string text = read_file(assembly.library);
  EXPECT_THAT(text, HasSubstr("f:\n"));
  EXPECT_THAT(text, HasSubstr("call\t__cudaRegisterFatBinary@PLT"));

  const BuildResult object =
      builder_.build({.sources = {{"a.s", text}}, .headers = {}, .object = true});
  ASSERT_EQ(object.record.verdict, Verdict::ok) << object.record.log;
  const auto joined = [&](const std::string& source) {
    BuildRequest tests{{{"test.cu", source}}, {}, 120, Language::cuda};
    tests.object = true;
    const BuildResult built = builder_.build(tests);
    EXPECT_EQ(built.record.verdict, Verdict::ok) << built.record.log;
    return builder_.build({.sources = {{"nothing.s", "\t.text\n"}},
                           .headers = {},
                           .language = Language::cuda,
                           .object = true,
                           .objects = {built.library},
                           .reserved = {"__cudaLaunchKernel", "cudaGetLastError"}});
  };
  const auto linked = [&](const std::string& source) {
    return builder_.build({.sources = {{"nothing.s", "\t.text\n"}},
                           .headers = {},
                           .language = Language::cuda,
                           .objects = {object.library, joined(source).library},
                           .exports = {"g"}});
  };
  const BuildResult library = linked(
      "extern \"C\" void f(int*);\n__global__ void z() {}\n"
      "extern \"C\" void g() { f(nullptr); z<<<1, 1>>>(); cudaGetLastError(); }\n");
  ASSERT_EQ(library.record.verdict, Verdict::ok) << library.record.log;
  EXPECT_THAT(read_file(library.library), HasSubstr(".visible .entry _Z1kPi"));
  EXPECT_THAT(linked("int h();\nextern \"C\" int g() { return h(); }\n").record.log,
              HasSubstr("undefined"));
  for (const char* how : {".globl", ".weak", ".hidden"}) {
    const BuildResult stolen =
        joined(fmt::format("asm(\".globl __cudaLaunchKernel\\n{} "
                           "__cudaLaunchKernel\\n__cudaLaunchKernel: ret\\n\");\n",
                           how));
    EXPECT_EQ(stolen.record.verdict, Verdict::build_error) << how;
    EXPECT_THAT(stolen.record.log, HasSubstr("it defines __cudaLaunchKernel"));
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

TEST_F(BuilderTest, LeavesNothingBehindButLibraries) {
  const auto extensions = [](const fs::path& folder) {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(folder)) {
      result.push_back(entry.path().extension());
    }
    return result;
  };
  build("int f( { }");
  build("extern \"C\" int h() { return 3; }");
  EXPECT_THAT(extensions(builder_.cache().workplace()), ::testing::ElementsAre(".so"));
  EXPECT_THAT(extensions(cache_), ::testing::UnorderedElementsAre(".so", ""));  // and the workplace
}

}  // namespace
}  // namespace assay
