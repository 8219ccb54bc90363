#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/ptx/link.h"
#include "sim/ptx/support.h"

namespace assay::sim::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Module linked(const std::vector<std::string>& texts) {
  std::vector<Module> modules;
  for (const std::string& text : texts) modules.push_back(parse_module(text));
  return link(std::move(modules));
}

std::string link_error(const std::vector<std::string>& texts) {
  try {
    linked(texts);
  } catch (const LinkError& e) {
    return e.what();
  }
  return "";
}

std::vector<std::string> names(const auto& items) {
  std::vector<std::string> found;
  for (const auto& item : items) found.push_back(item.name);
  return found;
}

TEST(PtxLink, AModuleAloneStaysAsItIs) {
  const Module m = linked({".extern .func f; .global .u32 x;"});
  EXPECT_THAT(names(m.functions), ElementsAre("f"));
  EXPECT_THAT(names(m.variables), ElementsAre("x"));
}

TEST(PtxLink, DefinitionsReplaceDeclarationsOnEitherSide) {
  const Module m =
      linked({".extern .func f; .visible .func g { ret; } .extern .global .u32 x;",
              ".visible .func f { ret; } .extern .func g; .visible .global .u32 x = 3;"});
  EXPECT_THAT(names(m.functions), ElementsAre("g", "f"));
  EXPECT_TRUE(m.functions[0].defined && m.functions[1].defined);
  EXPECT_THAT(names(m.variables), ElementsAre("x"));
  EXPECT_FALSE(m.variables[0].is_extern);
}

TEST(PtxLink, WhatNoModuleDefinesIsDeclaredOnce) {
  const Module m = linked({".extern .func vprintf; .extern .global .u32 x;",
                           ".extern .func vprintf; .extern .global .u32 x;"});
  EXPECT_THAT(names(m.functions), ElementsAre("vprintf"));
  EXPECT_THAT(names(m.variables), ElementsAre("x"));
}

TEST(PtxLink, OfWeakDefinitionsTheFirstCountsUnlessOneIsNotWeak) {
  const auto value = [](const std::string& a, const std::string& b) {
    const Module m = linked({a + " .global .u8 x = 1;", b + " .global .u8 x = 2;"});
    EXPECT_EQ(m.variables.size(), 1u);
    return std::to_integer<int>(m.variables.at(0).initial.at(0));
  };
  EXPECT_EQ(value(".weak", ".weak"), 1);
  EXPECT_EQ(value(".weak", ".visible"), 2);
  EXPECT_EQ(value(".visible", ".weak"), 1);
  EXPECT_EQ(value(".common", ".visible"), 2);
  EXPECT_EQ(link_error({".visible .global .u8 x;", ".visible .global .u8 x;"}),
            "x has several definitions");
  EXPECT_EQ(link_error({".entry k() { ret; }", ".entry k() { ret; }"}),
            "k has several definitions");
}

TEST(PtxLink, AFunctionIsNoVariable) {
  EXPECT_EQ(link_error({".extern .func x;", ".visible .global .u8 x;"}),
            "x is a function in one module and a variable in another");
}

TEST(PtxLink, InternalNamesStayApart) {
  const std::string uses =
      ".global .u32 x; .func f { ret; } .global .u64 p[2] = {x, f};\n"
      ".visible .entry {} () { .reg .b64 %a; .reg .b32 %b; mov.u64 %a, x; ld.global.b32 %b, [x]; "
      "call.uni f; ret; }";
  const auto with = [&](const std::string& entry) {
    std::string text = uses;
    return text.replace(text.find("{} ()"), 2, entry);
  };
  const Module m = linked({with("k"), with("l")});
  EXPECT_THAT(names(m.variables), ElementsAre("x", "p", "x@1", "p@1"));
  EXPECT_THAT(names(m.functions), ElementsAre("f", "k", "f@1", "l"));
  const auto uses_of = [](const Function& f) {
    return std::vector<std::string>{f.body.at(0).operands.at(1).name,
                                    f.body.at(1).operands.at(1).elements.at(0).name,
                                    f.body.at(2).operands.at(0).name};
  };
  EXPECT_THAT(uses_of(m.functions[1]), ElementsAre("x", "x", "f"));
  EXPECT_THAT(uses_of(m.functions[3]), ElementsAre("x@1", "x@1", "f@1"));
  EXPECT_EQ(m.variables[3].relocations.at(0).symbol, "x@1");
  EXPECT_EQ(m.variables[3].relocations.at(1).symbol, "f@1");
}

TEST(PtxLink, AnInternalNameGivesWayToAnothersExternalOne) {
  EXPECT_THAT(names(linked({".global .u8 x;", ".visible .global .u8 x;"}).variables),
              ElementsAre("x@0", "x"));
  EXPECT_THAT(names(linked({".visible .global .u8 x;", ".global .u8 x;"}).variables),
              ElementsAre("x", "x@1"));
}

TEST(PtxLink, EachModuleHasItsDynamicSharedMemory) {
  const Module m =
      linked({".extern .shared .align 4 .b8 all[];", ".extern .shared .align 16 .b8 all[];"});
  EXPECT_THAT(names(m.variables), ElementsAre("all", "all@1"));
  EXPECT_EQ(m.variables[1].align, 16u);
}

TEST(PtxLink, PlacesInSourcesFollowTheirModule) {
  const auto module = [](const std::string& name) {
    return ".visible .entry " + name + "() {\n.loc 1 5 0\nret;\n.loc 1 9 0, function_name f, " +
           "inlined_at 1 7 0\nret;\n}\n.file 1 \"" + name + ".cu\"\n";
  };
  const Module m = linked({module("a"), module("b")});
  ASSERT_EQ(m.functions.size(), 2u);
  for (const Function& f : m.functions) {
    EXPECT_EQ(m.describe(f.body.at(0).where), f.name + ".cu:5");
    EXPECT_EQ(m.describe(f.body.at(1).where), f.name + ".cu:9, inlined at " + f.name + ".cu:7");
  }
}

TEST(PtxLink, NoModulesAreAnEmptyOne) { EXPECT_THAT(linked({}).functions, IsEmpty()); }

}  // namespace
}  // namespace assay::sim::ptx
