// The entrant's own test: without a reference, by what must agree with itself. A sequence that grew
// in the company of others, was forked and rolled back must attend to, and read, exactly what one
// gets that was filled at once; and all memory comes back.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Vector = std::vector<float>;

constexpr std::int64_t kQ = 4, kKv = 2, kD = 24, kRow = kKv * kD, kTokens = 150;

Vector normal(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  Vector v(static_cast<std::size_t>(n));
  for (float& x : v) x = distribution(random);
  return v;
}

struct Cache {
  kvc* handle = nullptr;
  bool good = true;

  explicit Cache(assay_ctx* ctx) {
    const kvc_config c{sizeof(kvc_config), ASSAY_F32, 1, kQ, kKv, kD, 6, 1000, 400, -1, 0, 0, 0};
    good = kvc_create(ctx, &c, &handle) == ASSAY_OK;
  }
  std::int32_t open() {
    std::int32_t slot = -1;
    good = good && kvc_seq_new(handle, &slot) == ASSAY_OK;
    return slot;
  }
  // Rows [from, to) of the two arrays.
  void append(std::int32_t slot, const Vector& k, const Vector& v, std::int64_t from,
              std::int64_t to) {
    const std::int64_t cu[] = {0, to - from};
    good = good && kvc_append(handle, 0, 1, &slot, cu, k.data() + from * kRow,
                              v.data() + from * kRow) == ASSAY_OK;
    good = good && kvc_len(handle, 0, slot) == to;
  }
  Vector attend(std::int32_t other, std::int32_t slot, const Vector& q) {
    const std::int32_t slots[] = {other, slot};
    const std::int64_t cu[] = {0, 1, 4};
    Vector o(q.size());
    good =
        good && kvc_attend(handle, 0, 2, slots, cu, q.data(), 0.2f, o.data(), nullptr) == ASSAY_OK;
    return {o.begin() + kQ * kD, o.end()};
  }
};

bool near(const Vector& a, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) < 1e-4f)) return false;
  }
  return true;
}

// Row i of a chunk on top of a history, alone.
bool rows_agree(Cache& c, std::int32_t slot, const Vector& k, const Vector& v, const Vector& q,
                const Vector& chunk) {
  for (std::int64_t i = 0; i < 3 && c.good; ++i) {
    const std::int64_t length = kTokens - 2 + i, cu[] = {0, 1};
    c.good = kvc_truncate(c.handle, slot, length) == ASSAY_OK;
    Vector o(kQ * kD);
    c.good = c.good && kvc_attend(c.handle, 0, 1, &slot, cu, q.data() + (1 + i) * kQ * kD, 0.2f,
                                  o.data(), nullptr) == ASSAY_OK;
    if (!near(o, {chunk.begin() + i * kQ * kD, chunk.begin() + (i + 1) * kQ * kD})) return false;
    if (length < kTokens) c.append(slot, k, v, length, kTokens);
  }
  return c.good;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  const Vector k = normal(kTokens * kRow, 1), v = normal(kTokens * kRow, 2),
               q = normal(4 * kQ * kD, 3);
  const Vector other_k = normal(kTokens * kRow, 4), other_v = normal(kTokens * kRow, 5);
  Cache c(ctx);
  const std::int32_t once = c.open(), other = c.open(), slow = c.open();
  if (!c.good) return 1;
  c.append(other, other_k, other_v, 0, 20);
  c.append(once, k, v, 0, kTokens);
  c.append(slow, k, v, 0, 31);
  for (std::int64_t t = 31; t < 70 && c.good; ++t) {
    c.append(slow, k, v, t, t + 1);
    if (t % 3 == 0) c.append(other, other_k, other_v, 20 + t / 3 - 11, 21 + t / 3 - 11);
  }
  std::int32_t forked = -1;
  c.good = c.good && kvc_fork(c.handle, slow, &forked) == ASSAY_OK;
  if (!c.good) return 1;
  c.append(slow, k, v, 70, 100);
  c.append(forked, other_k, other_v, 70, 90);
  c.good = c.good && kvc_truncate(c.handle, slow, 81) == ASSAY_OK &&
           kvc_seq_free(c.handle, forked) == ASSAY_OK;
  if (!c.good) return 1;
  c.append(slow, k, v, 81, kTokens);
  const Vector a = c.attend(other, once, q), b = c.attend(other, slow, q);
  if (!c.good || !near(a, b) || !rows_agree(c, slow, k, v, q, a)) return 1;
  Vector read_k(kTokens * kRow), read_v(kTokens * kRow);
  if (kvc_read(c.handle, 0, slow, 0, kTokens, read_k.data(), read_v.data()) != ASSAY_OK) return 1;
  if (read_k != k || read_v != v) return 1;
  for (const std::int32_t slot : {once, other, slow})
    c.good = c.good && kvc_seq_free(c.handle, slot) == ASSAY_OK;
  std::int64_t live = -1, reserved = -1;
  if (!c.good || kvc_bytes(c.handle, &live, &reserved) != ASSAY_OK || live != 0) return 1;
  kvc_destroy(c.handle);
  return 0;
}
