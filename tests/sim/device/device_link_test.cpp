// Kernels of several modules that are linked.
#include <array>

#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

class Linked : public DeviceTest {
 protected:
  void load_linked(const std::vector<std::string>& bodies) {
    std::vector<std::string> texts;
    for (const std::string& body : bodies) texts.push_back(module_around(body));
    module = device.load_linked(std::vector<std::string_view>(texts.begin(), texts.end()));
  }
  std::string why_not(const std::vector<std::string>& bodies) {
    try {
      load_linked(bodies);
    } catch (const Unsupported& e) {
      return e.what();
    }
    return "";
  }
};

// k(out): out[0] = scale(5) + mine + table[0](1), where scale, table and counter are another's.
const char* const kKernel = R"(
.extern .func (.param .b32 r) scale(.param .b32 a);
.extern .global .u32 counter;
.extern .global .u64 table[];
.global .u32 mine = 1000;
.visible .entry k(.param .u64 out) {
  .reg .b32 %a, %b, %c; .reg .b64 %p, %f;
  .param .b32 x; .param .b32 y;
  st.param.b32 [x], 5;
  call.uni (y), scale, (x);
  ld.param.b32 %a, [y];
  ld.global.b32 %b, [mine];
  add.u32 %a, %a, %b;
  ld.global.b64 %f, [table];
  st.param.b32 [x], 1;
  call (y), %f, (x), prototype;
  prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
  ld.param.b32 %b, [y];
  add.u32 %a, %a, %b;
  red.global.add.u32 [counter], 1;
  ld.param.u64 %p, [out];
  st.global.b32 [%p], %a;
  ret;
}
)";
const char* const kFunctions = R"(
.visible .global .u32 counter = 40;
.global .u32 mine = 7;
.visible .func (.param .b32 r) scale(.param .b32 a) {
  .reg .b32 %a, %b;
  ld.param.b32 %a, [a];
  ld.global.b32 %b, [mine];
  mul.lo.u32 %a, %a, %b;
  st.param.b32 [r], %a;
  ret;
}
.visible .global .u64 table[1] = {scale};
)";

TEST_F(Linked, FunctionsVariablesAndTablesOfAnotherModule) {
  load_linked({kKernel, kFunctions});
  const std::uint64_t out = upload(std::vector<std::uint32_t>(1));
  const LaunchResult r = launch(shape(1, 1), "k", out);
  EXPECT_EQ(r.status, LaunchStatus::ok);
  EXPECT_TRUE(r.findings.empty());
  EXPECT_EQ(download<std::uint32_t>(out, 1)[0], 5u * 7 + 1000 + 7);
  const VariableInfo counter = device.variable(module, "counter");
  EXPECT_EQ(download<std::uint32_t>(counter.address, 1)[0], 41u);
}

TEST_F(Linked, WhatNoModuleDefinesIsNamedAtTheLaunch) {
  load_linked({kKernel, ".visible .global .u64 table[1]; .visible .global .u32 counter;"});
  try {
    launch(shape(1, 1), "k", std::uint64_t{0});
    FAIL() << "launched";
  } catch (const Unsupported& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("scale"));
  }
}

TEST_F(Linked, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(why_not({".visible .global .u32 x;", ".visible .global .u32 x;"}),
            "linking the program's modules: x has several definitions");
  // The device stays usable.
  load_linked({kKernel, kFunctions});
  EXPECT_NE(device.variable(module, "counter").address, 0u);
}

}  // namespace
}  // namespace assay::sim
