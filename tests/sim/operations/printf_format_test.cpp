#include "sim/operations/printf_format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

namespace assay::sim {
namespace {

// Arguments laid out as a caller does.
class Arguments {
 public:
  template <class T>
  Arguments& operator<<(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T) + sizeof(T));
    std::memcpy(bytes_.data() + bytes_.size() - sizeof(T), &value, sizeof(T));
    return *this;
  }
  PrintfResult print(const std::string& format) const {
    return format_printf(format,
                         {[this](std::uint64_t at, unsigned bytes) {
                            std::uint64_t value = 0;
                            std::memcpy(&value, bytes_.data() + at, bytes);
                            return value;
                          },
                          [](std::uint64_t address) { return fmt::format("s{}", address); }});
  }

 private:
  std::vector<char> bytes_;
};

TEST(PrintfFormat, Integers) {
  EXPECT_EQ((Arguments() << -5 << 7u << 255 << 8).print("%d %u %#x %o").text, "-5 7 0xff 10");
  EXPECT_EQ((Arguments() << 1 << -9LL << 2 << ~0ull).print("%i %lld %+d %llu").text,
            "1 -9 +2 18446744073709551615");
  EXPECT_EQ((Arguments() << 0x12345 << 0x1ff).print("%hd %hhu").text, "9029 255");
  EXPECT_EQ((Arguments() << -1L << std::size_t{3}).print("%ld %zu").text, "-1 3");
}

TEST(PrintfFormat, WidthsAndPrecisions) {
  EXPECT_EQ((Arguments() << 6 << 42 << -6 << 42).print("[%*d] [%*d]").text, "[    42] [42    ]");
  EXPECT_EQ((Arguments() << 8 << 2 << 3.14159 << 2.5).print("[%*.*f] [%-8.1e]").text,
            "[    3.14] [2.5e+00 ]");
  EXPECT_EQ((Arguments() << 5 << std::uint64_t{12345}).print("%05d|%.2s").text, "00005|s1");
  EXPECT_EQ((Arguments() << 1).print("%99999999d").text.size(), 4096u);
}

TEST(PrintfFormat, OthersAndWhatIsNone) {
  EXPECT_EQ((Arguments() << 'x' * 1 << std::uint64_t{0x10}).print("%c %p").text, "x 0x10");
  EXPECT_EQ(Arguments().print("100%% %n %y %").text, "100% %n %y %");
  EXPECT_EQ((Arguments() << 1 << 2.0).print("%d%g").arguments, 2u);
}

TEST(PrintfFormat, LongTexts) { EXPECT_EQ((Arguments() << 1e300).print("%f").text.size(), 308u); }

}  // namespace
}  // namespace assay::sim
