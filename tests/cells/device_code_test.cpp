#include "cells/device_code.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <regex>
#include <string>

#include "assay/error.h"

namespace assay::cells {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPtx =
    ".version 9.0\n.target sm_90\n.address_size 64\n\n"
    ".global .align 4 .b8 _ZL5table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
    ".visible .entry _Z3addPf(\n\t.param .u64 .ptr .align 1 _Z3addPf_param_0\n)\n{\n"
    "\t.reg .b64 \t%rd<2>;\n\n"
    "\tld.param.b64 \t%rd1, [_Z3addPf_param_0];\n"
    "\t@%p1 bra \t$L__BB0_1;\n\tbra.uni \t$L__BB0_2;\n\n$L__BB0_1:\n"
    "\t{ // callseq 0, 0\n\t.param .b64 param0;\n\tcall.uni _Z3subv;\n\t} // callseq 0\n"
    "$L__BB0_2:\n\tret;\n\n}\n";

// Numbers as nvcc writes them: a container with one entry, which holds PTX.
std::string assembly_of(const std::string& ptx, std::uint16_t kind = 1) {
  std::string text = ptx;
  text.resize((ptx.size() / 8 + 1) * 8);
  std::string bytes(16 + 64, '\0');
  const auto put = [&](std::size_t at, auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  put(0, std::uint32_t{0xba55ed50});
  put(4, std::uint16_t{1});
  put(6, std::uint16_t{16});
  put(8, std::uint64_t{64 + text.size()});
  put(16, kind);
  put(20, std::uint32_t{64});
  put(24, std::uint64_t{text.size()});
  bytes += text;
  std::string quads;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    quads += fmt::format("{}{:#018x}{}", at % 16 == 0 ? ".quad " : ",", value,
                         at % 16 != 0 || at + 8 == bytes.size() ? "\n" : "");
  }
  return "\t.text\n#APP\n\t.section .nv_fatbin, \"a\"\n.align 8\nfatbinData:\n" + quads +
         ".text\n\n#NO_APP\n\t.string\t\"_Z3addPf\"\n\t.string\t\"add\"\n\tcall\tf@PLT\n";
}

// The PTX in an assembly from assembly_of().
std::string ptx_in(const std::string& assembly) {
  std::string bytes;
  const std::size_t begin = assembly.find("fatbinData:"), end = assembly.find("\n.text", begin);
  const std::string quads = assembly.substr(begin, end - begin);
  const std::regex number("0x[0-9a-f]+");
  for (std::sregex_iterator i(quads.begin(), quads.end(), number), last; i != last; ++i) {
    const std::uint64_t value = std::stoull(i->str(), nullptr, 16);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::uint64_t payload = 0, all = 0;
  std::memcpy(&all, bytes.data() + 8, sizeof all);
  std::memcpy(&payload, bytes.data() + 24, sizeof payload);
  EXPECT_EQ(all, bytes.size() - 16);
  EXPECT_EQ(payload, bytes.size() - 80);
  const std::string text = bytes.substr(80);
  EXPECT_NE(text.find('\0'), std::string::npos);
  return text.substr(0, text.find('\0'));
}

std::string without_idle(const std::string& ptx) {
  return std::regex_replace(ptx, std::regex("\t(mov\\.b32 \t|\\.reg \\.b32 \t)%idle[^\n]*\n"), "");
}

Disguise disguise(const char* prefix, std::uint64_t seed) {
  return {.prefix = prefix, .seed = seed};
}

TEST(DeviceCode, NamesAreOthersInThePtxAndWhereTheHostRegistersThem) {
  const std::string made = with_disguised_device_code(assembly_of(kPtx), disguise("f12", 1));
  const std::string ptx = ptx_in(made);
  EXPECT_THAT(made, Not(HasSubstr("_Z3addPf")));
  EXPECT_THAT(ptx, Not(HasSubstr("_Z")));
  EXPECT_THAT(ptx, HasSubstr(".visible .entry f12_1("));
  EXPECT_THAT(made, HasSubstr("\t.string\t\"f12_1\"\n"));
  EXPECT_THAT(made, HasSubstr("\t.string\t\"add\"\n\tcall\tf@PLT\n"));
}

TEST(DeviceCode, TwinsAreTheSameButForNamesAndIdleInstructions) {
  const auto ptx = [](std::uint64_t seed) {
    return ptx_in(with_disguised_device_code(assembly_of(kPtx), disguise("f12", seed)));
  };
  std::size_t lengths[8];
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(without_idle(ptx(seed)), without_idle(ptx(0)));
    lengths[seed] = ptx(seed).size();
  }
  EXPECT_GT(*std::ranges::max_element(lengths), *std::ranges::min_element(lengths));
  EXPECT_EQ(ptx(3), ptx(3));
}

// The device's assembler may refuse idle instructions inside a call sequence and after an
// unconditional exit.
TEST(DeviceCode, IdleInstructionsStandWhereAnyInstructionMay) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::map<std::string, std::string, std::less<>> names;
    const std::string ptx = disguised_ptx(kPtx, disguise("f", seed), names);
    EXPECT_THAT(ptx, Not(HasSubstr("$L__BB0_2;\n\tmov.b32 \t%idle")));
    EXPECT_THAT(ptx, Not(HasSubstr("param0;\n\tmov.b32")));
    EXPECT_THAT(ptx, Not(HasSubstr("ret;\n\tmov.b32")));
    EXPECT_THAT(ptx, HasSubstr("{\n\t.reg .b32 \t%idle<4>;\n"));
  }
}

TEST(DeviceCode, HostCodeAloneStaysAsItIs) {
  const std::string host = "\t.text\nf:\n\tret\n";
  EXPECT_EQ(with_disguised_device_code(host, disguise("f", 1)), host);
}

TEST(DeviceCode, WhatIsNotOnePtxIsAFault) {
  const std::string elf = assembly_of("ELF", 2);
  EXPECT_THROW(with_disguised_device_code(elf, disguise("f", 1)), Error);
  EXPECT_THROW(with_disguised_device_code("\nfatbinData:\n.quad 0x1\n.text\n", disguise("f", 1)),
               Error);
}

}  // namespace
}  // namespace assay::cells
