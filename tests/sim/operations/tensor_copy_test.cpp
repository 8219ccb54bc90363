// cp.async.bulk.tensor: which elements are copied where, and what is found.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sim/device/device_fixture.h"
#include "sim/tensor_map.h"

namespace assay::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Element = TensorMap::Element;
using Swizzle = TensorMap::Swizzle;
using Place = std::array<std::int32_t, 5>;

// k(map, out, place, bytes, offset): %map is the generic address of the tensor map, %c0 to %c4 are
// the place, %bytes those of a box, %to is `offset` bytes into tile; %p1: the first thread.
std::string tensor_kernel(std::string_view body, std::string_view before = {}) {
  return std::string(before) + R"(
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .align 4 .b8 place[20],
                  .param .u32 bytes, .param .u32 offset) {
  .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>, %c<5>; .reg .b64 %rd<16>;
  .reg .b32 %t, %to, %bytes; .reg .b64 %map, %base, %out;
  .shared .align 1024 .b8 tile[16384];
  .shared .align 8 .b8 full[8];
  mov.u32 %t, %tid.x;
  setp.eq.u32 %p1, %t, 0;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u64 %base, [out];
  mad.wide.u32 %out, %t, 4, %base;
  ld.param.u32 %c0, [place];
  ld.param.u32 %c1, [place+4];
  ld.param.u32 %c2, [place+8];
  ld.param.u32 %c3, [place+12];
  ld.param.u32 %c4, [place+16];
  ld.param.u32 %bytes, [bytes];
  ld.param.u32 %to, [offset];
  mov.u32 %r1, tile;
  add.u32 %to, %to, %r1;
  @%p1 mbarrier.init.shared.b64 [full], 1;
  bar.sync 0;
)" + std::string(body) +
         "\n  ret;\n}\n";
}

std::string coordinates(unsigned rank) {
  std::string text = "{%c0";
  for (unsigned d = 1; d < rank; ++d) text += fmt::format(", %c{}", d);
  return text + "}";
}

std::string fetch(unsigned rank) {
  return fmt::format(R"(
  @%p1 cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      [%to], [%map, {}], [full];
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd1, [full], %bytes;
)",
                     rank, coordinates(rank));
}

constexpr std::string_view kWait = R"(
wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
  @!%p2 bra wait;
)";

// Words of the tile, from %to on, go to out.
constexpr std::string_view kShow = R"(
  mov.u32 %r2, 0;
show:
  mad.lo.u32 %r3, %t, 4, %r2;
  setp.ge.u32 %p3, %r3, %bytes;
  @%p3 bra shown;
  add.u32 %r4, %to, %r3;
  ld.shared.u32 %r5, [%r4];
  cvt.u64.u32 %rd2, %r3;
  add.u64 %rd2, %base, %rd2;
  st.global.u32 [%rd2], %r5;
  add.u32 %r2, %r2, 128;
  bra show;
shown:
)";

// The opposite: words of out go to the tile.
constexpr std::string_view kFill = R"(
  mov.u32 %r2, 0;
fill:
  mad.lo.u32 %r3, %t, 4, %r2;
  setp.ge.u32 %p3, %r3, %bytes;
  @%p3 bra filled;
  cvt.u64.u32 %rd2, %r3;
  add.u64 %rd2, %base, %rd2;
  ld.global.u32 %r5, [%rd2];
  add.u32 %r4, %to, %r3;
  st.shared.u32 [%r4], %r5;
  add.u32 %r2, %r2, 128;
  bra fill;
filled:
  fence.proxy.async.shared::cta;
  bar.sync 0;
)";

// `reduction`: ".add" in cp.reduce, or nothing.
std::string send(unsigned rank, std::string_view reduction = {}) {
  return fmt::format(R"(
  @%p1 cp{}.async.bulk.tensor.{}d.global.shared::cta{}.tile.bulk_group [%map, {}], [%to];
  @%p1 cp.async.bulk.commit_group;
  @%p1 cp.async.bulk.wait_group 0;
)",
                     reduction.empty() ? "" : ".reduce", rank, reduction, coordinates(rank));
}

// A tensor and a box of it.
struct Case {
  TensorMapRequest request;
  Place place{};
  std::uint32_t offset = 0;  // of the box in shared memory

  std::uint32_t element_bytes() const {
    TensorMap m;
    m.element = static_cast<Element>(request.element);
    return m.element_bytes();
  }
  std::uint32_t extent(unsigned d) const {
    const std::uint32_t step = d == 0 ? 1 : request.step[d];
    return (request.box[d] + step - 1) / step;
  }
  std::uint64_t box_bytes() const {
    std::uint64_t bytes = element_bytes();
    for (unsigned d = 0; d < request.rank; ++d) bytes *= extent(d);
    return bytes;
  }
  std::uint64_t tensor_bytes() const {
    std::uint64_t bytes = request.size[0] * element_bytes();
    for (unsigned d = 1; d < request.rank; ++d)
      bytes += (request.size[d] - 1) * request.stride_bytes[d - 1];
    return bytes;
  }

  // Calls f(in shared memory, in the tensor; -1: beyond its edges) for each element of the box,
  // with offsets of bytes.
  template <class F>
  void for_elements(F&& f) const {
    const std::uint64_t elements = box_bytes() / element_bytes();
    for (std::uint64_t n = 0; n < elements; ++n) {
      std::uint64_t rest = n;
      std::int64_t at = 0;
      bool inside = true;
      for (unsigned d = 0; d < request.rank; ++d) {
        const auto step = static_cast<std::int64_t>(d == 0 ? 1 : request.step[d]);
        const std::int64_t i = place[d] + static_cast<std::int64_t>(rest % extent(d)) * step;
        rest /= extent(d);
        inside = inside && i >= 0 && i < static_cast<std::int64_t>(request.size[d]);
        at += i * static_cast<std::int64_t>(d == 0 ? element_bytes() : request.stride_bytes[d - 1]);
      }
      const std::uint64_t linear = offset + n * element_bytes();
      // The CUDA C++ Programming Guide shows lines of eight pieces of 16 bytes each.
      const std::uint64_t line = linear / 128, piece = linear / 16 % 8;
      const std::uint64_t lines = std::array{1, 2, 4, 8}.at(request.swizzle);
      const std::uint64_t in_shared = line * 128 + (piece ^ line % lines) * 16 + linear % 16;
      f(in_shared - offset, inside ? at : -1);
    }
  }
};

// A tensor of two dimensions of u32, rows of 40 bytes 48 bytes apart.
Case small_case() {
  Case c;
  c.request.element = static_cast<std::uint32_t>(Element::u32);
  c.request.rank = 2;
  c.request.size = {10, 6};
  c.request.stride_bytes = {48};
  c.request.box = {8, 4};
  c.request.step = {1, 1};
  c.place = {1, 2};
  return c;
}

class TensorCopyTest : public DeviceTest {
 protected:
  void load_tensor_kernel(std::string_view body, std::string_view before = {}) {
    load(tensor_kernel(body, before));
  }
  // Of the tensor at this address.
  static TensorMapBytes map_of(const Case& c, std::uint64_t address) {
    TensorMapRequest request = c.request;
    request.address = address;
    const TensorMapReply reply = encode(request);
    EXPECT_EQ(reply.status, TensorMapReply::Status::ok);
    return reply.map;
  }
  LaunchResult start(const Case& c, const TensorMapBytes& map, std::uint64_t out,
                     LaunchConfig config = shape(1, 32)) {
    return launch(config, "k", map, out, c.place, static_cast<std::uint32_t>(c.box_bytes()),
                  c.offset);
  }
  // Uploads the bytes as the tensor of the case.
  LaunchResult start(const Case& c, const std::vector<std::uint8_t>& tensor, std::uint64_t out) {
    at_ = upload(tensor);
    return start(c, map_of(c, at_), out);
  }
  std::vector<std::uint8_t> random_bytes(std::uint64_t n) {
    std::vector<std::uint8_t> bytes(n);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random_());
    return bytes;
  }
  // What a fetch brings.
  std::vector<std::uint8_t> fetched(const Case& c, const std::vector<std::uint8_t>& tensor) {
    const std::uint64_t out = upload(std::vector<std::uint8_t>(c.box_bytes(), 0xcc));
    result = start(c, tensor, out);
    EXPECT_EQ(result.status, LaunchStatus::ok);
    for (const Finding& f : result.findings) ADD_FAILURE() << f.describe();
    return download<std::uint8_t>(out, c.box_bytes());
  }
  // Of the fetch.
  static std::vector<std::uint8_t> expected_box(const Case& c,
                                                const std::vector<std::uint8_t>& tensor) {
    std::vector<std::uint8_t> box(c.box_bytes(), 0xee);
    c.for_elements([&](std::uint64_t to, std::int64_t from) {
      for (std::uint32_t b = 0; b < c.element_bytes(); ++b)
        box.at(to + b) = from < 0 ? 0 : tensor.at(static_cast<std::uint64_t>(from) + b);
    });
    return box;
  }
  Case random_case();
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  std::mt19937 random_{20240917};
  std::uint64_t at_ = 0;  // of the tensor
};

Case TensorCopyTest::random_case() {
  Case c;
  TensorMapRequest& r = c.request;
  r.rank = 1 + below(5);
  r.element = below(10);
  r.swizzle = below(4);
  const std::uint32_t bytes = c.element_bytes();
  const std::uint32_t row =
      r.swizzle == 0 ? 16 * (1 + below(8)) : 16u << r.swizzle;  // of the box, in bytes
  r.box[0] = row / bytes;
  r.step[0] = 1 + below(8);
  r.size[0] = 1 + below(2 * r.box[0]);
  std::uint64_t stride = (r.size[0] * bytes + 15) / 16 * 16 + 16 * below(2);
  for (unsigned d = 1; d < r.rank; ++d) {
    r.step[d] = 1 + below(3);
    r.box[d] = 1 + below(6);
    r.size[d] = 1 + below(8);
    r.stride_bytes[d - 1] = stride;
    stride *= r.size[d];
  }
  for (unsigned d = 0; d < r.rank; ++d) {
    const auto span = static_cast<std::int32_t>(r.box[d]);
    c.place[d] = static_cast<std::int32_t>(below(static_cast<std::uint32_t>(r.size[d]) + 2)) -
                 static_cast<std::int32_t>(below(static_cast<std::uint32_t>(span)));
  }
  c.offset = 128 * below(9);
  return c;
}

TEST_F(TensorCopyTest, FetchesABox) {
  load_tensor_kernel(fetch(2) + std::string(kWait) + std::string(kShow));
  const std::vector<std::uint8_t> tensor = random_bytes(6 * 48);
  const Case c = small_case();
  const std::vector<std::uint8_t> box = fetched(c, tensor);
  for (std::size_t row = 0; row < 4; ++row) {
    const auto from = tensor.begin() + static_cast<std::ptrdiff_t>((row + 2) * 48 + 4);
    EXPECT_TRUE(std::equal(from, from + 32, box.begin() + static_cast<std::ptrdiff_t>(row * 32)))
        << row;
  }
  EXPECT_EQ(result.counters.global_load_bytes, 4u * 32);
}

TEST_F(TensorCopyTest, ElementsBeyondTheEdgesAreZeros) {
  load_tensor_kernel(fetch(2) + std::string(kWait) + std::string(kShow));
  const std::vector<std::uint8_t> tensor = random_bytes(6 * 48);
  Case c = small_case();
  for (const Place& p : {Place{5, 4}, Place{-3, -2}, Place{10, 0}, Place{0, 6}, Place{-8, 0},
                         Place{0x7fffffff, 1}, Place{-0x7fffffff - 1, 1}}) {
    c.place = p;
    EXPECT_EQ(fetched(c, tensor), expected_box(c, tensor)) << p[0] << ' ' << p[1];
  }
  EXPECT_EQ(result.counters.global_load_bytes, 0u);
}

TEST_F(TensorCopyTest, FetchesAsAPlainLoopDoes) {
  unsigned swizzled = 0, partly = 0;
  std::array<std::string, 5> kernels;
  for (unsigned rank = 1; rank <= 5; ++rank)
    kernels[rank - 1] = tensor_kernel(fetch(rank) + std::string(kWait) + std::string(kShow));
  for (int i = 0; i < 150; ++i) {
    const Case c = random_case();
    if (c.offset + c.box_bytes() > 16384 || c.box_bytes() % 4 != 0) continue;
    load(kernels[c.request.rank - 1]);
    const std::vector<std::uint8_t> tensor = random_bytes(c.tensor_bytes());
    const std::vector<std::uint8_t> box = expected_box(c, tensor);
    ASSERT_EQ(fetched(c, tensor), box) << "case " << i;
    swizzled += c.request.swizzle != 0 ? 1 : 0;
    c.for_elements([&](std::uint64_t to, std::int64_t from) { partly += to == 0 && from < 0; });
  }
  EXPECT_GT(swizzled, 40u);
  EXPECT_GT(partly, 20u);
}

TEST_F(TensorCopyTest, SendsAsAPlainLoopDoes) {
  for (int i = 0; i < 150; ++i) {
    const Case c = random_case();
    if (c.offset + c.box_bytes() > 16384 || c.box_bytes() % 4 != 0) continue;
    load_tensor_kernel(std::string(kFill) + send(c.request.rank));
    std::vector<std::uint8_t> tensor = random_bytes(c.tensor_bytes());
    const std::vector<std::uint8_t> box = random_bytes(c.box_bytes());
    const LaunchResult r = start(c, tensor, upload(box));
    ASSERT_THAT(r.findings, IsEmpty()) << r.findings[0].describe();
    c.for_elements([&](std::uint64_t from, std::int64_t to) {
      for (std::uint32_t b = 0; to >= 0 && b < c.element_bytes(); ++b)
        tensor.at(static_cast<std::uint64_t>(to) + b) = box.at(from + b);
    });
    ASSERT_EQ(download<std::uint8_t>(at_, tensor.size()), tensor) << "case " << i;
  }
}

// Each instruction's forms as ptxas takes them, and a tensor map in global memory.
TEST_F(TensorCopyTest, FormsOfInstructions) {
  load_tensor_kernel(
      R"(
  mov.u64 %rd5, kept;
  cvta.global.u64 %rd5, %rd5;
  @!%p1 bra begin;
  ld.u64 %rd6, [%map];
)" +
          [] {
            std::string copy;
            for (int at = 0; at < 128; at += 8)
              copy += fmt::format("  ld.u64 %rd6, [%map+{0}];\n  st.u64 [%rd5+{0}], %rd6;\n", at);
            return copy;
          }() +
          R"(
  prefetch.tensormap [%rd5];
  cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd5, {%c0, %c1}];
  cp.async.bulk.prefetch.tensor.2d.L2.global.L2::cache_hint [%rd5, {%c0, %c1}], %rd7;
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint
      [%to+128], [%rd5, {%c0, 2}], [full], %rd7;
  mbarrier.arrive.expect_tx.shared.b64 %rd1, [full], %bytes;
begin:)" + std::string(kWait) +
          R"(
  add.u32 %to, %to, 128;
)" + std::string(kShow) +
          R"(
  bar.sync 0;
  @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint
      [%rd5, {%c0, 0}], [%to], %rd7;
)",
      ".visible .global .align 128 .b8 kept[128];\n");
  const Case c = small_case();
  const std::vector<std::uint8_t> tensor = random_bytes(6 * 48);
  EXPECT_EQ(fetched(c, tensor), expected_box(c, tensor));
  std::vector<std::uint8_t> sent = tensor;
  for (std::size_t row = 0; row < 4; ++row)
    std::copy_n(tensor.begin() + static_cast<std::ptrdiff_t>((row + 2) * 48 + 4), 32,
                sent.begin() + static_cast<std::ptrdiff_t>(row * 48 + 4));
  EXPECT_EQ(download<std::uint8_t>(at_, sent.size()), sent) << "sent when the block ended";
}

TEST_F(TensorCopyTest, Reduces) {
  Case c = small_case();
  const auto reduced = [&](Element element, std::string_view op, auto before, auto value) {
    using Word = decltype(before);
    c.request.element = static_cast<std::uint32_t>(element);
    c.request.box[0] = 32 / sizeof(Word);
    c.request.size[0] = 40 / sizeof(Word);
    load_tensor_kernel(std::string(kFill) + send(2, op));
    const std::uint64_t out = upload(std::vector<Word>(c.box_bytes() / sizeof(Word), value));
    at_ = upload(std::vector<Word>(c.tensor_bytes() / sizeof(Word) + 2, before));
    const LaunchResult r = start(c, map_of(c, at_), out);
    EXPECT_THAT(r.findings, IsEmpty());
    const std::vector<Word> words = download<Word>(at_, c.tensor_bytes() / sizeof(Word));
    EXPECT_EQ(words[0], before) << "not in the box";
    return words[(2 * 48) / sizeof(Word) + 1];
  };
  EXPECT_EQ(reduced(Element::u32, ".add", 5u, 7u), 12u);
  EXPECT_EQ(reduced(Element::s32, ".min", 5, -7), -7);
  EXPECT_EQ(reduced(Element::u32, ".inc", 5u, 7u), 6u);
  EXPECT_EQ(reduced(Element::s32, ".xor", 5, 6), 3);
  EXPECT_EQ(reduced(Element::s64, ".add", std::int64_t{5}, std::int64_t{-7}), -2);
  EXPECT_EQ(reduced(Element::u64, ".or", std::uint64_t{5}, std::uint64_t{8}), 13u);
  EXPECT_EQ(reduced(Element::f32, ".add", 1.5f, 2.0f), 3.5f);
  // 1.0 and 2.0
  EXPECT_EQ(reduced(Element::f16, ".add", std::uint16_t{0x3c00}, std::uint16_t{0x4000}), 0x4200);
  EXPECT_EQ(reduced(Element::bf16, ".max", std::uint16_t{0x3f80}, std::uint16_t{0x4000}), 0x4000);

  c.request.element = static_cast<std::uint32_t>(Element::u8);
  c.request.box[0] = 32;
  const LaunchResult r =
      start(c, std::vector<std::uint8_t>(300), upload(std::vector<std::uint8_t>(c.box_bytes())));
  ASSERT_THAT(kinds(r), ElementsAre(FindingKind::trap));
  EXPECT_THAT(r.findings[0].describe(), HasSubstr("max"));
}

TEST_F(TensorCopyTest, AReadThatDoesNotWaitIsARace) {
  load_tensor_kernel(fetch(2) + R"(
  setp.ge.u32 %p3, %t, 32;
  @%p3 ld.shared.u32 %r5, [%to];
  @%p3 exit;)" + std::string(kWait));
  const Case c = small_case();
  at_ = upload(random_bytes(6 * 48));
  EXPECT_THAT(kinds(start(c, map_of(c, at_), at_, shape(1, 64))),
              Contains(FindingKind::shared_race));
}

TEST_F(TensorCopyTest, BlocksThatSendToOneBoxRace) {
  load_tensor_kernel(std::string(kFill) + send(2));
  const Case c = small_case();
  at_ = upload(random_bytes(6 * 48));
  const std::uint64_t out = upload(random_bytes(c.box_bytes()));
  EXPECT_THAT(start(c, map_of(c, at_), out).findings, IsEmpty());
  const LaunchResult equal = start(c, map_of(c, at_), out, shape(2, 32));
  EXPECT_THAT(equal.findings, IsEmpty());
  EXPECT_EQ(equal.notes.size(), 1u) << "they store the same";
  load_tensor_kernel(std::string(kFill) + R"(
  mov.u32 %r6, %ctaid.x;
  @%p1 st.shared.u32 [%to], %r6;)" +
                     send(2));
  EXPECT_THAT(kinds(start(c, map_of(c, at_), out, shape(2, 32))),
              ElementsAre(FindingKind::global_race));
}

TEST_F(TensorCopyTest, UndefinedElements) {
  const Case c = small_case();
  load_tensor_kernel(fetch(2) + std::string(kWait) + R"(
  ld.shared.u32 %r5, [%to];
  setp.eq.u32 %p4, %r5, 77;
  @%p4 st.global.u32 [%out], 1;)");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(64));
  at_ = device.allocate(6 * 48);
  const LaunchResult r = start(c, map_of(c, at_), out);
  ASSERT_THAT(kinds(r), ElementsAre(FindingKind::uninitialised));
  Case beyond = c;
  beyond.place = {-1, 2};
  EXPECT_THAT(start(beyond, map_of(c, at_), out).findings, IsEmpty())
      << "the first element is beyond the edge";

  load_tensor_kernel(send(2));
  EXPECT_THAT(start(c, map_of(c, at_), out).findings, IsEmpty()) << "nobody reads them";
  load_tensor_kernel(send(2, ".add"));
  EXPECT_THAT(kinds(start(c, map_of(c, at_), out)), ElementsAre(FindingKind::uninitialised));
}

TEST_F(TensorCopyTest, BeyondTheAllocation) {
  const Case c = small_case();
  load_tensor_kernel(fetch(2) + std::string(kWait));
  at_ = upload(random_bytes(5 * 48));  // a row is missing
  LaunchResult r = start(c, map_of(c, at_), at_);
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  ASSERT_THAT(kinds(r), ElementsAre(FindingKind::out_of_bounds));
  Case first = c;
  first.place = {0, 0};
  EXPECT_THAT(start(first, map_of(c, at_), at_).findings, IsEmpty()) << "not in the box";

  load_tensor_kernel(send(2));
  r = start(c, map_of(c, at_), at_);
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  EXPECT_THAT(kinds(r), ElementsAre(FindingKind::out_of_bounds));
}

TEST_F(TensorCopyTest, WrongOperands) {
  const auto finding = [&](const std::string& body, const Case& c, const TensorMapBytes& map) {
    load_tensor_kernel(body);
    const LaunchResult r = start(c, map, at_);
    EXPECT_EQ(r.findings.size(), 1u);
    return r.findings.empty() ? std::string() : r.findings[0].describe();
  };
  at_ = upload(random_bytes(6 * 48));
  const Case c = small_case();
  const TensorMapBytes map = map_of(c, at_);
  Case odd = c;
  odd.offset = 64;
  EXPECT_THAT(finding(fetch(2), odd, map), HasSubstr("a multiple of 128"));
  EXPECT_THAT(finding(send(2), odd, map), HasSubstr("a multiple of 128"));
  Case far = c;
  far.offset = 16384;
  EXPECT_THAT(finding(fetch(2), far, map), HasSubstr("shared"));
  EXPECT_THAT(finding(send(2), far, map), HasSubstr("shared"));
  EXPECT_THAT(finding(fetch(3), c, map), HasSubstr("copies 3 dimensions, but the tensor has 2"));
  EXPECT_THAT(finding("add.u64 %map, %map, 8;\n" + fetch(2), c, map), HasSubstr("multiple of 64"));
  TensorMapBytes none = map;
  none[0] ^= std::byte{1};
  EXPECT_THAT(finding(fetch(2), c, none), HasSubstr("where there is none"));
  EXPECT_THAT(finding("mov.u64 %map, 4096;\n" + fetch(2), c, map), HasSubstr("0x1000"));
}

TEST_F(TensorCopyTest, ToAllBlocksOfACluster) {
  load_tensor_kernel(R"(
  mov.u32 %r8, %cluster_ctarank;
  mov.u32 %r9, %ctaid.x;
  mov.u16 %h1, 3;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd1, [full], %bytes;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  setp.eq.and.u32 %p4, %r8, 0, %p1;
  @%p4 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      .multicast::cluster [%to], [%map, {%c0, %c1}], [full], %h1;)" +
                     std::string(kWait) + R"(
  mad.wide.u32 %base, %r9, %bytes, %base;)" +
                     std::string(kShow) + std::string(kClusterBarrier));
  const Case c = small_case();
  const std::vector<std::uint8_t> tensor = random_bytes(6 * 48);
  at_ = upload(tensor);
  const std::uint64_t out = upload(std::vector<std::uint8_t>(2 * c.box_bytes()));
  LaunchConfig config = shape(2, 32);
  config.cluster.x = 2;
  EXPECT_THAT(start(c, map_of(c, at_), out, config).findings, IsEmpty());
  for (unsigned block = 0; block < 2; ++block)
    EXPECT_EQ(download<std::uint8_t>(out + block * c.box_bytes(), c.box_bytes()),
              expected_box(c, tensor));
}

TEST_F(TensorCopyTest, RefusedForms) {
  const auto refused = [&](const std::string& body) {
    load_tensor_kernel(body);
    try {
      start(small_case(), map_of(small_case(), 0), 0);
    } catch (const Unsupported& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(
      refused("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::"
              "bytes [%to], [%map, {%c0, %c1, %c2}], [full], {%h1};"),
      HasSubstr("im2col"));
  EXPECT_THAT(refused("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_"
                      "tx::bytes [%to], [%map, {%c0, %c1, %c1, %c1, %c1}], [full];"),
              HasSubstr("gather4"));
  EXPECT_THAT(refused(fetch(2)), IsEmpty());
}

}  // namespace
}  // namespace assay::sim
